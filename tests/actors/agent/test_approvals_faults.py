"""A provider that fails, and a call that nobody can approve (G7, T8)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import ApprovalRequest, ApprovalResponse, CallConfig, approve
from actors.models.scripted import call, reply
from protocol.errors import ApprovalProviderError
from protocol.events import ApprovalResolved, RunFailed
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def raising(error: BaseException, *, seconds: float = 0) -> Any:
    async def provider(_request: ApprovalRequest) -> ApprovalResponse:
        await trio.sleep(seconds)
        raise error

    return provider


GROUP = BaseExceptionGroup("several", [ValueError("k3y"), SystemExit(3)])


@pytest.mark.parametrize("error", [ValueError("k3y"), trio.TooSlowError("k3y"), SystemExit(3), GROUP], ids=repr)
@pytest.mark.parametrize("seconds", [0, 3])
def test_a_provider_that_raises_fails_the_run(error: BaseException, seconds: float) -> None:
    """G7, T8: request `failed`, calls `not_run`, exchange stored, then `run_failed`; the cause is kept and not shown."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("pay", {"n": 7}, id="c1"), call("calc", {}, id="c2"))
    played = play(agent([turn], pay, bench.tool("calc"), approval=raising(error, seconds=seconds)))
    cause = played.error.__cause__ if played.error is not None else None

    assert isinstance(played.error, ApprovalProviderError)
    assert cause is error or (cause is not None and cause.__cause__ is error)
    assert ["approval_resolved", "tool_finished", "tool_finished", "step_finished", "run_failed"] == played.types[-5:]
    assert ("failed", None) == (played.only(ApprovalResolved).outcome, played.only(ApprovalResolved).by)
    assert ([], {}, {"c1": "not_run", "c2": "not_run"}) == (paid, bench.runs, statuses(played))
    assert "approval_provider_error" == played.only(RunFailed).error.code
    assert "k3y" not in repr((played.events, played.messages, str(played.error)))


@pytest.mark.parametrize("answer", [None, True, "approve", {"decision": "approve"}], ids=repr)
def test_a_provider_that_answers_the_wrong_type_fails_the_run(answer: Any) -> None:
    """G7: what is no `ApprovalResponse` is never an approval, and the error says which type it was."""
    pay, paid = payer()
    played = play(agent(pays(7), pay, approval=lambda _request: answer))

    assert isinstance(played.error, ApprovalProviderError)
    assert type(answer).__name__ in str(played.error.__cause__)
    assert ("failed", []) == (played.only(ApprovalResolved).outcome, paid)


def test_a_provider_that_fails_about_one_call_ends_the_others_too() -> None:
    """G7: the other requests of the turn are closed, none stays open, and what was approved already does not run."""
    pay, paid = payer()

    async def provider(request: ApprovalRequest) -> ApprovalResponse:
        match request.call:
            case "c1":
                return approve()
            case "c2":
                await trio.sleep(1)
                raise ValueError("k3y")
            case _:
                await trio.sleep_forever()
        raise AssertionError

    played = play(agent(pays(1, 2, 3), pay, approval=provider))
    outcomes = {resolved.call: resolved.outcome for resolved in played.all(ApprovalResolved)}

    assert isinstance(played.error, ApprovalProviderError)
    assert {"c1": "approved", "c2": "failed", "c3": "cancelled"} == outcomes
    assert ([], {"c1": "not_run", "c2": "not_run", "c3": "not_run"}) == (paid, statuses(played))


def test_a_provider_that_fails_once_its_request_is_closed_changes_nothing() -> None:
    """G8: expiry cancels the provider; what it raises then is only logged."""
    pay, _ = payer()

    async def provider(_request: ApprovalRequest) -> ApprovalResponse:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("k3y")

    played = play(agent(pays(7), pay, approval=provider, approval_timeout_seconds=4))

    assert ({"c1": "not_run"}, "ok") == (statuses(played), played.result.text)


def test_the_conversation_goes_on_after_a_provider_failed() -> None:
    """R2: the stored exchange is whole, and the next run works."""
    pay, _ = payer()
    answers: list[Any] = [ValueError("k3y"), approve()]

    def provider(_request: ApprovalRequest) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def scene(stage: Stage) -> list[Played]:
        script = [reply("", call("pay", {"n": n}, id=f"c{n}")) for n in (1, 2)]
        one = await stage.spawn(agent([*script, "ok"], pay, approval=provider))
        return [await stage.play(one), await stage.play(one)]

    first, second = perform(scene)

    assert isinstance(first.error, ApprovalProviderError)
    assert ("ok", {"c1": "not_run", "c2": "ok"}) == (second.result.text, statuses(second))


def test_a_tool_that_a_hook_brings_in_is_denied_where_nobody_can_approve_it() -> None:
    """T8: without a provider nothing that needs approval runs, however it came to be offered."""
    pay, paid = payer()
    bench = Bench()

    def bring(config: CallConfig) -> CallConfig:
        return config.replace(tools=[pay])

    played = play(agent(pays(7), bench.tool(), prepare_call=bring))

    assert ([], {"c1": ("denied", "Not run: it needs approval, and nobody is there to give it.")}) == (
        paid,
        results(played),
    )


def test_a_run_that_runs_out_of_time_after_an_approval_ends_in_order() -> None:
    """B5: the clock goes on once the decision is made."""
    pay, paid = payer()
    bench = Bench()
    turn = reply("", call("pay", {"n": 7}, id="c1"), call("slow", {}, id="c2"))
    spec = agent([turn], pay, bench.tool("slow", seconds=60), approval=Approver(seconds=100), wall_clock_seconds=10)
    played = play(spec)

    assert ("wall_clock", 110.0, [7]) == (played.result.stopped_by, played.seconds, paid)
    assert {"c1": "ok", "c2": "timed_out"} == statuses(played)
