"""The command line: what may be asked for, and what is said of what may not.

What can be refused before anything starts is refused here, by `UsageError`, with exit status 2.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, get_args

import attrs

__all__ = ("DEFAULT_MAX_TOOL_ITERATIONS", "ModelsArguments", "OnLimit", "RunArguments", "UsageError", "parse")

OnLimit: TypeAlias = Literal["ask", "approve", "decline", "finalize", "stop"]

DEFAULT_MAX_TOOL_ITERATIONS = 20

_COMMANDS = ("run", "models")

_EXAMPLES = """\
examples:
  onward run "Audit this folder" --tools files:. --max-tool-iterations 3
  onward run "count lines in README.md" --tools files:. --json
  onward run "Summarise README.md" --tools files:. --model ollama:NAME
  onward models
"""

_RUN_NOTES = """\
At the limit of tool iterations (--on-limit):
  ask       show the pending calls and ask; without a terminal: decline (the default)
  approve   go on, as often as it takes
  decline   do not run the pending calls; the model answers from what it has
  finalize  no question: the model's last call is made with tools off
  stop      no question and no last call: the run ends where it is

The model 'rules' is a rule-based planner and no language model. It lists, counts, reads and searches files.
--model openai:NAME, anthropic:NAME, gemini:NAME, ollama:NAME and so on is a language model; `onward models` lists what
there is, here and now. The key is taken from the variable of its provider (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...) and
sent to that provider alone; --api-key-env names the variable for an address of your own.

Exit status:
  0  answered                            2  wrong use
  1  failed, cut off, blocked or empty   3  stopped by a limit or a condition, without an answer
  130  interrupted (Ctrl-C ends the run after the step in hand; twice: at once)

examples:
  onward run "Audit this folder" --tools files:. --max-tool-iterations 3
  onward run "Audit this folder, only *.py, skip tests" --tools files:. --on-limit finalize
"""


class UsageError(Exception):
    """The command was given what it cannot take; the text says what, and what it would take."""


@attrs.frozen(kw_only=True)
class RunArguments:
    """What `onward run` was asked to do, checked."""

    prompt: str
    model: str
    """`rules`, or `KIND:NAME`."""
    base_url: str | None
    api_key_env: str | None
    """The environment variable that holds the key, if it was named."""
    root: Path | None
    """The folder that the file tools may see; `None`: no tools."""
    max_tool_iterations: int
    max_llm_calls: int | None
    on_limit: OnLimit
    json: bool

    @property
    def is_rules(self) -> bool:
        """Whether no language model was asked for."""
        return self.model == "rules"


@attrs.frozen(kw_only=True)
class ModelsArguments:
    """What `onward models` was asked to do."""

    json: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nTry: {self.prog} --help")


class _ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"onward {_installed_version()}")
        parser.exit()


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow, and only needed here

    try:
        return version("onward")
    except PackageNotFoundError:
        return "(not installed)"


def parse(argv: Sequence[str]) -> RunArguments | ModelsArguments:
    """Read the arguments. Raises `UsageError`; `--help` and `--version` print and leave by `SystemExit(0)`."""
    parser = _parser()
    words = [word for word in argv if not word.startswith("-")]
    if not argv:
        raise UsageError("nothing to do\nTry: onward run PROMPT, or onward --help")
    if words and words[0] not in _COMMANDS and argv[0] == words[0]:
        raise UsageError(f"there is no command {words[0]!r}{_guess(words[0], _COMMANDS)}; there are: run, models")
    found = parser.parse_args(argv)
    return ModelsArguments(json=found.json) if found.command == "models" else _checked(found)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="onward",
        description="Run an LLM agent that asks before it goes on, instead of being killed at a limit.",
        epilog=_EXAMPLES + "\nMore: onward run --help",
        formatter_class=raw,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and leave")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    run = commands.add_parser(
        "run",
        help="give an agent one prompt and show what it does",
        description="Give an agent one prompt and show what it does.",
        epilog=_RUN_NOTES,
        formatter_class=raw,
        allow_abbrev=False,
    )
    run.add_argument("prompt", metavar="PROMPT", help="what the agent shall do")
    run.add_argument("--model", default="rules", metavar="rules|KIND:NAME", help="who decides (default: rules)")
    run.add_argument("--base-url", metavar="URL", help="address of the model's server, up to its /v1")
    run.add_argument("--api-key-env", metavar="VARIABLE", help="environment variable whose key is sent to that address")
    run.add_argument(
        "--tools", action="append", default=[], metavar="files:DIR", help="let the agent look at the files below DIR"
    )
    run.add_argument(
        "--max-tool-iterations",
        metavar="N",
        default=str(DEFAULT_MAX_TOOL_ITERATIONS),
        help=f"rounds of tool calls before the limit (default: {DEFAULT_MAX_TOOL_ITERATIONS})",
    )
    run.add_argument(
        "--max-llm-calls", metavar="N", help="model calls in all, whatever is approved (default: no limit)"
    )
    run.add_argument(
        "--on-limit",
        default="ask",
        metavar="|".join(get_args(OnLimit)),
        help="what happens at the limit (default: ask)",
    )
    run.add_argument(
        "--json", action="store_true", help="write one event per line as JSON, and nothing else, to stdout"
    )
    models = commands.add_parser(
        "models",
        help="show which models can be used here",
        description="Show the kinds of models, which keys are set (never what they are), and the servers of this machine"
        " with their models. Nothing is spent: keys are not sent, and servers are asked for their list alone.",
        allow_abbrev=False,
    )
    models.add_argument("--json", action="store_true", help="write it as one JSON object")
    return parser


def _checked(found: argparse.Namespace) -> RunArguments:
    prompt: str = found.prompt
    if not prompt.strip():
        raise UsageError('the prompt is empty; say what the agent shall do, as in: onward run "Audit this folder"')
    model = _model(found.model)
    for flag, value in (("--base-url", found.base_url), ("--api-key-env", found.api_key_env)):
        if value is not None and model == "rules":
            raise UsageError(f"{flag} is for a model server; it goes with a model such as --model openai:NAME")
    return RunArguments(
        prompt=prompt,
        model=model,
        base_url=found.base_url,
        api_key_env=found.api_key_env,
        root=_only_root(found.tools),
        max_tool_iterations=_at_least_one("--max-tool-iterations", found.max_tool_iterations),
        max_llm_calls=None if found.max_llm_calls is None else _at_least_one("--max-llm-calls", found.max_llm_calls),
        on_limit=_on_limit(found.on_limit),
        json=found.json,
    )


def _model(spec: str) -> str:
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


def _on_limit(word: str) -> OnLimit:
    choices: tuple[OnLimit, ...] = get_args(OnLimit)
    for choice in choices:
        if word == choice:
            return choice
    raise UsageError(f"--on-limit {word!r} is unknown{_guess(word, choices)}; there are: {', '.join(choices)}")


def _only_root(specs: Sequence[str]) -> Path | None:
    if len(specs) > 1:
        raise UsageError(f"--tools is given {len(specs)} times; there is one kind, files:DIR, and one folder for it")
    return _root(specs[0]) if specs else None


def _root(spec: str) -> Path:
    kind, colon, name = spec.partition(":")
    if kind != "files" or not colon or not name:
        raise UsageError(f"--tools {spec!r} is unknown; there is: files:DIR, as in --tools files:.")
    root = Path(name).expanduser()
    if root.is_dir():
        return root
    if root.exists():
        raise UsageError(f"--tools {spec}: {name} is a file, not a folder; its folder would be files:{root.parent}")
    near = difflib.get_close_matches(root.name, _folders_beside(root), 1)
    hint = f" (did you mean files:{root.parent / near[0]}?)" if near else f" (looked in {Path.cwd()})"
    raise UsageError(f"--tools {spec}: there is no folder {name}{hint}")


def _folders_beside(path: Path) -> list[str]:
    try:
        return [item.name for item in path.parent.iterdir() if item.is_dir()]
    except OSError:
        return []


def _at_least_one(flag: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{flag} must be a whole number of 1 or more; it is {text!r}") from None
    if number < 1:
        raise UsageError(f"{flag} must be 1 or more; it is {number}")
    return number


def _guess(word: str, choices: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, choices, 1)
    return f" (did you mean {near[0]}?)" if near else ""
