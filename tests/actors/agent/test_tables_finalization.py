"""The table of rule F7: what two limits and two finalizations come to, with a model that always asks for one tool.

Each cell is what the table says: rounds, and how the run ends. Everything else is rebuilt from it: the number of model
calls, what every request holds, the counters, the history and the result.
"""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import attrs
import pytest

from actors import AgentSpec, LimitsWarning
from protocol.events import Finalizing, LimitReached, StepStarted
from protocol.limits import LimitState
from protocol.turns import AssistantMessage, Message, TextPart, ToolCall, ToolMessage, ToolResult, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.strict import Asked, StrictModel

End: TypeAlias = Literal["answer", "tool_iterations", "llm_calls"]
TOOL_TEXT = "Sum up what the tools gave."
LLM_TEXT = "This was the last call."
WINDOWS = (1, 2, 3, 5)


@attrs.frozen
class Cell:
    """One cell of the table, for one T."""

    t: int
    allowed: int | None
    ft: bool
    fl: bool
    rounds: int
    end: End
    uses: Literal["FT", "FL"] | None
    """Whose text the final call gets."""

    def __str__(self) -> str:
        return f"T={self.t},L={self.allowed},FT={self.ft},FL={self.fl}"


def cells(t: int) -> list[Cell]:
    """The four rows of the table for one T, column by column."""
    columns: list[tuple[int | None, str]] = [(None, "more"), (t + 2, "more"), (t + 7, "more"), (t + 1, "T+1")]
    if t > 1:
        columns.append((t, "T"))
        columns += [(fewer, "less") for fewer in range(2, t)]
    columns.append((1, "1"))
    rows: list[tuple[bool, bool, dict[str, tuple[str, End, Literal["FT", "FL"] | None]]]] = [
        (
            False,
            False,
            {
                "more": ("T", "tool_iterations", None),
                "T+1": ("T", "tool_iterations", None),
                "T": ("T", "llm_calls", None),
                "less": ("L", "llm_calls", None),
                "1": ("1", "llm_calls", None),
            },
        ),
        (
            False,
            True,
            {
                "more": ("T", "tool_iterations", None),
                "T+1": ("T", "answer", "FL"),
                "T": ("T-1", "answer", "FL"),
                "less": ("L-1", "answer", "FL"),
                "1": ("0", "answer", "FL"),
            },
        ),
        (
            True,
            False,
            {
                "more": ("T", "answer", "FT"),
                "T+1": ("T", "answer", "FT"),
                "T": ("T", "llm_calls", None),
                "less": ("L", "llm_calls", None),
                "1": ("1", "llm_calls", None),
            },
        ),
        (
            True,
            True,
            {
                "more": ("T", "answer", "FT"),
                "T+1": ("T", "answer", "FL"),
                "T": ("T-1", "answer", "FL"),
                "less": ("L-1", "answer", "FL"),
                "1": ("0", "answer", "FL"),
            },
        ),
    ]
    found: list[Cell] = []
    for ft, fl, row in rows:
        for allowed, column in columns:
            told, end, uses = row[column]
            rounds = {"T": t, "T-1": t - 1, "L": allowed or 0, "L-1": (allowed or 0) - 1, "1": 1, "0": 0}[told]
            found.append(Cell(t, allowed, ft, fl, rounds, end, uses))
    return found


CELLS = [cell for t in WINDOWS for cell in cells(t)]


def spec_of(cell: Cell, bench: Bench) -> AgentSpec:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitsWarning)
        return AgentSpec(
            model=StrictModel(calls_while_on(text="hm")),
            tools=[bench.tool()],
            max_tool_iterations=cell.t,
            max_llm_calls=cell.allowed,
            tool_iteration_limit_finalization=TOOL_TEXT if cell.ft else None,
            llm_call_limit_finalization=LLM_TEXT if cell.fl else None,
        )


def exchange(number: int, *, ran: bool = True) -> list[Message]:
    id = f"c{number}"
    said = AssistantMessage((TextPart("hm"), ToolCall(id, "t", "{}")))
    not_run = ToolResult(id, "t", "not_run", "", entered=False)
    return [said, ToolMessage((ToolResult(id, "t", "ok", "1", entered=True) if ran else not_run,))]


def expected_requests(cell: Cell) -> list[Asked]:
    """Each request: the prompt and the exchanges so far, tools on; the final one with its text as the tail, tools off."""
    calls = cell.rounds + (0 if cell.end == "llm_calls" else 1)
    requests: list[Asked] = []
    for number in range(calls):
        messages: list[Message] = [UserMessage("go")]
        for done in range(number):
            messages += exchange(done + 1)
        final = cell.end == "answer" and number == calls - 1
        text = {"FT": TOOL_TEXT, "FL": LLM_TEXT, None: None}[cell.uses] if final else None
        requests.append(Asked(tuple(messages), text, None, ("t",), "none" if final else "auto", None, None))
    return requests


def limit_of(cell: Cell) -> LimitState:
    """The limit whose text was used, or that ended the run: a call is counted when it is reserved, so it is spent."""
    if cell.uses == "FL" or cell.end == "llm_calls":
        assert cell.allowed is not None
        return LimitState("llm_calls", cell.allowed, cell.allowed)
    return LimitState("tool_iterations", cell.t, cell.t)


def history_but_for_not_run_texts(played: Played) -> list[Message]:
    """The stored conversation, with the texts of results that were not run left out."""
    return [
        ToolMessage(tuple(r if r.entered else ToolResult(r.call, r.name, r.status, "") for r in message.results))
        if isinstance(message, ToolMessage)
        else message
        for message in played.messages
    ]


def test_the_table_has_all_its_cells() -> None:
    """Four rows, and for each T the columns that it has."""
    assert {1: 4 * 5, 2: 4 * 6, 3: 4 * 7, 5: 4 * 9} == {t: len(cells(t)) for t in WINDOWS}


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_f7(cell: Cell) -> None:
    """F7: rounds, model calls, every request, the history and the result are what the table says."""
    bench = Bench()
    played = play(spec_of(cell, bench))
    result = played.result
    requests = expected_requests(cell)
    answered = cell.end == "answer"
    history: list[Message] = [UserMessage("go")]
    for number in range(cell.rounds):
        history += exchange(number + 1)
    if answered:
        history.append(AssistantMessage((TextPart("final"),)))
    elif cell.end == "tool_iterations":
        history += exchange(cell.rounds + 1, ran=False)

    assert requests == list(played.asked)
    assert {"t": cell.rounds} == {"t": bench.runs.get("t", 0)}
    assert (len(requests), cell.rounds, cell.rounds) == (
        result.counters.llm_calls,
        result.counters.tool_iterations,
        result.counters.tool_calls,
    )
    assert history == history_but_for_not_run_texts(played)
    limit = limit_of(cell)
    assert limit == result.limit
    assert limit.name == result.stopped_by
    assert answered == result.answered
    if answered:
        assert ("final", "stop", "model") == (result.text, result.finish_reason, result.finalized)
    else:
        reason = "max_iterations" if cell.end == "tool_iterations" else "max_llm_calls"
        said = "\n\n".join(["hm"] * len(requests))
        assert (said, reason, None) == (result.text, result.finish_reason, result.finalized)
    assert [limit] == [event.limit for event in played.all(LimitReached)]
    assert ([limit] if answered else []) == [event.limit for event in played.all(Finalizing)]
    assert [answered and number == len(requests) - 1 for number in range(len(requests))] == [
        event.final for event in played.all(StepStarted)
    ]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_construction_warns_where_the_limits_cannot_work_together(cell: Cell) -> None:
    """F7: FT with L <= T, and FL with L == 1, warn at construction and say why; nothing else does."""
    texts: list[str] = []
    if cell.fl and cell.allowed == 1:
        texts.append("llm_call_limit_finalization with max_llm_calls=1")
    if cell.ft and cell.allowed is not None and cell.allowed <= cell.t:
        texts.append(f"tool_iteration_limit_finalization needs a model call after round {cell.t}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AgentSpec(
            model=StrictModel([]),
            max_tool_iterations=cell.t,
            max_llm_calls=cell.allowed,
            tool_iteration_limit_finalization="" if cell.ft else None,
            llm_call_limit_finalization="" if cell.fl else None,
        )

    assert len(texts) == len(caught)
    for text, warning in zip(texts, caught, strict=True):
        assert str(warning.message).startswith(text)
        assert (LimitsWarning, __file__) == (warning.category, warning.filename)
