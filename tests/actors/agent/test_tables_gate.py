"""The table of rule G12: a gate at two rounds, three patterns of decisions, seven columns of `max_llm_calls`.

A cell is written as what becomes of each turn of the model, in order: `R` its call ran, `X` it was discarded by an
approval, `D` the gate said no, `N` a limit left it not run, `F` it is the final answer. The string is written down
from the table, not computed; requests, counters, history and result are rebuilt from it.
"""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import attrs
import pytest

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, LimitsWarning
from protocol.events import ContinuationRequired, Finalizing, LimitReached
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.support.play import play
from tests.support.scripts import Bench, calls_while_on
from tests.support.strict import Asked, StrictModel

T = 2
Pattern: TypeAlias = Literal["decline", "approve, decline", "approve+discard, decline"]
TOOL_TEXT = "Sum up what the tools gave."
LLM_TEXT = "This was the last call."
BUILT_IN = "You have reached the limit of 2 rounds of tool calls"
DECLINED = "System notification: Maximum iteration limit reached. Continuation declined."
RESULTS = {
    "R": ("ok", "1", True),
    "X": ("discarded", "Tool execution canceled by user during continuation.", False),
    "D": ("discarded", "Tool call not run: iteration limit reached, continuation declined.", False),
    "N": ("not_run", "Not run: the limit of {max} model calls was reached.", False),
}
ANSWERS = {
    "decline": [ContinuationResponse("decline")],
    "approve, decline": [ContinuationResponse("approve"), ContinuationResponse("decline")],
    "approve+discard, decline": [
        ContinuationResponse("approve", discard_tool_calls=True),
        ContinuationResponse("decline"),
    ],
}


@attrs.frozen
class Cell:
    """One cell: the turns, and the counts that the table itself gives."""

    pattern: Pattern
    allowed: int | None
    fl: bool
    turns: str
    calls: int
    rounds: int
    questions: tuple[tuple[int, int], ...]
    ft: bool = False
    final_text: Literal["gate", "FT", "FL"] | None = None
    """Whose text the final call gets: FT's or the built-in one after a decline, or that of a finalization."""

    def __str__(self) -> str:
        return f"{self.pattern},L={self.allowed},FL={self.fl},FT={self.ft}"


FT_OFF = [
    # decline
    *[Cell("decline", allowed, False, "RRDF", 4, 2, ((2, 2),), final_text="gate") for allowed in (None, 7, 6, 5, 4)],
    *[Cell("decline", allowed, True, "RRDF", 4, 2, ((2, 2),), final_text="gate") for allowed in (7, 6, 5)],
    Cell("decline", 3, False, "RRN", 3, 2, ()),
    Cell("decline", 3, True, "RRF", 3, 2, (), final_text="FL"),
    # approve, decline
    *[
        Cell("approve, decline", allowed, False, "RRRRDF", 6, 4, ((2, 2), (2, 4)), final_text="gate")
        for allowed in (None, 7, 6)
    ],
    Cell("approve, decline", 7, True, "RRRRDF", 6, 4, ((2, 2), (2, 4)), final_text="gate"),
    Cell("approve, decline", 5, False, "RRRRN", 5, 4, ((2, 2),)),
    Cell("approve, decline", 5, True, "RRRRF", 5, 4, ((2, 2),), final_text="FL"),
    Cell("approve, decline", 4, False, "RRRR", 4, 4, ((2, 2),)),
    Cell("approve, decline", 3, False, "RRN", 3, 2, ()),
    Cell("approve, decline", 3, True, "RRF", 3, 2, (), final_text="FL"),
    # approve+discard, decline
    *[
        Cell("approve+discard, decline", allowed, False, "RRXRRDF", 7, 4, ((2, 2), (2, 4)), final_text="gate")
        for allowed in (None, 7)
    ],
    Cell("approve+discard, decline", 6, False, "RRXRRN", 6, 4, ((2, 2),)),
    Cell("approve+discard, decline", 6, True, "RRXRRF", 6, 4, ((2, 2),), final_text="FL"),
    Cell("approve+discard, decline", 5, False, "RRXRR", 5, 4, ((2, 2),)),
    Cell("approve+discard, decline", 5, True, "RRXRF", 5, 3, ((2, 2),), final_text="FL"),
    Cell("approve+discard, decline", 4, False, "RRXR", 4, 3, ((2, 2),)),
    Cell("approve+discard, decline", 3, False, "RRN", 3, 2, ()),
    Cell("approve+discard, decline", 3, True, "RRF", 3, 2, (), final_text="FL"),
]
DIFFERENT_WITH_FT = [
    *[Cell(pattern, 3, False, "RRF", 3, 2, (), ft=True, final_text="FT") for pattern in ANSWERS],  # type: ignore[arg-type]
    Cell("approve, decline", 5, False, "RRRRF", 5, 4, ((2, 2),), ft=True, final_text="FT"),
    Cell("approve+discard, decline", 6, False, "RRXRRF", 6, 4, ((2, 2),), ft=True, final_text="FT"),
]
_OVERRIDDEN = {(cell.pattern, cell.allowed, cell.fl) for cell in DIFFERENT_WITH_FT}
SAME_WITH_FT = [
    attrs.evolve(cell, ft=True) for cell in FT_OFF if (cell.pattern, cell.allowed, cell.fl) not in _OVERRIDDEN
]
CELLS = [*FT_OFF, *DIFFERENT_WITH_FT, *SAME_WITH_FT]


def spec_of(cell: Cell, bench: Bench, asked: list[ContinuationRequest]) -> AgentSpec:
    answers = iter(ANSWERS[cell.pattern])

    def decide(request: ContinuationRequest) -> ContinuationResponse:
        asked.append(request)
        return next(answers)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitsWarning)
        return AgentSpec(
            model=StrictModel(calls_while_on()),
            tools=[bench.tool()],
            max_tool_iterations=T,
            max_llm_calls=cell.allowed,
            continuation=decide,
            tool_iteration_limit_finalization=TOOL_TEXT if cell.ft else None,
            llm_call_limit_finalization=LLM_TEXT if cell.fl else None,
        )


def history_after(cell: Cell, turns: int) -> list[Message]:
    """The conversation after so many turns of the model."""
    messages: list[Message] = [UserMessage("go")]
    for number, letter in enumerate(cell.turns[:turns], start=1):
        if letter == "F":
            messages.append(AssistantMessage((TextPart("final"),)))
            continue
        id = f"c{number}"
        status, text, entered = RESULTS[letter]
        result = ToolResult(id, "t", status, text.format(max=cell.allowed), entered)  # type: ignore[arg-type]
        messages += [AssistantMessage((ToolCall(id, "t", "{}"),)), ToolMessage((result,))]
        if letter == "D":
            messages.append(UserMessage(DECLINED))
    return messages


def tail_of(cell: Cell) -> str | None:
    if cell.final_text == "gate":
        return TOOL_TEXT if cell.ft else BUILT_IN
    return {"FT": TOOL_TEXT, "FL": LLM_TEXT, None: None}[cell.final_text]


def the_same_request(cell: Cell, number: int, asked: Asked) -> bool:
    """Whether request `number` (from 0) is what the cell says, the built-in instruction by its beginning."""
    final = cell.turns[number] == "F"
    tail = tail_of(cell) if final else None
    expected = Asked(
        tuple(history_after(cell, number)), asked.tail, None, ("t",), "none" if final else "auto", None, None
    )
    same_tail = asked.tail == tail or (tail == BUILT_IN and asked.tail is not None and asked.tail.startswith(BUILT_IN))
    return expected == asked and same_tail


def limits_of(cell: Cell) -> list[LimitState]:
    """The limits that changed the course, in order: each question, then what ended the run without one."""
    limits = [LimitState("tool_iterations", limit, limit) for limit, _ in cell.questions]
    if cell.final_text == "FT":
        limits.append(LimitState("tool_iterations", T, T))
    elif cell.final_text != "gate":
        assert cell.allowed is not None
        limits.append(LimitState("llm_calls", cell.allowed, cell.allowed))
    return limits


def test_the_table_has_all_its_cells() -> None:
    """Every pattern has every column, with FT off and on, each once."""
    keys = [(cell.pattern, cell.allowed, cell.fl, cell.ft) for cell in CELLS]
    columns = {(None, False), (7, False), (6, False), (5, False), (5, True), (4, False), (3, False), (3, True)}

    assert len(set(keys)) == len(keys)
    for pattern in ANSWERS:
        for ft in (False, True):
            assert columns <= {(cell.allowed, cell.fl) for cell in CELLS if (cell.pattern, cell.ft) == (pattern, ft)}


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_g12(cell: Cell) -> None:
    """G12: calls, rounds, questions, every request, the history and the result are what the table says."""
    bench = Bench()
    questions: list[ContinuationRequest] = []
    played = play(spec_of(cell, bench, questions))
    result = played.result
    final = cell.turns.endswith("F")

    assert cell.calls == len(played.asked)
    assert [True] * cell.calls == [the_same_request(cell, number, asked) for number, asked in enumerate(played.asked)]
    assert history_after(cell, len(cell.turns)) == list(played.messages)
    assert cell.questions == tuple((question.max_iterations, question.total_iterations) for question in questions)
    assert questions == played.all(ContinuationRequired)
    assert (cell.calls, cell.rounds, cell.rounds) == (
        result.counters.llm_calls,
        result.counters.tool_iterations,
        result.counters.tool_calls,
    )
    assert {"t": cell.rounds} == bench.runs
    limits = limits_of(cell)
    assert limits == [event.limit for event in played.all(LimitReached)]
    assert limits[-1] == result.limit
    assert limits[-1].name == result.stopped_by
    reason = "max_iterations" if limits[-1].name == "tool_iterations" else "max_llm_calls"
    if final and cell.final_text != "gate":
        reason = "stop"
    text, finalized = ("final", "model") if final else ("", None)
    assert (text, final, reason, finalized) == (result.text, result.answered, result.finish_reason, result.finalized)
    assert ([limits[-1]] if final else []) == [event.limit for event in played.all(Finalizing)]


@pytest.mark.parametrize("calls", range(1, 9))
@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_gate_that_cannot_be_asked_warns_at_construction(window: int, calls: int) -> None:
    """F7: a gate with L <= T+1 warns and says which number would do; with more it does not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AgentSpec(
            model=StrictModel([]),
            max_tool_iterations=window,
            max_llm_calls=calls,
            continuation=lambda _request: ContinuationResponse("approve"),
        )
    texts = [str(warning.message) for warning in caught]

    if calls <= window + 1:
        assert [f"set it to {window + 2} or more"] == [text[-len("set it to 3 or more") :] for text in texts]
        assert texts[0].startswith("the gate cannot be asked")
    else:
        assert [] == texts
