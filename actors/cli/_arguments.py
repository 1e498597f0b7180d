"""The command line: what may be asked for, and what is said of what may not.

What can be refused before anything starts is refused here, by `UsageError`, with exit status 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeAlias

import attrs

from ._attach_arguments import AttachArguments, add_attach, checked_attach
from ._check_arguments import CheckArguments, add_check, checked_check
from ._journal_arguments import JournalArguments, add_journal, checked_journal
from ._listening_options import port_of
from ._serve_arguments import ServeArguments, add_serve, checked_serve
from ._settings import AgentSettings, add_settings, checked_settings
from ._usage import Parser, UsageError, guess

__all__ = ("Arguments", "ModelsArguments", "RunArguments", "parse")

_COMMANDS = ("run", "serve", "check", "attach", "models", "journal")

_EXAMPLES = """\
examples:
  onward run "Audit this folder" --tools files:. --max-tool-iterations 3
  onward run "count lines in README.md" --tools files:. --json
  onward run "Summarise README.md" --tools files:. --model ollama:NAME
  onward serve --tools files:. --max-tool-iterations 3
  onward check agents.toml
  onward attach
  onward models
  onward journal ls onward.db
"""

_RUN_NOTES = """\
At the limit of tool iterations (--on-limit):
  ask       show the pending calls and ask; without a terminal: decline (the default)
  approve   go on, as often as it takes
  decline   do not run the pending calls; the model answers from what it has
  finalize  no question: the model's last call is made with tools off
  stop      no question and no last call: the run ends where it is

With --serve PORT, clients (`onward attach http://127.0.0.1:PORT`) follow the run too, and the question is put to all:
whoever is first decides. Without a terminal it waits for them.

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


@attrs.frozen(kw_only=True)
class RunArguments(AgentSettings):
    """What `onward run` was asked to do, checked."""

    prompt: str
    json: bool
    serve: int | None = None
    """The port that a gateway is opened on; 0: any free one."""


@attrs.frozen(kw_only=True)
class ModelsArguments:
    """What `onward models` was asked to do."""

    json: bool


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


Arguments: TypeAlias = (
    RunArguments | ServeArguments | CheckArguments | AttachArguments | ModelsArguments | JournalArguments
)


def parse(argv: Sequence[str]) -> Arguments:
    """Read the arguments. Raises `UsageError`; `--help` and `--version` print and leave by `SystemExit(0)`."""
    parser = _parser()
    words = [word for word in argv if not word.startswith("-")]
    if not argv:
        raise UsageError("nothing to do\nTry: onward run PROMPT, or onward --help")
    if words and words[0] not in _COMMANDS and argv[0] == words[0]:
        raise UsageError(
            f"there is no command {words[0]!r}{guess(words[0], _COMMANDS)}; there are: {', '.join(_COMMANDS)}"
        )
    found = parser.parse_args(argv)
    match found.command:
        case "run":
            return _checked_run(found)
        case "serve":
            return checked_serve(found)
        case "check":
            return checked_check(found)
        case "attach":
            return checked_attach(found)
        case "journal":
            return checked_journal(found)
        case _:
            return ModelsArguments(json=found.json)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(
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
    add_settings(run)
    run.add_argument(
        "--json", action="store_true", help="write one event per line as JSON, and nothing else, to stdout"
    )
    run.add_argument(
        "--serve", metavar="PORT", help="let clients on this machine follow the run and decide; 0: any free port"
    )
    add_serve(commands.add_parser)
    add_check(commands.add_parser)
    add_attach(commands.add_parser)
    models = commands.add_parser(
        "models",
        help="show which models can be used here",
        description="Show the kinds of models, which keys are set (never what they are), and the servers of this machine"
        " with their models. Nothing is spent: keys are not sent, and servers are asked for their list alone.",
        allow_abbrev=False,
    )
    models.add_argument("--json", action="store_true", help="write it as one JSON object")
    add_journal(commands.add_parser)
    return parser


def _checked_run(found: argparse.Namespace) -> RunArguments:
    prompt: str = found.prompt
    if not prompt.strip():
        raise UsageError('the prompt is empty; say what the agent shall do, as in: onward run "Audit this folder"')
    return RunArguments(
        **checked_settings(found),
        prompt=prompt,
        json=found.json,
        serve=None if found.serve is None else port_of("--serve", found.serve),
    )
