"""Standing still where a run may be taken up again: the runtime stops, and its journal brings the run back."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from ._core import RunCore

__all__ = ("park", "rest", "suspend", "wait_parked", "waits")

LOOK_SECONDS = 0.05


async def park(core: RunCore) -> None:
    """Stop here until the run is suspended."""
    core.parked = True
    await trio.sleep_forever()


def waits(core: RunCore) -> bool:
    """Whether a run waits for a decision, or for its caller."""
    return bool(core.log.grammar.open_requests or core.state.pause)


async def wait_parked(core: RunCore | None) -> None:
    """Wait until a run has come to its next boundary, or to where it waits for somebody, or to its end."""
    while core is not None and not (core.parked or core.log.over or waits(core)):  # noqa: ASYNC110  once in its life
        await trio.sleep(LOOK_SECONDS)


def rest(core: RunCore | None, reason: str) -> None:
    """End a run at its next boundary, as its agent ends; what it asks is closed as that."""
    if core is not None and not core.over.is_set():
        core.requests_end_as = "agent_ended"
        core.stop(reason)


def suspend(core: RunCore | None) -> None:
    """Stop a run where it is, without an end: what it had come to has been written down, and goes on from there."""
    if core is None or core.log.over or core.suspended:
        return
    for one in (core, *_below(core)):
        one.log.mute()
        one.suspended = True
    core.scope.cancel("suspended")
    core.stirred.set()


def _below(core: RunCore) -> Iterator[RunCore]:
    for child in core.children:
        yield child
        yield from _below(child)
