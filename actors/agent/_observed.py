"""Telling whoever observes a run that it is over: what an observer does wrong is an event and changes nothing (H4)."""

from __future__ import annotations

from protocol.events import AgentWarned

from ..eventlog import EventStream
from ..logs import get_logger
from ._callbacks import call_user
from ._core import RunCore

__all__ = ("tell_end",)

logger = get_logger(__name__)


async def tell_end(core: RunCore, stream: EventStream, agent: str) -> None:
    """Tell `on_run_end`, on a cancel too."""
    hook, result = core.spec.on_run_end, core.result
    assert hook is not None
    if result is None:
        return
    try:
        await call_user(hook, result, seconds=core.spec.callback_timeout_seconds)
    except Exception as error:
        logger.exception("on_run_end failed", agent_name=core.spec.name)
        text = f"on_run_end raised {type(error).__name__}"
        stream.append(AgentWarned(agent=agent, code="observer_failed", text=text))
