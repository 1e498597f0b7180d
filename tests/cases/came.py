"""What came of a case."""

from __future__ import annotations

import attrs

from actors import Budget
from actors.agent import RunStatistics
from protocol.errors import AgentBusy, RunCancelledError
from protocol.events import (
    TERMINAL_EVENTS,
    ContinuationRequired,
    RunCancelled,
    RunEvent,
    RunFailed,
    RunFinished,
    ToolFinished,
)
from protocol.requests import DecisionReply
from protocol.turns import Message
from tests.support.play import Played
from tests.support.strict import Asked

from .conditions import Seen
from .gateway.place import Place
from .hooks import Kept
from .tools import Workshop
from .wire.server import CaseServer

BUDGETS = {"total_tokens", "cost", "wall_clock"}
"""Limits that the cases call a budget."""
OUTCOMES = {"stop": "answer", "length": "truncated", "content_filter": "blocked", "empty": "empty"}


@attrs.frozen(kw_only=True)
class Came:
    """What came of one program of a case."""

    played: tuple[Played, ...]
    """The runs of the agent that the case is about, in the order in which they began."""
    asked: tuple[Asked, ...]
    """All requests of that agent."""
    faults: tuple[str, ...]
    """What a strict server would have refused of them."""
    stream: tuple[RunEvent, ...]
    """All events of its stream, those of agents below it included."""
    conversations: dict[str, tuple[Message, ...]]
    """Of each agent by its name, when everything was over, threads that had been left behind too."""
    tools: Workshop
    seen: Seen
    """What the stop condition of the case looked at."""
    kept: Kept
    """What the hooks of the case were told."""
    statistics: tuple[RunStatistics, ...]
    """Of each run, in the order in which they were started."""
    replies: tuple[DecisionReply, ...]
    """What the runtime said to each decision that came from outside."""
    times: dict[str, float]
    """When each moment came first, as the actions know moments."""
    refused: tuple[AgentBusy, ...]
    """Starts that the agent refused."""
    budget: Budget | None
    """What all its agents draw on, if the case tells of such a thing."""
    raised: BaseException | None
    """What came out of the runtime."""
    seconds: float
    """From the first start to the end of everything, the runtime's close included; real where time is."""
    served: CaseServer
    """What a server was asked, if the case tells of one."""
    place: Place | None
    """The gateway of the case and its clients, if it is played from afar."""

    @property
    def last(self) -> Played:
        return self.played[-1]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation of the agent that the case is about."""
        return next(iter(self.conversations.values()))

    @property
    def tool_runs(self) -> dict[str, int]:
        return self.tools.runs

    @property
    def prompts(self) -> list[ContinuationRequired]:
        return [event for played in self.played for event in played.all(ContinuationRequired)]

    @property
    def results(self) -> dict[str, list[ToolFinished]]:
        found: dict[str, list[ToolFinished]] = {}
        for event in self.stream:
            if isinstance(event, ToolFinished):
                found.setdefault(event.call, []).append(event)
        return found

    @property
    def ends(self) -> list[RunFinished | RunFailed | RunCancelled]:
        """The terminal events of the agent that the case is about."""
        return [event for event in self.stream if isinstance(event, TERMINAL_EVENTS) and not event.agent_path]

    @property
    def outcome(self) -> str:
        """In the words of the cases."""
        error, result = self.last.error, self.last.result
        if isinstance(error, RunCancelledError):
            return "cancelled"
        if error is not None:
            return "error"
        if result.limit is not None and not result.answered:
            return "budget" if result.limit.name in BUDGETS else "limit"
        return OUTCOMES.get(result.finish_reason, "answer" if result.answered else result.finish_reason)
