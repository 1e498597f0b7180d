"""The tasks of a run, started in its agent's nursery."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from ..kit import current_party
from ..logs import bound, get_logger
from ._context import RunContext, current_activity, current_run
from ._core import RunCore
from ._observed import tell_end
from ._probe import Probe, ProbedRun
from ._star import Drive, run_star, watch_over

__all__ = ("Launched", "launch")

logger = get_logger(__name__)


@attrs.frozen(eq=False)
class Launched:
    """A run, and what it needs to go."""

    core: RunCore
    context: RunContext
    agent: str
    """Its agent's id."""
    driver: Drive


def launch(nursery: trio.Nursery, run: Launched, release: Callable[[], object]) -> None:
    """Start a run; `release` is called when all is over.

    The tasks start in the caller's context: the run, its tools and its spans see the caller's context variables.
    """
    core = run.core
    name = core.spec.name
    tokens = current_run.set(run.context), current_activity.set(core.activity)
    party = current_party.set(core.turn)
    try:
        with bound(agent=run.agent, agent_name=name, run=core.run, request=None, connection=None):
            nursery.start_soon(_serve, run, core.shared.watch.probe, release, name=f"{name}/{core.run}")
            nursery.start_soon(watch_over, core, core.spec.cancel_grace_seconds, name=f"{name}/watchdog")
    finally:
        current_run.reset(tokens[0])
        current_activity.reset(tokens[1])
        current_party.reset(party)


async def _serve(run: Launched, probe: Probe | None, release: Callable[[], object]) -> None:
    core = run.core
    logger.info("run started")
    try:
        if core.over.is_set():  # brought back at its end: nothing drives it any more
            pass
        elif probe is None:
            await run_star(core, core.shared.threads, run.driver)
        else:
            await _probed(run, probe)
    finally:
        _log_end(core)
        if core.spec.on_run_end is not None:
            # The hook's own bound is shorter: that it was too slow is told.
            with trio.move_on_after(core.spec.callback_timeout_seconds + 1, shield=True):
                await tell_end(core, run.context.stream, run.agent)
        core.closed.set()
        release()


async def _probed(run: Launched, probe: Probe) -> None:
    core = run.core
    facts = ProbedRun(
        agent=run.agent,
        agent_name=core.spec.name,
        run=core.run,
        path=core.path,
        model=core.spec.model,
        system=core.spec.system,
        prompt=core.state.prompt,
    )
    with probe.run(facts) as core.probe:
        assert core.probe is not None
        core.log.tap = core.probe.heard
        await run_star(core, core.shared.threads, run.driver)


def _log_end(core: RunCore) -> None:
    """Say how a run went, but nothing of what was said in it."""
    result = core.result
    if result is None:
        logger.info("run suspended")
        return
    counters = result.counters
    logger.info(
        "run ended",
        stopped_by=result.stopped_by,
        finish_reason=result.finish_reason,
        seconds=round(result.elapsed_seconds, 3),
        llm_calls=counters.llm_calls,
        tool_calls=counters.tool_calls,
        tokens=result.usage.total_tokens,
    )
