"""Edited arguments, and what was shown: an approval binds exactly what runs (T8)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import ApprovalRequest, ApprovalResponse, PendingTool, Run, approve, deny, edit, tool
from actors import remote as remotely
from actors.models.scripted import call, reply
from protocol.errors import ApprovalProviderError, InvalidDecision
from protocol.events import ApprovalRequired, ApprovalResolved, ToolRequested
from tests.support.deciders import payer, pays, results, statuses
from tests.support.ids import shown
from tests.support.play import Played, Stage, event_of, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent

NO_OBJECT: list[Any] = [{"n": "many"}, {}, {"n": 1, "m": 2}, {"n": float("nan")}, {"n": object()}, {"n": 1.5}]


@pytest.mark.parametrize("who", ["run", "runtime"])
def test_whoever_decides_the_rules_are_the_same(who: str) -> None:
    """G9, T8: `run.decide` and `runtime.decide` answer an approval; `by` says who it was."""
    pay, paid = payer()

    async def scene(stage: Stage) -> Played:
        one = await stage.spawn(agent(pays(7), pay, approval=remotely()))

        async def act(run: Run) -> None:
            asked = await event_of(run, ApprovalRequired)
            decide = run.decide if who == "run" else stage.runtime.decide
            told = await decide(asked.request, approve(), by="ann")

            assert ("accepted", "approved") == (told.status, told.resolution and told.resolution.outcome)

        return await stage.play(one, act=act)

    played = perform(scene)

    assert ([7], "ann") == (paid, played.only(ApprovalResolved).by)


def test_an_edited_call_runs_with_what_the_person_wrote() -> None:
    """T8: `edit` runs the new arguments, and the model is told that they were changed and to what."""
    pay, paid = payer()
    played = play(agent(pays(7), pay, approval=lambda _request: edit({"n": 3})))
    status, told = results(played)["c1"]
    resolved = played.only(ApprovalResolved)

    assert ([3], "ok") == (paid, status)
    assert (True, True) == ('{"n":3}' in told, told.endswith("\npaid 3"))
    assert ("edited", {"n": 3}) == (resolved.outcome, resolved.arguments)
    assert {"n": 7} == played.only(ApprovalRequired).arguments


def test_an_edit_that_its_author_changes_later_stays_what_it_was() -> None:
    """T8: an approval binds what was decided, also where the decider keeps a hand on its object."""
    kept: dict[str, Any] = {"tags": [1]}
    seen: list[list[int]] = []

    async def note(tags: list[int]) -> str:
        await trio.lowlevel.checkpoint()
        seen.append(list(tags))
        tags.append(9)
        return "noted"

    noted = tool(note, description="Note.", needs_approval=True)

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        await run.decide(asked.request, edit(kept))
        kept["tags"].append(2)

    spec = agent([reply("", call("note", {"tags": []}, id="a")), "ok"], noted, approval=remotely())
    played = play(spec, act=act)

    assert [[1]] == seen
    assert '{"tags":[1]}' in results(played)["a"][1]


@pytest.mark.parametrize("arguments", NO_OBJECT, ids=shown)
def test_a_bad_edit_leaves_the_request_open(arguments: dict[str, Any]) -> None:
    """T8: edited arguments are checked like the model's own; a bad edit says so, and somebody may decide again."""
    pay, paid = payer()

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        with pytest.raises(InvalidDecision, match=r"the edited arguments do not fit pay: .*n"):
            await run.decide(asked.request, edit(arguments))
        assert [asked.request] == [request.request for request in run.open_requests]
        await run.decide(asked.request, edit({"n": 3}))

    played = play(agent(pays(7), pay, approval=remotely()), act=act)

    assert ([3], "edited") == (paid, played.only(ApprovalResolved).outcome)


@pytest.mark.parametrize("value", [object(), float("inf"), b"x", {1, 2}], ids=shown)
def test_what_is_no_json_is_no_edit_of_any_tool(value: object) -> None:
    """T8: a schema that takes anything still takes JSON alone: it must be shown, stored and sent."""
    bench = Bench()

    async def keep(**values: Any) -> str:
        await trio.lowlevel.checkpoint()
        return f"kept {values}"

    anything = {"type": "object", "properties": {"x": {}}}
    kept = tool(keep, description="Keep.", parameters=anything, needs_approval=True)

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        with pytest.raises(InvalidDecision, match="must be one JSON object"):
            await run.decide(asked.request, edit({"x": value}))
        await run.decide(asked.request, approve())

    spec = agent([reply("", call("keep", {"x": 1}, id="a")), "ok"], kept, bench.tool(), approval=remotely())

    assert {"a": ("ok", "kept {'x': 1}")} == results(play(spec, act=act))


def test_edited_arguments_nested_too_deep_are_refused() -> None:
    """T8: the bound on depth is that of the model's own arguments."""
    deep: Any = 1
    for _ in range(1000):
        deep = [deep]

    async def keep(x: Any = None) -> str:
        await trio.lowlevel.checkpoint()
        return "kept"

    parameters = {"type": "object", "properties": {"x": {}}}
    kept = tool(keep, description="Keep.", parameters=parameters, needs_approval=True)

    async def act(run: Run) -> None:
        asked = await event_of(run, ApprovalRequired)
        with pytest.raises(InvalidDecision):
            await run.decide(asked.request, edit({"x": deep}))
        await run.decide(asked.request, deny())

    spec = agent([reply("", call("keep", {}, id="a")), "ok"], kept, approval=remotely())

    assert {"a": "denied"} == statuses(play(spec, act=act))


def test_a_provider_that_edits_badly_has_failed() -> None:
    """G7, T8: nobody would decide again, so what the tool would not take is the provider's error."""
    pay, paid = payer()
    played = play(agent(pays(7), pay, approval=lambda _request: edit({"n": "many"})))

    assert isinstance(played.error, ApprovalProviderError)
    assert isinstance(played.error.__cause__, InvalidDecision)
    assert ("failed", []) == (played.only(ApprovalResolved).outcome, paid)


@pytest.mark.parametrize("given", [False, True], ids=["schema read", "schema given"])
def test_what_was_shown_is_what_runs_whatever_the_provider_does_to_it(given: bool) -> None:  # noqa: FBT001
    """T8: the provider has a copy: the call does not change with it."""
    seen: list[dict[str, Any]] = []

    async def note(tags: dict[str, Any]) -> str:
        await trio.lowlevel.checkpoint()
        seen.append(tags)
        return "noted"

    def meddle(request: ApprovalRequest) -> ApprovalResponse:
        request.arguments["tags"]["amount"] = 1000
        return approve()

    parameters = {"type": "object", "properties": {"tags": {"type": "object"}}, "required": ["tags"]} if given else None
    noted = tool(note, description="Note.", needs_approval=True, parameters=parameters)
    played = play(agent([reply("", call("note", {"tags": {"amount": 1}}, id="a")), "ok"], noted, approval=meddle))

    assert [{"amount": 1}] == seen
    assert {"tags": {"amount": 1}} == played.only(ToolRequested).arguments


def test_the_hooks_arguments_are_shown_and_run() -> None:
    """APR-14, H7: what `around_tool` made of the arguments is what a person sees, and what runs."""
    pay, paid = payer()

    async def at_most_fifty(call: PendingTool, proceed: Any) -> Any:
        return await proceed({"n": min(call.arguments["n"], 50)})

    shown: list[int] = []

    def provider(request: ApprovalRequest) -> ApprovalResponse:
        shown.append(request.arguments["n"])
        return approve()

    played = play(agent(pays(100), pay, approval=provider, around_tool=at_most_fifty))

    assert ([50], [50], {"c1": ("ok", "paid 50")}) == (shown, paid, results(played))


@pytest.mark.parametrize("needs_approval", [lambda arguments: arguments["n"] > 50, lambda arguments: True])
def test_whether_a_call_needs_approval_is_told_by_what_will_run(needs_approval: Any) -> None:
    """H7, T8: `needs_approval` looks at the arguments after the hook."""
    pay, paid = payer(needs_approval)

    async def raised(call: PendingTool, proceed: Any) -> Any:
        return await proceed({"n": call.arguments["n"] + 50})

    played = play(agent(pays(10), pay, approval=lambda _request: deny(), around_tool=raised))

    assert ([], {"c1": "denied"}) == (paid, statuses(played))


def test_an_edit_wins_over_the_hooks_arguments() -> None:
    """H7, T8: who decides last decides what runs; the hook gets its result."""
    pay, paid = payer()

    async def at_most_fifty(call: PendingTool, proceed: Any) -> Any:
        return await proceed({"n": 50})

    played = play(agent(pays(100), pay, approval=lambda _request: edit({"n": 60}), around_tool=at_most_fifty))
    status, told = results(played)["c1"]

    assert ([60], "ok") == (paid, status)
    assert (True, True) == ('{"n":60}' in told, told.endswith("\npaid 60"))
