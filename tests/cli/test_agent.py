"""From arguments to an agent."""

from __future__ import annotations

import pytest

from actors.cli._agent import model_for, spec_for
from actors.cli._arguments import RunArguments, parse
from actors.cli._settings import AgentSettings
from actors.cli._usage import UsageError
from actors.models.openai import OpenAIChat
from actors.models.planner import Planner


def arguments(*argv: str) -> RunArguments:
    """The arguments of a run."""
    found = parse(["run", "x", *argv])
    assert isinstance(found, RunArguments)
    return found


def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rules` is the planner; a name of OpenAI's own needs a key, which nothing shows."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    rules = model_for(arguments())
    real = model_for(arguments("--model", "openai:gpt-x"))

    assert isinstance(rules, Planner)
    assert "gpt-x" in real.name
    assert "sk-secret-key" not in repr(real) + repr(vars(real))


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:gpt-x", "OPENAI_API_KEY"),
        ("deepseek:x", "DEEPSEEK_API_KEY"),
        ("anthropic:x", "ANTHROPIC_API_KEY"),
        ("gemini:x", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openai-responses:x", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(spec: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything of the model is loaded; a key that is set and blank is as good as none."""
    for name in variable.split(" or "):
        monkeypatch.setenv(name, " ")

    with pytest.raises(UsageError, match=f"--model {spec} needs a key in {variable}, or the address of a server"):
        model_for(arguments("--model", spec))


def test_a_local_server_needs_no_key() -> None:
    """It has its own address."""
    assert "<OpenAIChat 'm' at http://127.0.0.1:11434/v1/chat/completions>" == repr(
        model_for(arguments("--model", "ollama:m"))
    )


def test_a_key_that_is_named_goes_to_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that was named, and no other; one that is not set is told."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OUR_KEY", "sk-of-ours\n")
    address = ("--model", "openai:m", "--base-url", "http://10.0.0.1/v1")
    ours = model_for(arguments(*address, "--api-key-env", "OUR_KEY"))
    bare = model_for(arguments(*address))
    with pytest.raises(UsageError, match="--api-key-env NO_SUCH_KEY: the environment variable NO_SUCH_KEY is not set"):
        model_for(arguments(*address, "--api-key-env", "NO_SUCH_KEY"))

    assert isinstance(ours, OpenAIChat)
    assert isinstance(bare, OpenAIChat)
    assert "Bearer sk-of-ours" == ours._client._headers["authorization"]
    assert {} == bare._client._headers


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
    spec, cautions = spec_for(arguments("--on-limit", on_limit), Planner(), None if on_limit != "ask" else print)
    options = (spec.tool_iteration_limit_finalization, spec.llm_call_limit_finalization)

    assert (spec.continuation is not None) is asks
    assert options == (("", "") if finalizes else (None, None))
    assert cautions == []


def test_tools_are_those_of_the_folder() -> None:
    """Without `--tools` the agent can look at nothing; with it at one folder."""
    bare, _ = spec_for(arguments(), Planner(), print)
    seeing, _ = spec_for(arguments("--tools", "files:."), Planner(), print)

    assert len(bare.tools) == 0
    assert [tool.name for tool in seeing.tools] == ["list_dir", "read_text", "count_lines", "search"]


def test_all_settings_reach_the_agent() -> None:
    """What a host file can say of an agent is what it is made with."""
    settings = AgentSettings(
        name="auditor",
        system="Be brief.",
        max_tool_iterations=3,
        max_llm_calls=9,
        max_tool_calls=8,
        max_total_tokens=7,
        wall_clock_seconds=6.5,
    )
    spec, _ = spec_for(settings, Planner(), print)
    limits = spec.limits()

    assert (spec.name, spec.system) == ("auditor", "Be brief.")
    assert (limits.max_tool_iterations, limits.max_llm_calls, limits.max_tool_calls) == (3, 9, 8)
    assert (limits.max_total_tokens, limits.wall_clock_seconds) == (7, 6.5)
