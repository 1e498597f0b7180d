"""Events of a run, for the tests of the log."""

from __future__ import annotations

from collections.abc import Iterable

from protocol.events import ContentDelta, ErrorInfo, RunFailed, RunStarted
from protocol.limits import Counters
from protocol.result import RunSummary
from protocol.usage import NO_USAGE

SUMMARY = RunSummary(
    text="",
    answered=False,
    finish_reason="stop",
    stopped_by="model",
    stop_reason=None,
    limit=None,
    finalized=None,
    usage=NO_USAGE,
    context_tokens=None,
    cost=None,
    counters=Counters(),
    elapsed_seconds=0.0,
)


def delta(text: str, run: str = "r1", path: tuple[str, ...] = ()) -> ContentDelta:
    return ContentDelta(run=run, agent_path=path, message="m", text=text)


def begin(run: str = "r1") -> RunStarted:
    return RunStarted(run=run, agent="a", model="m", prompt="go")


def end(run: str = "r1") -> RunFailed:
    return RunFailed(run=run, error=ErrorInfo("x", "y"), summary=SUMMARY)


def texts(events: Iterable[object]) -> list[str]:
    return [event.text for event in events if isinstance(event, ContentDelta)]
