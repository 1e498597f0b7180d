"""The grammar of a run's events: what may follow what, against a model that knows only the words of the rule."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from protocol.events import TERMINAL_EVENTS, ContextCompacted, RunEvent
from protocol.grammar import CALL_TRANSITIONS, RUN_TRANSITIONS, CallState, Grammar, RunPhase

from .speech import KINDS, said

ENDS = {"finish", "fail", "cancel"}


def after(*kinds: str) -> Grammar:
    """A grammar that has heard these, all of which it must take."""
    grammar = Grammar()
    for kind in kinds:
        name, _, about = kind.partition(":")
        assert grammar.admit(said(name, about)), kind
    return grammar


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"begin", "resume"}])
def test_nothing_comes_before_the_beginning(kind: str) -> None:
    """A run begins, or is taken up again, before it says anything."""
    grammar = Grammar()

    assert not grammar.admit(said(kind, "c"))
    assert "new" == grammar.phase


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", sorted(ENDS))
def test_nothing_comes_after_the_end(kind: str, end: str) -> None:
    """One terminal event, and it is the last (R4)."""
    grammar = after("begin", end)

    assert not grammar.admit(said(kind, "c"))
    assert "over" == grammar.phase


@pytest.mark.parametrize("open_thing", ["requested:c", "asked:q", "approval asked:q"])
@pytest.mark.parametrize("end", sorted(ENDS))
def test_the_end_waits_for_what_is_open(open_thing: str, end: str) -> None:
    """No run ends with a call that has no result, or a question that has no answer."""
    grammar = after("begin", open_thing)

    assert not grammar.admit(said(end))
    assert "running" == grammar.phase


@pytest.mark.parametrize(
    ("heard", "next_one", "taken"),
    [
        ((), "requested", True),
        ((), "started", False),
        ((), "progress", False),
        ((), "finished not entered", False),
        (("requested:c",), "requested", False),
        (("requested:c",), "started", True),
        (("requested:c",), "progress", False),
        (("requested:c",), "finished not entered", True),
        (("requested:c",), "finished entered", False),
        (("requested:c", "started:c"), "started", False),
        (("requested:c", "started:c"), "progress", True),
        (("requested:c", "started:c", "progress:c"), "progress", True),
        (("requested:c", "started:c"), "finished not entered", False),
        (("requested:c", "started:c"), "finished entered", True),
        (("requested:c", "started:c", "finished entered:c"), "finished entered", False),
        (("requested:c", "started:c", "finished entered:c"), "progress", False),
    ],
)
def test_the_life_of_a_call(heard: tuple[str, ...], next_one: str, taken: bool) -> None:
    """Asked for, entered or not, ended once, and truthful about whether it was entered."""
    assert taken is after("begin", *heard).admit(said(next_one, "c"))


def test_calls_do_not_mix() -> None:
    """Each call has a life of its own."""
    grammar = after("begin", "requested:a", "requested:b", "started:b", "finished entered:b")

    assert {"a": False} == grammar.open_calls
    assert not grammar.admit(said("started", "b"))
    assert grammar.admit(said("started", "a"))
    assert {"a": True} == grammar.open_calls


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("begin", False),
        ("pause", False),
        ("resume", True),
        ("finish", False),
        ("fail", False),
        ("cancel", False),
        ("delta", True),
        ("requested", False),
        ("started", True),
        ("finished entered", False),
        ("finished not entered", True),
        ("asked", True),
        ("answered", False),
        ("approval asked", True),
    ],
)
def test_what_a_paused_run_may_say(kind: str, taken: bool) -> None:
    """A pause is not an end (T7): the run speaks on, and its calls wait; it is not begun, paused or ended beside them."""
    grammar = after("begin", "requested:c", "pause")

    assert taken is grammar.admit(said(kind, "c"))
    assert ("running" if kind == "resume" else "paused") == grammar.phase


@pytest.mark.parametrize("end", sorted(ENDS))
def test_a_paused_run_may_end_when_its_calls_have(end: str) -> None:
    """Cancelled or stopped at a pause: the calls that waited are answered, and then comes the end, without a resume."""
    grammar = after("begin", "requested:c", "pause", "finished not entered:c", end)

    assert "over" == grammar.phase
    assert not grammar.admit(said("resume"))


def test_a_run_may_pause_again() -> None:
    """Each pause has its resume; the calls of the one before are closed between them."""
    first = ("requested:c", "pause", "resume", "finished not entered:c")
    grammar = after("begin", *first, *first, "finish")

    assert "over" == grammar.phase


def test_a_restored_pause_is_a_pause_again() -> None:
    """The calls that waited wait on under their ids; the pause is told again, after the resume."""
    grammar = Grammar()
    grammar.restore({"c": "requested"}, [])
    taken = [grammar.admit(said(kind, "c")) for kind in ("pause", "resume", "requested", "pause", "resume")]

    assert [False, True, False, True, True] == taken
    assert {"c": False} == grammar.open_calls


def test_a_restored_run_goes_on_where_it_stood() -> None:
    """Calls that were asked for before may begin and end; a question that was asked is not asked again."""
    grammar = Grammar()
    grammar.restore({"a": "requested"}, ["q"])
    taken = [grammar.admit(said(*kind)) for kind in (("resume", ""), ("asked", "q"), ("answered", "q"))]

    assert [True, False, True] == taken
    assert not grammar.admit(said("finish"))
    assert [True, True, True] == [grammar.admit(said(kind, "a")) for kind in ("started", "finished entered", "finish")]


def test_the_tables_are_complete() -> None:
    """Every phase is reached and every end is there; nothing leads out of `over`."""
    phases = set(get_args(RunPhase))
    ends = {(phase, kind) for phase in ("running", "paused") for kind in TERMINAL_EVENTS}
    calls = {state for row in CALL_TRANSITIONS.values() for pair in row.items() for state in pair}

    assert phases == {"new", *RUN_TRANSITIONS.values()}
    assert ends == {key for key, phase in RUN_TRANSITIONS.items() if phase == "over"}
    assert {"new", "running", "paused"} == {phase for phase, _ in RUN_TRANSITIONS}
    assert {("running", "paused")} == {
        (phase, target) for (phase, _), target in RUN_TRANSITIONS.items() if target == "paused"
    }
    assert {None, *get_args(CallState)} == calls
    assert all("finished" not in row for row in CALL_TRANSITIONS.values())


class GrammarMachine(RuleBasedStateMachine):
    """Hears anything at any time; the model keeps a plain list of what was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.grammar = Grammar()
        self.taken: list[tuple[str, str]] = []

    def holds(self, kind: str, about: str) -> bool:
        """Whether the rule of R4 lets this one come, told from the list of all that came before."""
        last = next((k for k, _ in reversed(self.taken) if k in {"begin", "pause", "resume", *ENDS}), None)
        if last in ENDS:
            return False
        if last is None:
            return kind in {"begin", "resume"}
        if kind in ENDS:
            return not self.open_calls() and not self.open_questions()
        if kind == "resume":
            return True
        if kind == "begin" or (kind == "pause" and last == "pause"):
            return False
        match kind:
            case "requested":
                return about not in self.open_calls()
            case "started":
                return self.open_calls().get(about) is False
            case "progress" | "finished entered":
                return self.open_calls().get(about) is True
            case "finished not entered":
                return self.open_calls().get(about) is False
            case "asked" | "approval asked":
                return about not in self.open_questions()
            case "answered" | "approval answered":
                return about in self.open_questions()
        return True

    def open_calls(self) -> dict[str, bool]:
        calls: dict[str, bool] = {}
        for kind, about in self.taken:
            if kind == "requested":
                calls[about] = False
            elif kind == "started":
                calls[about] = True
            elif kind.startswith("finished"):
                del calls[about]
        return calls

    def open_questions(self) -> list[str]:
        questions: list[str] = []
        for kind, about in self.taken:
            if kind.endswith("asked"):
                questions.append(about)
            elif kind.endswith("answered"):
                questions.remove(about)
        return questions

    @rule(kind=st.sampled_from(KINDS), about=st.sampled_from(["a", "b"]))
    def hear(self, kind: str, about: str) -> None:
        if kind in ENDS and self.taken and len(self.taken) < 12:
            return  # an end that comes early leaves nothing to look at
        expected = self.holds(kind, about)
        event: RunEvent = said(kind, about)

        assert expected is self.grammar.admit(event)
        if expected:
            self.taken.append((kind, about))

    @invariant()
    def it_knows_what_is_open(self) -> None:
        assert self.open_calls() == self.grammar.open_calls
        assert tuple(self.open_questions()) == self.grammar.open_requests


TestGrammar: Any = GrammarMachine.TestCase
TestGrammar.settings = settings(max_examples=200, stateful_step_count=60)


@pytest.mark.parametrize(
    ("heard", "taken"),
    [
        ((), True),
        (("delta",), True),
        (("requested:c",), False),
        (("requested:c", "started:c"), False),
        (("requested:c", "finished not entered:c"), True),
        (("asked:q",), False),
        (("asked:q", "answered:q"), True),
        (("approval asked:q",), False),
        (("requested:c", "pause"), False),
        (("pause",), False),
        (("pause", "resume"), True),
    ],
)
def test_a_conversation_is_compacted_between_exchanges(heard: tuple[str, ...], taken: bool) -> None:
    """Never between a call and its result, while a request is open, or in a pause."""
    assert taken is after("begin", *heard).admit(
        ContextCompacted(run="r1", by="trim", messages_before=4, messages_after=2, tokens_before=9, tokens_after=4)
    )
