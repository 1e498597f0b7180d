"""A host file in which nothing is wrong, but something is odd: it is served, and that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from actors.hostfile import HostFile

A = '[[agents]]\nname = "a"\n'
G = "[gateway]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (A, []),
        ("[models.m]\nmodel = 'rules'\n" + A, ["1 models.m: nothing uses it"]),
        ("[tools.t]\nfiles = '.'\n" + A, ["1 tools.t: nothing uses it"]),
        ("[budgets.b]\n[budgets.c]\nparent = 'b'\n" + A, ["2 budgets.c: nothing uses it"]),
        ("runtime = { budget = 'b' }\n[budgets.b]\n" + A, []),
        (A + "spawn = false", ["3 agents[0].spawn: no agent and no template uses it, so that it never comes to be"]),
        (A + "spawn = false\n[templates.t]\nagent = 'a'", []),
        (A + "spawn = false\n[[agents]]\nname = 'b'\nhandoffs = ['a']", []),
        (
            A + "limits = { max_tool_iterations = 3, max_llm_calls = 4 }",
            ["3 agents[0].limits: the gate cannot be asked: after 3 rounds and the call that fills the window,"],
        ),
        (
            "[budgets.b]\nmax_llm_calls = 5\n" + A + "budget = 'b'\nlimits = { max_llm_calls = 40 }",
            ["6 agents[0].limits.max_llm_calls: 40 is never reached: the budget b ends at 5"],
        ),
        (
            "runtime = { budget = 'b' }\n[budgets.b]\nmax_tool_calls = 5\n" + A + "limits = { max_tool_calls = 40 }",
            ["6 agents[0].limits.max_tool_calls: 40 is never reached: the budget b ends at 5"],
        ),
        (
            "[budgets.b]\nmax_llm_calls = 5\n[budgets.c]\nparent = 'b'\nmax_llm_calls = 6\n" + A + "budget = 'c'",
            ["5 budgets.c.max_llm_calls: 6 is never reached: the budget b ends at 5"],
        ),
        (
            "[budgets.b]\nmax_cost = 5\n" + A + "budget = 'b'",
            ["2 budgets.b.max_cost: no prices are there, so that no cost is known: see [prices]"],
        ),
        (
            "[models.m]\nmodel = 'openai:x'\nbase_url = 'http://127.0.0.1:1/v1'\napi_key_file = 'key'\n"
            + A
            + "model = 'm'",
            ["4 models.m.api_key_file: key can be read by others: chmod 600 key"],
        ),
        (
            G + "bind = '0.0.0.0'\ntoken_file = 'tokens'\n" + A,
            ["2 gateway.bind: 0.0.0.0 is reached by others without TLS: tokens can be read on the way"],
        ),
        (
            G + "sees = { x = ['a'] }\n" + A,
            ["2 gateway.sees.x: is nobody: without token_file whoever started it gets in"],
        ),
        (
            G + "token_file = 'watchers'\n[templates.t]\nagent = 'a'\n" + A,
            ["3 templates.t: nobody of the token file may use it: that takes the role operate"],
        ),
        (G + "token_file = 'tokens'\n[templates.t]\nagent = 'a'\n" + A, []),
    ],
)
def test_what_is_odd_is_told_with_its_place(
    read: Callable[[str], HostFile], folder: Path, text: str, expected: list[str]
) -> None:
    """With line and key, and nothing else."""
    (folder / "key").write_text("a-key")
    (folder / "key").chmod(0o644)
    (folder / "watchers").write_text("a-token-of-a-watcher observe,decide w\n")
    (folder / "watchers").chmod(0o600)
    said = [f"{found.line} {found.key}: {found.text}".replace(f"{folder}/", "") for found in read(text).warnings]

    assert len(expected) == len(said), said
    assert [] == [(one, other) for one, other in zip(expected, said, strict=True) if one not in other]
