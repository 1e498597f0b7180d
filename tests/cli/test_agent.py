"""From arguments to an agent."""

from __future__ import annotations

import pytest

from actors.cli._agent import model_for, spec_for
from actors.cli._arguments import UsageError, parse
from actors.models.planner import Planner


def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rules` is the planner; a name of OpenAI's own needs a key, which nothing shows."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    rules = model_for(parse(["run", "x"]))
    real = model_for(parse(["run", "x", "--model", "openai:gpt-x"]))

    assert isinstance(rules, Planner)
    assert "gpt-x" in real.name
    assert "sk-secret-key" not in repr(real) + repr(vars(real))


def test_an_empty_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is set and empty is as good as none."""
    monkeypatch.setenv("OPENAI_API_KEY", "")

    with pytest.raises(UsageError, match="needs a key in OPENAI_API_KEY"):
        model_for(parse(["run", "x", "--model", "openai:gpt-x"]))


@pytest.mark.parametrize(
    ("on_limit", "asks", "finalizes"),
    [
        ("ask", True, False),
        ("approve", True, False),
        ("decline", True, False),
        ("finalize", False, True),
        ("stop", False, False),
    ],
)
def test_who_answers_at_the_limit(on_limit: str, asks: bool, finalizes: bool) -> None:
    """Each choice sets the gate, both finalizations, or neither."""
    spec, cautions = spec_for(
        parse(["run", "x", "--on-limit", on_limit]), Planner(), None if on_limit != "ask" else print
    )
    options = (spec.tool_iteration_limit_finalization, spec.llm_call_limit_finalization)

    assert (spec.continuation is not None) is asks
    assert options == (("", "") if finalizes else (None, None))
    assert cautions == []


def test_tools_are_those_of_the_folder() -> None:
    """Without `--tools` the agent can look at nothing; with it at one folder."""
    bare, _ = spec_for(parse(["run", "x"]), Planner(), print)
    seeing, _ = spec_for(parse(["run", "x", "--tools", "files:."]), Planner(), print)

    assert len(bare.tools) == 0
    assert [tool.name for tool in seeing.tools] == ["list_dir", "read_text", "count_lines", "search"]
