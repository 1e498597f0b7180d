"""What a person may answer where a call needs approval, and what each answer means. Pure."""

from __future__ import annotations

import json
from typing import Any, TypeAlias, cast

from protocol.approval import ApprovalResponse
from protocol.events import ApprovalRequired

from ._answers import Misread, WantsHelp, deadline_words
from ._style import Style, harmless, one_line

__all__ = ("ApprovalAnswer", "approval_question", "read_approval")

_HELP = """\
  a               approve: run the call as it is
  e JSON          edit: run it with these arguments instead, as in e {"path": "b.txt"}
  d [REASON]      deny: the call is not run, and the model reads the reason"""
_SHOWN_CHARS = 4_000
"""Of the arguments; what is longer is cut, and said to be."""

ApprovalAnswer: TypeAlias = ApprovalResponse | Misread | WantsHelp


def read_approval(line: str) -> ApprovalAnswer:
    """Read what was typed. Whatever is not clearly an answer is none, and never an approval."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    match word.lower():
        case "a" | "approve" | "y" | "yes":
            return Misread("to change the arguments, answer: e JSON") if rest else ApprovalResponse("approve")
        case "e" | "edit":
            return _edit(rest)
        case "d" | "deny" | "n" | "no":
            return ApprovalResponse("deny", reason=rest or None)
        case "?" | "h" | "help":
            return WantsHelp()
        case "":
            return Misread("answer a, e JSON or d (? for help)")
        case _:
            return Misread(f"{one_line(word, 40)!r} is no answer; answer a, e JSON or d (? for help)")


def _edit(text: str) -> ApprovalAnswer:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        return Misread(f"e takes the arguments as a JSON object: {error}")
    if not isinstance(value, dict):
        return Misread('e takes the arguments as a JSON object, as in e {"path": "b.txt"}')
    return ApprovalResponse("approve", arguments=cast("dict[str, Any]", value))


def approval_question(request: ApprovalRequired, style: Style) -> str:
    """What is asked, over several lines: the call as it would run, the answers."""
    shown = harmless(json.dumps(request.arguments, ensure_ascii=False, indent=2))
    if len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}\n... cut: {len(shown):,} characters"
    lines = [style.bold(style.yellow(f"May this call run? {one_line(request.name, 200)}")), _indented(shown)]
    lines.append(style.dim(_HELP))
    if request.expires_in_seconds is not None:
        lines.append(style.dim(deadline_words(request.expires_in_seconds, "denied")))
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join([f"  {line}" for line in text.split("\n")])
