"""A helper call draws on every account up to the root, counts, costs, and is settled or given back like any call."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import AgentSpec, Budget, Run, StepOverrides, ask_model, prune_messages, sub_agent, tool
from actors.models.scripted import call, reply
from protocol.errors import LimitReachedError, ModelError, ModelReplyError, PriceUnknown, SpecError
from protocol.events import ContentDelta, ToolFinished
from protocol.limits import LimitState
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import TextPart, Turn, UserMessage
from protocol.usage import Usage

from ...support.play import Stage, perform, play
from ...support.scripts import Bench, Trickle
from ...support.specs import agent
from ...support.strict import StrictModel
from ._team import Team, ask, finished, told

ONE = reply("", call("t", {}, id="a"))
USED = Usage(100, 0, 0, 20, 0, True)


def summarise(at: int = 1, **options: Any) -> Any:
    """A hook that has a model sum up before step `at`, and sends the summary."""

    async def prepare(state: Any) -> StepOverrides | None:
        if state.step_number != at:
            return None
        turn = await ask_model("Sum it up.", **options)
        return StepOverrides(messages=[UserMessage(turn.text)])

    return prepare


def test_it_counts_and_the_hook_uses_it() -> None:
    """The summary, the final call and the rounds all count: the fourth request is not sent (BUD-14)."""
    turns = [ONE, "sum", reply("half ", finish="length"), "never"]
    played = play(
        agent(
            turns,
            Bench().tool(),
            max_llm_calls=3,
            max_tool_iterations=1,
            tool_iteration_limit_finalization="",
            prepare_step=summarise(),
        )
    )

    assert (3, 3, 2) == (played.result.counters.llm_calls, len(played.asked), played.result.counters.steps)
    assert played.result.text.endswith("half ")
    assert [["go"], ["Sum it up."], ["sum"]] == [asked.texts[:1] for asked in played.asked]


def test_it_is_no_part_of_the_conversation() -> None:
    """It is one request of its own, and shows neither in the events nor in what is stored."""
    played = play(agent([ONE, "sum", "done"], Bench().tool(), prepare_step=summarise(system="Be brief.", max_tokens=9)))

    assert ((), "Be brief.", 9) == (played.asked[1].tools, played.asked[1].system, played.asked[1].max_tokens)
    assert ["done"] == [event.text for event in played.all(ContentDelta)]
    assert not any("sum" in str(message) for message in played.messages)


def test_refused_in_a_hook_it_is_the_limit() -> None:
    """The run ends at the limit, no `HookError`; the step's own call, which was not sent, is given back (B1, B2)."""
    played = play(agent([ONE, "never"], Bench().tool(), max_llm_calls=2, prepare_step=summarise()))

    assert LimitState("llm_calls", 2, 2) == played.result.limit
    assert ("llm_calls", "max_llm_calls", 1) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.counters.llm_calls,
    )


def test_refused_in_a_tool_it_is_an_error_result() -> None:
    """The tool may do without it; what leaves the tool is its result, and the run goes on."""

    async def think() -> str:
        """Think."""
        return (await ask_model("Think.")).text

    turns = [reply("", call("think", {}, id="a")), "thought", reply("", call("think", {}, id="b")), "never"]
    played = play(agent(turns, tool(think), max_llm_calls=3))

    assert [
        ("ok", "thought"),
        ("error", "LimitReachedError: the limit llm_calls (3) has no room for a helper call"),
    ] == [(event.status, event.text) for event in played.all(ToolFinished)]
    assert 3 == played.result.counters.llm_calls


def test_a_hook_may_catch_it() -> None:
    """The error says which limit, and has what the run has come to; the hook goes on without."""
    caught: list[LimitReachedError] = []

    async def prepare(state: Any) -> None:
        if state.step_number == 1:
            with pytest.raises(LimitReachedError) as error:
                await ask_model("Sum it up.")
            caught.append(error.value)

    played = play(agent([ONE, "done"], Bench().tool(), max_llm_calls=2, prepare_step=prepare))

    assert "done" == played.result.text
    assert LimitState("llm_calls", 2, 2) == caught[0].partial.limit
    assert 1 == len(caught[0].partial.steps)


@pytest.mark.parametrize(
    ("calls", "admitted"), [(3, [True, False]), (4, [True, False, False]), (5, [True, True, False])]
)
def test_the_held_last_call(calls: int, admitted: list[bool]) -> None:
    """While the last call is held for the run's own answer, helpers see one less (B2); then there is none left."""
    turns: list[bool] = []

    async def prepare(_state: Any) -> None:
        try:
            await ask_model("Think.")
        except LimitReachedError:
            turns.append(False)
        else:
            turns.append(True)

    def script(request: ModelRequest) -> Any:
        if request.messages == (UserMessage("Think."),):
            return "thought"
        return reply("", call("t", {})) if request.tools_on else "final"

    spec = agent(script, Bench().tool(), max_llm_calls=calls, llm_call_limit_finalization="", prepare_step=prepare)
    played = play(spec)

    assert ("final", "model", calls) == (
        played.result.text,
        played.result.finalized,
        played.result.counters.llm_calls,
    )
    assert admitted == turns


def test_the_root_pays() -> None:
    """A helper call of a sub-agent counts on every account above it, and the root's held call is not the helper's."""
    team = Team(root=[ask("child", "x"), "seen"], child=["never"])
    budget = Budget(max_llm_calls=50)

    async def prepare(_state: Any) -> None:
        await ask_model("Think.", system="root")

    async def scene(stage: Stage, most: int) -> Any:
        child = sub_agent(team.spec("child", prepare_step=prepare))
        root = team.spec("root", child, budget=budget, max_llm_calls=most, llm_call_limit_finalization="")
        return await stage.play(await stage.spawn(root)), await told(stage)

    async def small(stage: Stage) -> Any:
        return await scene(stage, 3)

    played, events = perform(small)

    assert "its limit of 3 model calls was reached" in finished(events, "child-x")[1]
    assert (2, 2, "seen") == (played.result.counters.llm_calls, budget.statistics().llm_calls, played.result.text)


class Prices:
    """One US dollar per token of the model `dear`; others are unknown."""

    def cost(self, model: str, usage: Usage) -> float | None:
        return float(usage.total_tokens) if model == "dear" and usage.complete else None

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        return float(input_tokens + output_tokens) if model == "dear" else None


def priced(turns: Any, *tools: Any, model: str = "dear", **options: Any) -> AgentSpec:
    return AgentSpec(model=StrictModel(turns, name=model), tools=tools, prices=Prices(), **options)


def test_it_costs() -> None:
    """Its usage and its price are the run's."""
    turns = [reply("hm", call("t", {}), usage=USED), reply("sum", usage=USED), reply("done", usage=USED)]
    played = play(priced(turns, Bench().tool(), prepare_step=summarise()))

    assert (360, 360.0, True) == (
        played.result.usage.total_tokens,
        played.result.cost,
        played.result.usage.complete,
    )


def test_it_is_estimated_where_nobody_counts() -> None:
    """Without a reported usage the limits are charged an estimate: a quarter of the bytes (B3)."""
    budget = Budget(max_total_tokens=10_000)
    turns = [reply("hm", call("t", {}), usage=USED), reply("12345678"), reply("done", usage=USED)]
    played = play(agent(turns, Bench().tool(), budget=budget, prepare_step=summarise()))

    assert (240, False) == (played.result.usage.total_tokens, played.result.usage.complete)
    assert 3 + 2 == budget.statistics().estimated_tokens  # "Sum it up." and "12345678"


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"max_total_tokens": 1000}, LimitState("total_tokens", 1000, 120)),
        ({"max_cost": 1000.0}, LimitState("cost", 1000.0, 120.0)),
    ],
)
def test_a_request_that_is_too_big_is_not_sent(limits: Any, limit: LimitState) -> None:
    """Tokens and cost are held before it leaves, its whole output with them; without room it is not counted (B1)."""
    turns = [reply("hm", call("t", {}), usage=USED), "never"]
    spec = priced(turns, Bench().tool(), prepare_step=summarise(max_tokens=900), **limits)
    played = play(spec)

    assert (limit, 1, 1) == (played.result.limit, played.result.counters.llm_calls, len(played.asked))


def test_an_unknown_price() -> None:
    """Where the cost is limited, a model that has no price is not called."""
    other = StrictModel(["never"], name="unpriced")
    played = play(
        priced(
            [reply("hm", call("t", {}), usage=USED)], Bench().tool(), max_cost=1e6, prepare_step=summarise(model=other)
        )
    )

    assert isinstance(played.error and played.error.__cause__, PriceUnknown)
    assert [] == other.asked
    assert 1 == played.result.counters.llm_calls


class Failing:
    """A model that fails, or returns what it likes, before or after its request is sent."""

    name = "failing"
    profile = Profile(reports_sending=True)

    def __init__(self, outcome: Any, *, sent: bool) -> None:
        self._outcome = outcome
        self._sent = sent

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        if self._sent:
            emit(RequestSent())
            emit(TextDelta("half"))
        await trio.lowlevel.checkpoint()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        turn: Turn = self._outcome
        return turn


PARTIAL = ModelError("broke off", partial=Turn((TextPart("half"),), usage=USED, end="lost"))


@pytest.mark.parametrize(
    ("outcome", "sent", "calls", "tokens", "estimated"),
    [
        (ModelError("no route"), False, 2, 240, 0),
        (ModelError("broke off"), True, 3, 240, 3),
        (PARTIAL, True, 3, 360, 0),
        (ValueError("a bug"), True, 3, 240, 3),
        ("no turn", True, 3, 240, 3),
    ],
)
def test_a_call_that_fails(outcome: Any, sent: bool, calls: int, tokens: int, estimated: int) -> None:
    """Not sent, it is given back; sent, it is settled with what it reported, else with the estimate (B1)."""
    errors: list[Exception] = []

    async def prepare(state: Any) -> None:
        if state.step_number == 1:
            with pytest.raises(Exception) as error:
                await ask_model("Sum it up.", model=Failing(outcome, sent=sent))
            errors.append(error.value)

    budget = Budget(max_total_tokens=10_000)
    turns = [reply("hm", call("t", {}), usage=USED), reply("done", usage=USED)]
    spec = AgentSpec(
        model=Trickle([[turn] for turn in turns]), tools=[Bench().tool()], budget=budget, prepare_step=prepare
    )
    played = play(spec)

    assert (calls, tokens) == (played.result.counters.llm_calls, played.result.usage.total_tokens)
    assert (estimated, 0) == (budget.statistics().estimated_tokens, budget.statistics().open_reservations)
    assert errors == [outcome] or [ModelReplyError] == [type(error) for error in errors]


def test_a_call_that_is_cut() -> None:
    """A cancel in the middle of it settles it: it was sent."""

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.cancel("enough")

    async def prepare(_state: Any) -> None:
        await ask_model("Think.", model=Trickle([["half", 5.0]]))

    budget = Budget(max_total_tokens=10_000)
    played = play(AgentSpec(model=Trickle([["never"]]), budget=budget, prepare_step=prepare), act=act)

    assert (1, 2, 0) == (
        played.result.counters.llm_calls,
        budget.statistics().estimated_tokens,
        budget.statistics().open_reservations,
    )


async def judge(text: str) -> str | None:
    """A model judges the answer."""
    verdict = await ask_model(f"Is this good? {text}")
    return None if verdict.text == "yes" else verdict.text


def test_a_judge_of_answers() -> None:
    """Any hook may ask: here the answer is judged, and asked for again."""
    played = play(agent(["first", "too short", "second", "yes"], check_answer=judge))

    assert ("second", 4, 2) == (
        played.result.text,
        played.result.counters.llm_calls,
        played.result.counters.steps,
    )


@pytest.mark.parametrize("prompt", ["", " \n", None])
def test_an_empty_prompt(prompt: Any) -> None:
    """Refused before anything is counted."""

    async def prepare(_state: Any) -> None:
        with pytest.raises(SpecError, match="say what the model should do"):
            await ask_model(prompt)

    played = play(agent(["done"], prepare_step=prepare))

    assert 1 == played.result.counters.llm_calls


def test_surrogates_are_replaced() -> None:
    """The prompt is sent as text that encodes."""
    played = play(agent([ONE, "sum", "done"], Bench().tool(), prepare_step=_odd))

    assert ["odd �"] == played.asked[1].texts


async def _odd(state: Any) -> None:
    if state.step_number == 1:
        await ask_model("odd \ud800")


def test_outside_of_a_run() -> None:
    """There is no account to draw on: the error says what to do."""

    async def scene(_stage: Stage) -> None:
        with pytest.raises(SpecError, match="outside of one, use the model itself"):
            await ask_model("Think.")

    perform(scene)


def test_after_the_end_of_the_run() -> None:
    """Its account is closed."""
    said: list[str] = []

    async def at_the_end(_result: Any) -> None:
        try:
            await ask_model("Think.")
        except Exception as error:  # noqa: BLE001
            said.append(type(error).__name__)

    played = play(agent(["done"], on_run_end=at_the_end))

    assert ["RunOver"] == said
    assert 1 == played.result.counters.llm_calls


def test_pruned_and_summarised() -> None:
    """The two together: a shorter conversation and a summary, whole exchanges only."""

    async def prepare(state: Any) -> StepOverrides | None:
        if state.step_number != 2:
            return None
        turn = await ask_model("Sum it up.")
        return StepOverrides(messages=[UserMessage(turn.text), *prune_messages(state.messages, keep_last=2)[1:]])

    turns = [reply("", call("t", {}, id="a")), reply("", call("t", {}, id="b")), "sum", "done"]
    played = play(agent(turns, Bench().tool(), prepare_step=prepare))

    assert ("done", ["sum"]) == (played.result.text, played.asked[-1].texts)
    assert ["user", "assistant", "tool"] == [_role(message) for message in played.asked[-1].messages]


def _role(message: Any) -> str:
    return str(message.__struct_config__.tag)
