"""The planner as a model: real tools, the real loop, and histories that interrupt it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from actors import (
    AgentSpec,
    ContinuationRequest,
    ContinuationResponse,
    Limits,
    RunResult,
    always,
    files,
    never,
    open_runtime,
)
from actors.models.planner import BANNER, Planner
from protocol.errors import SpecError
from protocol.model import ModelEvent, ModelRequest, TextDelta
from protocol.turns import AssistantMessage, Message, ToolMessage, ToolResult, ToolStatus, Turn, UserMessage
from protocol.usage import NO_USAGE


def make_tree(root: Path, *, files_: int, folders: int = 4) -> None:
    """`files_` files over some folders, two of them with a mark."""
    for number in range(files_):
        folder = root / f"d{number % folders}" / ("sub" if number % 3 == 0 else ".")
        folder.mkdir(parents=True, exist_ok=True)
        marked = "# TODO: more\n" if number in {5, 7} else ""
        (folder / f"f{number:03}.txt").write_text(marked + "line\n" * (number % 17))


def shell(command: str, folder: Path) -> str:
    """What a shell says."""
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout


def checks_of(report: str) -> list[str]:
    """The commands that a report names."""
    return [line.strip() for line in report.splitlines() if line.startswith("  find ")]


async def run(root: Path, prompt: str, **spec: Any) -> RunResult:
    """One run of the planner over a folder."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(
            AgentSpec(model=Planner(), tools=files(root), **{"max_tool_iterations": 100, **spec})
        )
        async with agent.run(prompt) as handle:
            return await handle.result()


async def test_audit_counts_what_wc_and_grep_count(tmp_path: Path) -> None:
    """An audit of 200 files needs many rounds, and its own commands find the same numbers."""
    make_tree(tmp_path, files_=200)
    (tmp_path / ".hidden").write_text("x\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.txt").write_text("TODO\n")
    (tmp_path / "binary").write_bytes(b"\x00\n\xff\n")

    result = await run(tmp_path, "Audit this folder")

    count, grep = checks_of(result.text)
    lines, size = shell(count, tmp_path).split()
    assert result.answered
    assert "Audit of .: 201 files in 9 folders" in result.text
    assert f"; {int(lines):,} lines, {int(size):,} bytes." in result.text
    assert "Lines with TODO or FIXME: 2\n" in result.text
    assert shell(grep, tmp_path).strip() == "2"
    assert result.counters.tool_iterations > 20
    assert result.usage == NO_USAGE


async def test_limit_then_decline_is_an_honest_part(tmp_path: Path) -> None:
    """At a declined limit the planner reports how much of what it knows it has counted."""
    make_tree(tmp_path, files_=200)

    result = await run(tmp_path, "Audit this folder", max_tool_iterations=3, continuation=never())

    assert result.answered
    assert result.limit is not None
    assert "Partial audit of .: " in result.text
    assert "of 30 known files counted" not in result.text
    assert "folders not yet looked into" in result.text
    assert "To check the whole, not this part:" in result.text


async def test_limit_then_approve_finishes(tmp_path: Path) -> None:
    """Approving at every limit brings the same report as having no limit."""
    make_tree(tmp_path, files_=60)
    asked = 0

    def count(request: ContinuationRequest) -> ContinuationResponse:
        nonlocal asked
        asked += 1
        return ContinuationResponse("approve")

    limited = await run(tmp_path, "Audit this folder", max_tool_iterations=3, continuation=count)
    free = await run(tmp_path, "Audit this folder")

    assert asked >= 3
    assert free.steps[-1].text == limited.steps[-1].text


async def test_calls_are_bounded_and_in_order(tmp_path: Path) -> None:
    """A turn asks for no more calls than it may, the same ones every time."""
    make_tree(tmp_path, files_=40)

    first = await run(tmp_path, "Audit this folder")
    second = await run(tmp_path, "Audit this folder")

    calls = [[(call.name, call.arguments) for call in step.calls] for step in first.steps]
    assert calls == [[(call.name, call.arguments) for call in step.calls] for step in second.steps]
    assert max(map(len, calls)) == 8


async def test_discarded_calls_come_back(tmp_path: Path) -> None:
    """Calls that were discarded once are asked for again: the audit is whole in the end."""
    make_tree(tmp_path, files_=6, folders=1)
    decisions = iter([True])

    def discard_first(_request: ContinuationRequest) -> ContinuationResponse:
        return ContinuationResponse("approve", discard_tool_calls=next(decisions, False))

    result = await run(tmp_path, "Audit this folder", max_tool_iterations=1, continuation=discard_first)

    statuses = [result.status for step in result.steps for result in step.results]
    assert "discarded" in statuses
    assert "\nAudit of .: 6 files in 3 folders" in "\n" + result.text


async def test_a_gate_that_discards_for_ever_ends(tmp_path: Path) -> None:
    """The planner ends although nothing it asks for is ever run after the first round."""
    make_tree(tmp_path, files_=30)

    def discard(_request: ContinuationRequest) -> ContinuationResponse:
        return ContinuationResponse("approve", discard_tool_calls=True)

    result = await run(tmp_path, "Audit this folder", max_tool_iterations=1, continuation=discard)

    asked = [call.arguments for step in result.steps for call in step.calls]
    assert result.answered
    assert max(asked.count(arguments) for arguments in asked) == 2


@pytest.mark.parametrize(
    ("steering", "expected"),
    [
        ("skip d0, d1", "Skipped as asked: d0, d1."),
        ("only *7.txt", "Only files named as asked: *7.txt."),
        ("paint it blue", "Said meanwhile, and no rule of mine matches it:\n  paint it blue"),
    ],
)
async def test_steering_narrows_the_rest(tmp_path: Path, steering: str, expected: str) -> None:
    """A message at the gate narrows the audit, which then counts exactly what its own command finds."""
    make_tree(tmp_path, files_=60)
    first = iter([steering])

    def steer(_request: ContinuationRequest) -> ContinuationResponse:
        return ContinuationResponse("approve", message=next(first, None))

    result = await run(tmp_path, "Audit this folder", max_tool_iterations=2, continuation=steer)

    count, grep = checks_of(result.text)
    lines, size = shell(count, tmp_path).split()
    found = shell(grep, tmp_path).strip()
    assert expected in result.text
    assert f"; {int(lines):,} lines, {int(size):,} bytes." in result.text
    assert f"Lines with TODO or FIXME: {found}\n" in result.text


async def test_steering_ends_the_task(tmp_path: Path) -> None:
    """`report now` at the gate brings the report of what is known."""
    make_tree(tmp_path, files_=60)

    def end(_request: ContinuationRequest) -> ContinuationResponse:
        return ContinuationResponse("approve", message="report now", discard_tool_calls=True)

    result = await run(tmp_path, "Audit this folder", max_tool_iterations=2, continuation=end)

    assert result.answered
    assert "Partial audit" in result.text
    assert result.counters.tool_iterations == 2


async def test_next_run_resumes(tmp_path: Path) -> None:
    """`go on` in a new run finishes what a limit had ended, without counting anything twice."""
    make_tree(tmp_path, files_=60)

    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(model=Planner(), tools=files(tmp_path), max_tool_iterations=3))
        async with agent.run("Audit this folder") as handle:
            first = await handle.result()
        async with agent.run("go on", limits=Limits(max_tool_iterations=100)) as handle:
            second = await handle.result()
        async with agent.run("Tell me a joke") as handle:
            third = await handle.result()

    done = [result.call for step in first.steps for result in step.results if result.status == "ok"]
    before = {call.arguments for step in first.steps for call in step.calls if call.id in done}
    after = {call.arguments for step in second.steps for call in step.calls}
    assert not first.answered
    assert "Audit of .: 60 files" in second.text
    assert set() == before & after
    assert "no rule for this: Tell me a joke" in third.text


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("count lines in a.txt", "a.txt: 1 line, 10 bytes.\n\nTo check it: wc -lc a.txt\n"),
        ("read a.txt", "one\nlast x"),
        ("read empty", "empty is empty.\n"),
        ("list", ".: 3 entries\n              10  a.txt\n                  d/\n               0  empty\n"),
        ("search for one in this folder", "2 lines with 'one' in 4 files\n  a.txt:1: one\n  d/b.txt:401: one\n"),
        ("read d/b.txt", "(the first 400 of 401 lines of d/b.txt)\n"),
        ("count lines in nothing.txt", "I could not do it: count_lines ended as error: 'nothing.txt': no such file"),
        ("read ../x", "I could not do it: read_text ended as error: '../x' leads outside the root"),
    ],
)
async def test_single_questions(tmp_path: Path, prompt: str, expected: str) -> None:
    """Each of the small tasks is one call and an answer from its result, or the tool's own words why not."""
    (tmp_path / "a.txt").write_text("one\nlast x")
    (tmp_path / "empty").touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b.txt").write_text("x\n" * 400 + "one\n")
    (tmp_path / "d" / "z").write_text("z")

    result = await run(tmp_path, prompt)

    assert result.answered
    assert expected in result.text


async def test_no_rule_is_said(tmp_path: Path) -> None:
    """A prompt without a rule gets an answer that says what this is and how to set up a real model."""
    result = await run(tmp_path, "What is the meaning of life?")

    assert result.answered
    assert result.counters.tool_calls == 0
    assert "no language model" in result.text
    assert "What is the meaning of life?" in result.text
    assert "Audit this folder" in result.text
    assert "--model openai:NAME --base-url URL" in result.text


@pytest.mark.parametrize("prompt", ["Audit this folder", "read a.txt"])
async def test_missing_tools_are_named(prompt: str) -> None:
    """Without tools for files the planner says which option gives them."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(model=Planner()))
        async with agent.run(prompt) as handle:
            result = await handle.result()

    assert "--tools files:DIR" in result.text


# ---------------------------------------------------------------- histories that no loop here makes


async def turn(messages: Sequence[Message], **request: Any) -> tuple[Turn, list[ModelEvent]]:
    """One turn over a made-up conversation."""
    events: list[ModelEvent] = []
    tools = [tool.definition for tool in files(".")]
    made = await Planner().turn(ModelRequest(messages=messages, **{"tools": tools, **request}), events.append)
    return made, events


def exchange(asked: Turn, status: ToolStatus, text: str) -> list[Message]:
    """The turn, and the same result for each of its calls."""
    results = [ToolResult(call.id, call.name, status, text) for call in asked.calls]
    return [AssistantMessage(asked.parts), ToolMessage(tuple(results))]


@pytest.mark.parametrize(
    ("status", "attempts"),
    [("error", 2), ("timed_out", 2), ("interrupted", 2), ("discarded", 2), ("not_run", 2), ("denied", 1)],
)
async def test_failures_are_bounded(status: ToolStatus, attempts: int) -> None:
    """A call that fails is asked for at most twice, a denied one once; then its result is quoted."""
    messages: list[Message] = [UserMessage("count lines in a.txt")]
    asked = 0
    while True:
        made, _ = await turn(messages)
        if not made.calls:
            break
        asked += 1
        messages += exchange(made, status, "because")

    assert attempts == asked
    assert f"count_lines ended as {status}: because" in made.text


async def test_unreadable_results_are_given_up() -> None:
    """A result that is not of the expected form is no reason to ask again, nor to fail."""
    first, _ = await turn([UserMessage("Audit this folder")])
    made, _ = await turn([UserMessage("Audit this folder"), *exchange(first, "ok", "[1, 2")])

    assert made.calls == ()
    assert "the result of list_dir could not be read" in made.text
    assert "Partial audit of .: 0 of 0 known files counted" in made.text


async def test_bare_result_of_another_tool() -> None:
    """A tool of the same name with another kind of result: its words are passed on as they are."""
    first, _ = await turn([UserMessage("count lines in a.txt")])
    made, _ = await turn([UserMessage("count lines in a.txt"), *exchange(first, "ok", "about ten")])

    assert made.text == "about ten\n"


async def test_tools_off_is_obeyed() -> None:
    """With tools off the planner asks for nothing, whatever it still wants."""
    audit, _ = await turn([UserMessage("Audit this folder")], tool_choice="none")
    question, _ = await turn([UserMessage("read a.txt")], tool_choice="none")

    assert audit.calls + question.calls == ()
    assert "Partial audit of ." in audit.text
    assert "has not been run" in question.text


async def test_text_comes_in_pieces_that_make_up_the_turn() -> None:
    """The deltas are the turn's text, line by line; call ids are new in the conversation."""
    first, _ = await turn([UserMessage("Audit this folder")])
    messages: list[Message] = [UserMessage("Audit this folder"), *exchange(first, "not_run", "no")]
    second, _ = await turn(messages)
    answer, events = await turn([UserMessage("Hello")])

    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 3
    assert answer.text == "".join(pieces)
    assert not {call.id for call in first.calls} & {call.id for call in second.calls}


async def test_notifications_are_not_steering() -> None:
    """The runtime's own messages change nothing."""
    first, _ = await turn([UserMessage("Audit this folder")])
    denied = [UserMessage("Audit this folder"), *exchange(first, "denied", "no")]
    made, _ = await turn([*denied, UserMessage("System notification: skip everything")])

    assert "Skipped as asked" not in made.text
    assert "no rule of mine" not in made.text


async def test_a_new_task_takes_the_old_ones_place() -> None:
    """A message that is a task of its own is what is done from there on."""
    first, _ = await turn([UserMessage("Audit this folder")])
    made, _ = await turn([UserMessage("Audit this folder"), *exchange(first, "not_run", ""), UserMessage("list docs")])

    assert [(call.name, call.arguments) for call in made.calls] == [("list_dir", '{"path": "docs"}')]


def test_it_says_what_it_is() -> None:
    """Name, banner and usage leave no doubt that this is no language model."""
    planner = Planner()

    assert planner.name == "rules-v1"
    assert planner.banner == BANNER
    assert "not a language model" in planner.banner


@pytest.mark.parametrize("bad", [0, -1, True, 2.0])
def test_bad_settings_are_named(bad: Any) -> None:
    """A bound that is none is refused with its name."""
    with pytest.raises(SpecError, match="calls_per_turn must be an integer >= 1"):
        Planner(calls_per_turn=bad)


async def test_always_is_enough_for_this_repository() -> None:
    """The audit of this very repository hits a limit of 3 and finishes when it may go on."""
    root = Path(__file__).parents[3]

    result = await run(root, "Audit this folder", max_tool_iterations=3, continuation=always())

    report = result.steps[-1].text
    lines, size = shell(checks_of(report)[0], root).split()
    assert result.answered
    assert result.counters.tool_iterations > 6
    assert f"; {int(lines):,} lines, {int(size):,} bytes." in report
