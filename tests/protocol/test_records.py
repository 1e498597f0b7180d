"""What a journal holds of an agent, read again: from any record on, and as of any step."""

from __future__ import annotations

import msgspec
import pytest

from protocol.codec import encode
from protocol.events import RunFinished, StepFinished
from protocol.limits import Limits, LimitState
from protocol.records import AgentFacts, EndFacts, Record, RunFacts, end_of, facts_of_end, fold, fold_until
from protocol.result import StepResult
from protocol.run import Cancelled, Failed, Finished, RunEnd, RunState, result_of
from protocol.spending import AccountFacts
from protocol.turns import AssistantMessage, TextPart, UserMessage
from protocol.usage import NO_USAGE

LIMIT = LimitState("llm_calls", 2, 2)


def step(number: int) -> StepResult:
    return StepResult(number, f"text {number}", "", (), (), "stop", NO_USAGE, 0.5, False)


def run(*steps: StepResult, children: tuple[RunFacts, ...] = (), id: str = "r1") -> RunFacts:
    state = msgspec.Raw(encode(RunState(id, "go", Limits())))
    texts = [one.text for one in steps]
    return RunFacts(id, "a", state, AccountFacts(Limits()), Limits(), list(steps), texts, children=list(children))


def record(first: int, facts: AgentFacts, *events: bytes, whole: bool = False) -> Record:
    return Record("a1", first, len(events), b"\n".join(events), encode(facts), whole)


def finished(number: int) -> bytes:
    return encode(StepFinished(run="r1", step=number, finish_reason="stop", usage=NO_USAGE))


SUMMARY = result_of(
    RunState("r1", "go", Limits()),
    Finished("model", "stop", answer="hi"),
    messages=(),
    usage=NO_USAGE,
    llm_calls=1,
    cost=None,
    elapsed_seconds=1.0,
).summary()
HELLO, ANSWER = UserMessage("hello"), AssistantMessage((TextPart("hi"),))
RECORDS = [
    record(1, AgentFacts(name="a", epoch="e", messages=[HELLO]), whole=True),
    record(1, AgentFacts(run=run(step(0))), finished(0)),
    record(2, AgentFacts(run=run(step(1)), messages=[ANSWER]), finished(1)),
    record(3, AgentFacts(run=run())),
    record(3, AgentFacts(), finished(2), encode(RunFinished(run="r1", summary=SUMMARY))),
]


def test_what_grows_is_put_together() -> None:
    """Each record holds what was added; the last one says what stands."""
    stored = fold("a1", RECORDS[:4])

    assert ("a", "e", [HELLO, ANSWER], 2) == (stored.name, stored.epoch, stored.messages, stored.end)
    assert stored.run is not None
    assert [step(0), step(1)] == stored.run.whole_state().steps
    assert ["text 0", "text 1"] == stored.run.whole_state().texts


def test_a_run_that_is_over_is_gone() -> None:
    """Nothing is left to go on with; the numbers go on."""
    stored = fold("a1", RECORDS)

    assert (None, 4) == (stored.run, stored.end)


def test_a_whole_record_needs_none_before_it() -> None:
    """It says all; what came before does not show through."""
    facts = AgentFacts(name="b", epoch="e", anew=True, messages=[ANSWER], run=run(step(0), step(1), step(2)))
    after = [record(9, facts, whole=True), record(9, AgentFacts(run=run(step(3))))]

    assert encode(fold("a1", after)) == encode(fold("a1", [*RECORDS[:2], *after]))


def test_messages_may_begin_anew() -> None:
    """A partial answer that was taken back is not there any more."""
    stored = fold("a1", [*RECORDS[:3], record(3, AgentFacts(anew=True, messages=[HELLO]))])

    assert [HELLO] == stored.messages


def test_a_record_of_deltas_changes_nothing_but_the_number() -> None:
    """Facts are left out where nothing but pieces of a reply has come."""
    deltas = Record("a1", 3, 7, b"", b"")
    before, after = fold("a1", RECORDS[:3]), fold("a1", [*RECORDS[:3], deltas])

    assert (2, 9) == (before.end, after.end)
    assert encode(before.run) == encode(after.run)


def test_steps_of_children_are_put_together() -> None:
    """At any depth, by run."""
    told = [run(children=(run(step(0), id="r2"),)), run(children=(run(step(1), id="r2"), run(step(0), id="r3")))]
    stored = fold("a1", [record(1, AgentFacts(run=one)) for one in told])

    assert stored.run is not None
    assert [("r2", 2), ("r3", 1)] == [(child.run, len(child.steps)) for child in stored.run.children]


@pytest.mark.parametrize(("number", "messages", "going"), [(0, 1, True), (1, 2, True), (2, 2, False)])
def test_an_agent_as_of_a_step(number: int, messages: int, going: bool) -> None:
    """When it had ended; with the last one the run was over."""
    stored = fold_until("a1", RECORDS, "r1", number)

    assert stored is not None
    assert (messages, going) == (len(stored.messages), stored.run is not None)
    assert not going or stored.run is None or number + 1 == len(stored.run.steps)


@pytest.mark.parametrize(("run_id", "number"), [("r1", 3), ("r2", 0)])
def test_a_step_that_is_not_there(run_id: str, number: int) -> None:
    """`None`, whatever was asked for."""
    assert fold_until("a1", RECORDS, run_id, number) is None


def test_a_step_whose_record_is_gone() -> None:
    """What is left tells of later steps alone: a wrong one is not given in its place."""
    facts = AgentFacts(name="a", epoch="e", run=run(step(0), step(1), step(2)))

    assert fold_until("a1", [record(9, facts, whole=True)], "r1", 1) is None


@pytest.mark.parametrize(
    "end",
    [
        Finished("model", "stop", answer="a"),
        Finished("llm_calls", "max_llm_calls", limit=LIMIT, tell_limit=True, finalized="fallback", closing_text="x"),
        Cancelled("enough"),
    ],
)
def test_an_end_is_written_and_read(end: RunEnd) -> None:
    """Field by field."""
    assert end == end_of(msgspec.json.decode(encode(facts_of_end(end)), type=EndFacts))


def test_of_a_failure_the_words_are_left() -> None:
    """Its code, text and limit stand; the cause is what it said."""
    end = end_of(facts_of_end(Failed(KeyError("k"), "hook_error", "a hook failed", LIMIT)))

    assert isinstance(end, Failed)
    assert ("hook_error", "a hook failed", LIMIT) == (end.code, end.message, end.limit)
    assert "KeyError: 'k'" == str(end.error)
