"""The planner: it works like a model, through the same interface, loop, tools and history, and is none.

It is a fixed set of rules. It makes a planned use of the file tools and reports numbers that a person can check; it
understands nothing, and says so. It is what `onward run` uses when no model is named, and a way to try limits, gates
and steering without a server or a key.

Theory of operation. A turn is a function of the request alone: the conversation is folded into what is known
(`_planner_seen`), the rules say what the task is (`_planner_rules`), the walk says which calls are still wanted
(`_planner_audit`). If some are, and tools are on, the turn asks for the first few; else it is the report
(`_planner_report`). The same call is asked for at most twice, so every task ends.
"""

from __future__ import annotations

import attrs
import trio

from protocol.errors import SpecError
from protocol.model import CallDelta, ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import AssistantMessage, Finish, Part, TextPart, ToolCall, Turn, calls_of
from protocol.usage import NO_USAGE

from ._audit import survey
from ._report import answer_text, progress_text, report_text
from ._rules import Audit, Lookup
from ._seen import Ask, Seen, see
from ._tools import ask_count, ask_list, ask_read, ask_search

__all__ = ("BANNER", "Planner")

BANNER = "rules-v1 is a rule-based planner, not a language model: it lists, counts, reads and searches files."
"""What it is, for whoever starts it."""

_ABILITIES = """\
I can do this, with the tools for files:
  Audit this folder            (or: audit PATH; add: only *.py, skip tests)
  count lines in PATH
  read PATH
  list PATH
  search for WORD in PATH      (a text of several words in quotes)
"""

_A_REAL_MODEL = """\
For anything else, name a language model: any OpenAI-compatible server will do.
  onward run PROMPT --model openai:NAME --base-url URL
"""

_NO_TOOLS = "I have not been given the tools for it: {missing}. Give me a folder: --tools files:DIR\n"


@attrs.frozen
class _Plan:
    """What a turn says and asks for."""

    text: str
    asks: tuple[Ask, ...] = ()


class Planner:
    """A deterministic planner in a model's place; no language model, and it uses no tokens.

    It knows prompts such as "Audit this folder", "audit PATH", "count lines in PATH", "read PATH", "list PATH" and
    "search for WORD in PATH", and works with the tools of `files()`. Prompts it has no rule for get an answer that
    says so. An audit asks for at most `calls_per_turn` calls in each turn, so a folder with many files takes several.

    A later message, such as steering at a limit, may narrow a task (`skip tests`, `skip docs and *.md`, `only *.py`),
    end it (`report now`, `enough`) or, after a run that ended early, resume it (`go on`). Calls that were discarded,
    not run or failed are asked for once more, and then given up; the report says so.
    """

    def __init__(self, *, calls_per_turn: int = 8) -> None:
        if type(calls_per_turn) is not int or calls_per_turn < 1:
            raise SpecError(f"calls_per_turn must be an integer >= 1; it is {calls_per_turn!r}")
        self._calls_per_turn = calls_per_turn

    @property
    def name(self) -> str:
        """`rules-v1`."""
        return "rules-v1"

    @property
    def profile(self) -> Profile:
        """Definitions may stay when tools are off."""
        return Profile(keeps_tools_when_off=True, reports_sending=True)

    @property
    def banner(self) -> str:
        """What it is, for whoever starts it."""
        return BANNER

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Plan the next step from the request alone. Never raises; its usage is zero tokens."""
        await trio.lowlevel.checkpoint()
        emit(RequestSent())
        plan = self._plan(request)
        for line in plan.text.splitlines(keepends=True):
            emit(TextDelta(line))
            await trio.lowlevel.checkpoint()
        number = sum(len(calls_of(m.parts)) for m in request.messages if isinstance(m, AssistantMessage))
        parts: list[Part] = [TextPart(plan.text)] if plan.text else []
        for index, ask in enumerate(plan.asks):
            emit(CallDelta(index, ask.arguments, ask.tool))
            parts.append(ToolCall(f"rules-{number + index + 1}", ask.tool, ask.arguments))
        finish: Finish = "tool_calls" if plan.asks else "stop"
        return Turn(tuple(parts), finish, finish, NO_USAGE)

    def _plan(self, request: ModelRequest) -> _Plan:
        seen = see(request.messages)
        tools = frozenset([tool.name for tool in request.tools])
        if seen.task is None or seen.unknown is not None:
            return _Plan(_unknown(seen.unknown or ""))
        may_ask = request.tools_on and not seen.ended
        if isinstance(seen.task, Audit):
            return self._audit(seen, seen.task, tools, may_ask=may_ask)
        return _look_up(seen, seen.task, tools, may_ask=may_ask)

    def _audit(self, seen: Seen, task: Audit, tools: frozenset[str], *, may_ask: bool) -> _Plan:
        missing = {"list_dir", "count_lines"} - tools
        if missing and not seen.results:
            return _Plan(_NO_TOOLS.format(missing=", ".join(sorted(missing))))
        found = survey(seen, task, tools)
        asks = tuple(found.asks[: self._calls_per_turn]) if may_ask else ()
        return _Plan(progress_text(found, len(asks)), asks) if asks else _Plan(report_text(found, seen.remarks))


def _look_up(seen: Seen, task: Lookup, tools: frozenset[str], *, may_ask: bool) -> _Plan:
    ask = _ask_for(task)
    result, failure = seen.text(ask), seen.failure(ask)
    if result is not None:
        return _Plan(answer_text(task, result))
    if failure is not None:
        return _Plan(f"I could not do it: {task.tool} ended as {failure.status}: {failure.text}\n")
    if task.tool not in tools:
        return _Plan(_NO_TOOLS.format(missing=task.tool))
    if not may_ask:
        return _Plan(f"I have no result for it yet: {task.tool} of {task.path} has not been run.\n")
    return _Plan("", (ask,))


def _ask_for(task: Lookup) -> Ask:
    match task.tool:
        case "count_lines":
            return ask_count(task.path)
        case "read_text":
            return ask_read(task.path)
        case "list_dir":
            return ask_list(task.path)
        case _:
            return ask_search(task.pattern, task.path)


def _unknown(prompt: str) -> str:
    said = " ".join(prompt.split())
    shown = said if len(said) <= 80 else said[:77] + "..."
    opening = f"I am a rule-based planner and no language model; I have no rule for this: {shown}"
    return f"{opening}\n\n{_ABILITIES}\n{_A_REAL_MODEL}"
