"""The command on a terminal: the question at the limit with all its answers, and what ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ._command import terminal
from ._server import call_delta, serving, streaming

pytestmark = [pytest.mark.peer, pytest.mark.slow]

ASK = "approve, steer, discard or decline? "
AUDIT = ("run", "Audit this folder", "--tools", "files:.")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of 40 files, ten of them in `tests`."""
    for number in range(40):
        folder = tmp_path / ("tests" if number % 4 == 0 else "src")
        folder.mkdir(exist_ok=True)
        (folder / f"f{number:02}.txt").write_text("line\n" * number)
    return tmp_path


def test_every_answer(tree: Path) -> None:
    """Approve, approve with steering, discard some, discard all and decline do what they say."""
    with terminal(*AUDIT, "--max-tool-iterations", "1", cwd=tree) as screen:
        screen.wait_for("The model wants 2 more calls:")
        screen.wait_for(ASK)
        screen.type("s skip tests")
        screen.wait_for("approved: skip tests")
        screen.wait_for("The model wants 8 more calls:")
        screen.wait_for(ASK)
        screen.type("x 1 2")
        screen.wait_for("approved, 2 pending calls discarded")
        screen.wait_for("discarded   count_lines(")
        for _ in range(3):
            screen.wait_for(ASK)
            screen.type("a")
            screen.wait_for("approved")
        code = screen.end()

    assert code == 0
    assert "Audit of .: 30 files in 2 folders; 600 lines, 3,000 bytes." in screen.seen
    assert "Skipped as asked: tests." in screen.seen


def test_decline_with_a_reason(tree: Path) -> None:
    """Declining runs nothing more, and the model answers from what it has."""
    with terminal(*AUDIT, "--max-tool-iterations", "1", cwd=tree) as screen:
        screen.wait_for(ASK)
        screen.type("x")
        screen.wait_for("approved, 2 pending calls discarded")
        screen.wait_for(ASK)
        screen.type("d that will do")
        screen.wait_for("declined: that will do")
        code = screen.end()

    assert code == 0
    assert "Partial audit of ." in screen.seen
    assert "Answered at the limit" in screen.seen


def test_what_is_no_answer_is_asked_again(tree: Path) -> None:
    """Nothing is decided by accident; help shows the question again; steering may be typed on a line of its own."""
    with terminal(*AUDIT, "--max-tool-iterations", "2", cwd=tree) as screen:
        screen.wait_for(ASK)
        screen.type("")
        screen.wait_for("answer a, s TEXT, x or d")
        screen.wait_for(ASK)
        screen.type("whatever")
        screen.wait_for("'whatever' is no answer")
        screen.wait_for(ASK)
        screen.type("?")
        screen.wait_for("The model wants 8 more calls:")
        screen.wait_for(ASK)
        screen.type("s")
        screen.wait_for("what shall the model read? ")
        screen.type("")
        screen.wait_for("nothing was said")
        screen.wait_for(ASK)
        screen.type("s")
        screen.wait_for("what shall the model read? ")
        screen.type("report now")
        screen.wait_for("approved: report now")
        code = screen.end()

    assert code == 0
    assert "Partial audit of ." in screen.seen


def test_end_of_input_declines(tree: Path) -> None:
    """Ctrl-D is no approval."""
    with terminal(*AUDIT, "--max-tool-iterations", "1", cwd=tree) as screen:
        screen.wait_for(ASK)
        screen.press(b"\x04")
        screen.wait_for("End of input: declined.")
        code = screen.end()

    assert code == 0
    assert "Partial audit of ." in screen.seen


def test_ctrl_c_at_the_question(tree: Path) -> None:
    """Ctrl-C cuts the question off at once and ends the run: nothing more is asked of the model."""
    with terminal(*AUDIT, "--max-tool-iterations", "1", cwd=tree) as screen:
        screen.wait_for(ASK)
        screen.press(b"\x03")
        code = screen.end()

    assert code == 130
    assert "Ctrl-C: the run ends after the step in hand." in screen.seen
    assert "Stopped: interrupted by Ctrl-C." in screen.seen
    assert "Traceback" not in screen.seen
    assert screen.seen.count(ASK) == 1
    assert "Partial audit" not in screen.seen


def test_typing_ahead_is_no_answer() -> None:
    """What was typed before the question was seen does not answer it."""
    hanging = streaming(call_delta("list_dir", {"path": "."}, id="c2"), hang=True, finish="tool_calls")
    first = streaming(call_delta("list_dir", {"path": "."}), finish="tool_calls")
    with (
        serving(first, hanging, streaming({"content": "Done."})) as server,
        terminal(
            *("run", "Hello", "--tools", "files:.", "--max-tool-iterations", "1"),
            *("--model", "openai:m", "--base-url", server.url),
        ) as screen,
    ):
        screen.wait_for("ok          list_dir")
        screen.type("a")
        screen.wait_for("a\n")
        server.release.set()
        screen.wait_for(ASK)
        screen.type("d")
        screen.wait_for("declined")
        code = screen.end()

    assert code == 0
    assert screen.seen.count(ASK) == 1
    assert "approved" not in screen.seen


def test_json_is_asked_on_stderr(tree: Path) -> None:
    """With --json on a terminal the question is still asked; both streams are the terminal here."""
    with terminal(*AUDIT, "--max-tool-iterations", "1", "--json", cwd=tree) as screen:
        screen.wait_for(ASK)
        screen.type("d")
        screen.wait_for('"outcome":"declined"')
        code = screen.end()

    assert code == 0
    assert '"type":"run_finished"' in screen.seen


def test_colours_on_a_terminal(tree: Path) -> None:
    """A terminal gets colours, unless NO_COLOR is set."""
    with terminal("run", "list", "--tools", "files:.", cwd=tree, env={"NO_COLOR": ""}) as screen:
        code = screen.end()
    with terminal("run", "list", "--tools", "files:.", cwd=tree) as plain:
        plain_code = plain.end()

    assert (code, plain_code) == (0, 0)
    assert "\x1b[32mok" in screen.seen
    assert "\x1b" not in plain.seen
