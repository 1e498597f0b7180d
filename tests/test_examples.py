"""The programs under examples/ run, offline, and say what they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from actors.hostfile import read_host_file

ROOT = Path(__file__).resolve().parent.parent


def run(name: str, *arguments: object) -> list[str]:
    """The lines that an example prints; it ends well and complains of nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with more files than one round of the planner counts."""
    for number in range(20):
        (tmp_path / f"part{number:02}.py").write_text("x = 1\ny = 2\n")
    return tmp_path


def test_every_example_is_run_here() -> None:
    """None is forgotten, and each is short enough to be read at once."""
    examples = sorted((ROOT / "examples").glob("*.py"))
    here = Path(__file__).read_text(encoding="utf-8")

    # small_model.py serves until it is stopped: tests/test_readme.py runs it.
    assert ["small_model.py"] == [path.name for path in examples if f'run("{path.name}"' not in here]
    assert [] == [path.name for path in examples if len(path.read_text(encoding="utf-8").splitlines()) > 90]


@pytest.mark.slow
def test_the_policy_steers_approves_and_declines_at_its_bound(tmp_path: Path) -> None:
    """The gate is asked at every full window: one steering approval, one plain one, one decline with an answer."""
    for number in range(60):
        (tmp_path / f"part{number:02}.py").write_text("x = 1\n")
        (tmp_path / f"note{number:02}.txt").write_text("x\n")
    lines = run("policy_gate.py", tmp_path)

    assert ["approved: only *.py", "approved: no message", "declined: 6 rounds are enough"] == lines[:3]
    assert lines[-1].startswith("answered: True, rounds: 6, limit: LimitState(name='tool_iterations'")


@pytest.mark.slow
def test_a_bot_decides_over_a_websocket(tmp_path: Path) -> None:
    """Each question reaches it, and each of its answers counts: a steering approval, a plain one, a decline."""
    for number in range(60):
        (tmp_path / f"part{number:02}.py").write_text("x = 1\n")
        (tmp_path / f"note{number:02}.txt").write_text("x\n")
    lines = run("remote_gate.py", tmp_path)

    assert [f"auditor asks after {rounds} rounds, 8 calls wait" for rounds in (2, 4, 6)] == lines[0:6:2]
    assert ["approved by local: only *.py", "approved by local: no message"] == lines[1:4:2]
    assert "declined by local: 6 rounds are enough" == lines[5]
    assert lines[6].startswith("answered: True, limit: LimitState(name='tool_iterations'")


@pytest.mark.slow
def test_the_two_loops_are_one(folder: Path) -> None:
    """By its options and by a loop of its own the agent does the same, up to the last event."""
    lines = run("manual_loop.py", folder)

    assert "by its options" == lines[0]
    assert "by a loop of its own" == lines[2]
    assert ["answered: True, steps: 3, finalized: model"] * 2 == [lines[1], lines[3]]
    assert lines[4].endswith(" events, equal")


@pytest.mark.slow
def test_the_gate_of_a_sub_agent_is_decided_by_a_client_of_the_root(folder: Path) -> None:
    """Both sub-agents answer, the auditor after an approval and a decline of a client that follows the parent."""
    lines = run("sub_agents.py", folder)

    assert {
        "auditor asks after 1 rounds: approve, accepted",
        "auditor asks after 2 rounds: decline, accepted",
        "auditor has ended: answered=True",
        "lister has ended: answered=True",
        "ask_lister ok: .: 20 entries",
        "ask_auditor ok: Partial audit of .: 8 of 20 known files counted, 1 folder listed; 16 lines, 96 bytes.",
    } == set(lines[:6])
    assert [
        "parent has ended: answered=True",
        "Both have told me what they found.",
        "8 model calls, 2 of them the parent's own",
    ] == lines[6:]


@pytest.mark.slow
def test_a_shared_budget_admits_what_it_holds(folder: Path) -> None:
    """Of forty calls that twenty agents would make it admits twenty-five, and every agent has an end."""
    lines = run("shared_budget.py", folder)
    answered, stopped = map(int, re.findall(r"\d+", lines[2]))

    assert ["20 agents would need 40 model calls; the budget holds 25", "25 model calls were admitted"] == lines[:2]
    assert (20, True) == (answered + stopped, 5 <= answered <= 12)
    assert "the limit as they saw it: LimitState(name='llm_calls', max=25, used=25)" == lines[3]


@pytest.mark.slow
def test_ten_agents_of_a_host_file_share_a_budget(folder: Path) -> None:
    """A client that follows all sees ten ends; no more calls are admitted than the budget holds."""
    lines = run("ten_agents.py", folder)
    answered, stopped = map(int, re.findall(r"\d+", lines[1]))

    assert "10 agents would need 20 model calls; the budget holds 15" == lines[0]
    assert (10, True) == (answered + stopped, 5 <= answered <= 7)
    assert ["one answer: part00.py: 2 lines, 12 bytes.", "15 model calls were admitted"] == lines[2:]


def test_the_host_file_can_be_served() -> None:
    """Nothing in it is wrong, or odd; the schema that its first line names takes it."""
    path = ROOT / "examples" / "host.toml"
    schema = path.parent / path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#:schema ")
    host = read_host_file(path)

    jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), json.loads(schema.read_text(encoding="utf-8")))
    assert ((), ["auditor", "desk", "clerk"]) == (host.warnings, [spec.name for spec in host.spawned])


@pytest.mark.slow
def test_calls_are_approved_denied_and_edited() -> None:
    """Each of the four calls ends as the function says, and what was sent is what was decided."""
    lines = run("approvals.py")
    edited = [line for line in lines if line.startswith("call-1 ok: ")]

    assert {"call-0 approved", "call-1 edited", "call-2 denied"} <= set(lines[:6])
    assert {
        "call-0 ok: sent to ann@ours.example",
        "call-2 denied: Not run: declined. write to colleagues and partners only",
        "call-3 ok: sent to myself",
    } == {*lines[6:10]} - {*edited}
    assert [True] == ['"We sold [figure]."' in line and "sent to bob@" in line for line in edited]
    assert [
        "Two have it, and so have I.",
        "ann@ours.example: We sold 42.",
        "bob@partner.example: We sold [figure].",
        "myself: We sold 42.",
    ] == lines[10:]


@pytest.mark.slow
def test_the_run_is_handed_over(folder: Path) -> None:
    """The auditor answers in the desk's place, within the desk's limit."""
    lines = run("hand_off.py", folder)

    assert [
        "handed over to auditor, model rules-v1",
        "Audit of .: 20 files in 1 folder; 40 lines, 240 bytes.",
    ] == lines[:2]
    assert "answered: True, tool calls: 24, model calls: 6 of 30" == lines[-1]


@pytest.mark.slow
def test_an_actor_of_ones_own_is_asked_by_the_tools_of_two_agents() -> None:
    """Each call is answered: with what was asked for, with the actor's own error, or with the crash that its ask caused."""
    lines = run("own_actor.py")

    assert [
        "drop error: KeyError: 'none'",
        "drop error: KeyError: 'none'",
        "drop ok: dropped lamp",
        "drop ok: dropped roof",
        "put error: ActorCrashed: store crashed: UnicodeEncodeError",
        "put ok: kept door",
        "put ok: kept lamp",
        "put ok: kept roof",
        "put ok: kept wall",
    ] == sorted(lines)
