"""The command line: what is taken, and what is said of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.cli._arguments import ModelsArguments, RunArguments, parse
from actors.cli._settings import DEFAULT_MAX_TOOL_ITERATIONS
from actors.cli._usage import UsageError


def refused(*argv: str) -> str:
    """What is said of arguments that are refused."""
    with pytest.raises(UsageError) as caught:
        parse(argv)
    return str(caught.value)


def test_defaults() -> None:
    """A prompt is enough."""
    expected = RunArguments(
        prompt="Hello",
        model="rules",
        base_url=None,
        api_key_env=None,
        root=None,
        max_tool_iterations=DEFAULT_MAX_TOOL_ITERATIONS,
        max_llm_calls=None,
        on_limit="ask",
        json=False,
    )

    assert expected == parse(["run", "Hello"])


def test_everything(tmp_path: Path) -> None:
    """Every option reaches the run as it was given."""
    found = parse([
        *("run", "Hello", "--model", "openai:some/model:1b", "--base-url", "http://127.0.0.1:1/v1"),
        *("--api-key-env", "OUR_KEY"),
        *("--tools", f"files:{tmp_path}", "--max-tool-iterations", "3", "--max-llm-calls", "9"),
        *("--on-limit", "finalize", "--json"),
    ])

    expected = RunArguments(
        prompt="Hello",
        model="openai:some/model:1b",
        base_url="http://127.0.0.1:1/v1",
        api_key_env="OUR_KEY",
        root=tmp_path,
        max_tool_iterations=3,
        max_llm_calls=9,
        on_limit="finalize",
        json=True,
    )
    assert expected == found


@pytest.mark.parametrize("flag", ["--max-tool-iterations", "--max-llm-calls"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", ""])
def test_limits_below_one(flag: str, value: str) -> None:
    """A limit that is none is refused with the name of its flag and what it was."""
    said = refused("run", "Hello", f"{flag}={value}")

    assert flag in said
    assert "1 or more" in said
    assert value in said


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        ((), ["nothing to do", "onward --help"]),
        (("rnu", "x"), ["there is no command 'rnu'", "did you mean run?"]),
        (("run",), ["PROMPT", "onward run --help"]),
        (("run", " \n"), ["the prompt is empty"]),
        (("run", "x", "--bogus"), ["--bogus", "onward --help"]),
        (
            ("mdels",),
            ["there is no command 'mdels'", "did you mean models?", "there are: run, serve, check, attach, models"],
        ),
        (("models", "x"), ["unrecognized arguments: x", "onward --help"]),
        (("run", "x", "--model", "ruls"), ["'ruls'", "did you mean rules?", "openai:NAME"]),
        (("run", "x", "--model", "gpt-9"), ["'gpt-9'", "did you mean openai:gpt-9?"]),
        (
            ("run", "x", "--model", "claude:opus"),
            ["'claude:opus'", "there are: openai:NAME, ", "anthropic:NAME", "ollama:NAME", "onward models"],
        ),
        (("run", "x", "--model", "openai:"), ["lacks the model's name"]),
        (("run", "x", "--base-url", "http://127.0.0.1/v1"), ["--base-url", "--model openai:NAME"]),
        (("run", "x", "--api-key-env", "OUR_KEY"), ["--api-key-env", "--model openai:NAME"]),
        (("run", "x", "--on-limit", "aprove"), ["'aprove'", "did you mean approve?", "ask, approve, decline"]),
        (("run", "x", "--tools", "shell:."), ["'shell:.'", "files:DIR"]),
        (("run", "x", "--tools", "files:"), ["files:DIR"]),
        (("run", "x", "--tools", "files:.", "--tools", "files:.."), ["2 times", "one folder"]),
        (("run", "x", "--serve", "65536"), ["--serve", "from 0 (any free one) to 65535", "'65536'"]),
        (("run", "x", "--serve", "127.0.0.1:80"), ["--serve", "'127.0.0.1:80'"]),
    ],
)
def test_wrong_use(argv: tuple[str, ...], parts: list[str]) -> None:
    """What is refused is quoted, and what would be right stands beside it."""
    said = refused(*argv)

    assert [part for part in parts if part not in said] == []


def test_wrong_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is missing, or none, is told from one that is there and looks like it."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(tmp_path)

    assert "there is no folder source (did you mean files:sources?)" in refused("run", "x", "--tools", "files:source")
    assert f"there is no folder qqq (looked in {tmp_path})" in refused("run", "x", "--tools", "files:qqq")
    assert "there is no folder n/o (looked in" in refused("run", "x", "--tools", "files:n/o")
    assert "a.txt is a file, not a folder; its folder would be files:." in refused("run", "x", "--tools", "files:a.txt")


@pytest.mark.parametrize("spec", ["ollama:llama3.2:1b", "deepseek:x", "anthropic:x", "llama.cpp:a/b"])
def test_models_of_every_kind_are_taken(spec: str) -> None:
    """As they were given; whether they can be used shows when they are made."""
    found = parse(["run", "x", "--model", spec])

    assert isinstance(found, RunArguments)
    assert (spec, False) == (found.model, found.is_rules)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_other_command(as_json: bool) -> None:
    """`models` takes one flag."""
    assert ModelsArguments(json=as_json) == parse(["models", *(["--json"] if as_json else [])])


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["run", "--help"], ["serve", "--help"], ["attach", "--help"], ["models", "--help"], ["--version"]],
)
def test_help_and_version_leave_in_peace(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Help and version go to stdout, with status 0."""
    with pytest.raises(SystemExit) as caught:
        parse(argv)

    assert caught.value.code == 0
    assert "onward" in capsys.readouterr().out


def test_help_says_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of `run` names every choice, the exit statuses, and what the default model is not."""
    with pytest.raises(SystemExit):
        parse(["run", "--help"])

    said = capsys.readouterr().out
    wanted = [
        "ask",
        "approve",
        "decline",
        "finalize",
        "stop",
        "130",
        "no language model",
        "OPENAI_API_KEY",
        "Ctrl-C",
        "onward models",
    ]
    assert [word for word in wanted if word not in said] == []
