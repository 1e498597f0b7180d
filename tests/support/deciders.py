"""A tool that pays, who may allow it, and what became of the calls."""

from __future__ import annotations

from typing import Any

import trio

from actors import ApprovalRequest, ApprovalResponse, approve, tool
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.turns import ToolMessage

from .play import Played


def payer(needs_approval: Any = True, *, name: str = "pay", ends_run: bool = False) -> tuple[Tool, list[int]]:
    """A tool that notes what it paid."""
    paid: list[int] = []

    async def pay(n: int) -> str:
        await trio.lowlevel.checkpoint()
        paid.append(n)
        return f"paid {n}"

    return tool(pay, name=name, description="Pay.", needs_approval=needs_approval, ends_run=ends_run), paid


def pays(*amounts: int, then: str = "ok", name: str = "pay") -> list[Any]:
    """A script: one turn with a call for each amount (`c1`, `c2`, ...), then an answer."""
    return [reply("", *[call(name, {"n": n}, id=f"c{place}") for place, n in enumerate(amounts, 1)]), then]


class Approver:
    """A provider that decides by the call's id, and keeps what it was asked."""

    def __init__(self, *, seconds: float = 0, **decisions: ApprovalResponse) -> None:
        self.asked: list[ApprovalRequest] = []
        self._decisions = decisions
        self._seconds = seconds

    async def __call__(self, request: ApprovalRequest) -> ApprovalResponse:
        self.asked.append(request)
        await trio.sleep(self._seconds)
        return self._decisions.get(request.call, approve())


def results(played: Played) -> dict[str, tuple[str, str]]:
    """Status and text of every stored result, by call."""
    return {
        result.call: (result.status, result.text)
        for message in played.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    }


def statuses(played: Played) -> dict[str, str]:
    """Status of every stored result, by call."""
    return {call: status for call, (status, _) in results(played).items()}
