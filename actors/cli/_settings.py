"""What an agent is made of, as it is asked for on the command line."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import attrs

from ._usage import UsageError, at_least_one, guess

__all__ = (
    "DEFAULT_MAX_TOOL_ITERATIONS",
    "AgentSettings",
    "OnLimit",
    "add_settings",
    "checked_settings",
    "folder_of",
    "model_of",
    "on_limit_of",
)

OnLimit: TypeAlias = Literal["ask", "approve", "decline", "finalize", "stop"]

DEFAULT_MAX_TOOL_ITERATIONS = 20


@attrs.frozen(kw_only=True)
class AgentSettings:
    """What an agent is made of, checked."""

    name: str = "agent"
    model: str = "rules"
    """`rules`, or `KIND:NAME`."""
    base_url: str | None = None
    api_key_env: str | None = None
    """The environment variable that holds the key, if it was named."""
    root: Path | None = None
    """The folder that the file tools may see; `None`: no tools."""
    system: str | None = None
    on_limit: OnLimit = "ask"
    max_tool_iterations: int = DEFAULT_MAX_TOOL_ITERATIONS
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_total_tokens: int | None = None
    wall_clock_seconds: float | None = None

    @property
    def is_rules(self) -> bool:
        """Whether no language model was asked for."""
        return self.model == "rules"


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that make an agent."""
    parser.add_argument("--model", default="rules", metavar="rules|KIND:NAME", help="who decides (default: rules)")
    parser.add_argument("--base-url", metavar="URL", help="address of the model's server, up to its /v1")
    parser.add_argument(
        "--api-key-env", metavar="VARIABLE", help="environment variable whose key is sent to that address"
    )
    parser.add_argument(
        "--tools", action="append", default=[], metavar="files:DIR", help="let the agent look at the files below DIR"
    )
    parser.add_argument(
        "--max-tool-iterations",
        metavar="N",
        default=str(DEFAULT_MAX_TOOL_ITERATIONS),
        help=f"rounds of tool calls before the limit (default: {DEFAULT_MAX_TOOL_ITERATIONS})",
    )
    parser.add_argument(
        "--max-llm-calls", metavar="N", help="model calls in all, whatever is approved (default: no limit)"
    )
    parser.add_argument(
        "--on-limit",
        default="ask",
        metavar="|".join(get_args(OnLimit)),
        help="what happens at the limit (default: ask)",
    )


def checked_settings(found: argparse.Namespace) -> dict[str, Any]:
    """The fields of `AgentSettings` that these options set. Raises `UsageError`."""
    model = model_of(found.model)
    for flag, value in (("--base-url", found.base_url), ("--api-key-env", found.api_key_env)):
        if value is not None and model == "rules":
            raise UsageError(f"{flag} is for a model server; it goes with a model such as --model openai:NAME")
    return {
        "model": model,
        "base_url": found.base_url,
        "api_key_env": found.api_key_env,
        "root": _only_root(found.tools),
        "max_tool_iterations": at_least_one("--max-tool-iterations", found.max_tool_iterations),
        "max_llm_calls": None if found.max_llm_calls is None else at_least_one("--max-llm-calls", found.max_llm_calls),
        "on_limit": on_limit_of("--on-limit", found.on_limit),
    }


def model_of(spec: str) -> str:
    """Check the word for a model; whether it can be used shows when it is made."""
    if spec == "rules":
        return spec
    from protocol.errors import SpecError

    from ..models.named import split_name

    if ":" not in spec and difflib.get_close_matches(spec, ["rules"], 1):
        raise UsageError(f"there is no model {spec!r} (did you mean rules?); there are: rules, openai:NAME and others")
    try:
        kind, name = split_name(spec)
    except SpecError as error:
        raise UsageError(f"{error}\nTry: onward models") from None
    return f"{kind.name}:{name}"


def on_limit_of(flag: str, word: str) -> OnLimit:
    """Check the word for what happens at the limit."""
    choices: tuple[OnLimit, ...] = get_args(OnLimit)
    for choice in choices:
        if word == choice:
            return choice
    raise UsageError(f"{flag} {word!r} is unknown{guess(word, choices)}; there are: {', '.join(choices)}")


def _only_root(specs: Sequence[str]) -> Path | None:
    if len(specs) > 1:
        raise UsageError(f"--tools is given {len(specs)} times; there is one kind, files:DIR, and one folder for it")
    return folder_of("--tools", specs[0]) if specs else None


def folder_of(flag: str, spec: str) -> Path:
    """The folder in `files:DIR`."""
    kind, colon, name = spec.partition(":")
    if kind != "files" or not colon or not name:
        raise UsageError(f"{flag} {spec!r} is unknown; there is: files:DIR, as in files:.")
    root = Path(name).expanduser()
    if root.is_dir():
        return root
    if root.exists():
        raise UsageError(f"{flag} {spec}: {name} is a file, not a folder; its folder would be files:{root.parent}")
    from ..hostfile import near_folder

    near = near_folder(root)
    hint = f" (did you mean files:{near}?)" if near is not None else f" (looked in {Path.cwd()})"
    raise UsageError(f"{flag} {spec}: there is no folder {name}{hint}")
