"""`onward run`: one agent, one prompt, from the first event to the exit status."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator

import trio

from protocol.errors import RunError
from protocol.result import RunResult

from ..agent import Agent, AgentSpec, Continuation, remote
from ..runtime import open_runtime
from ._agent import model_for, spec_for
from ._arguments import RunArguments
from ._ask import TerminalGate, decline_unasked
from ._follow import Follower, obey_signals
from ._json import JsonView
from ._listening_options import Listening
from ._live import LiveView
from ._notes import closing_notes, open_notes
from ._output import Output
from ._screen import Screen
from ._status import FAILED, status_of

__all__ = ("run_command",)

EVENT_LOG_BYTES = 16 * 1024 * 1024
"""One agent, one reader: a burst of large tool results must not outrun the output."""


def run_command(arguments: RunArguments) -> int:
    """Run it; the exit status. Raises `UsageError` for what only shows when the agent is made."""
    return trio.run(_run, arguments)


async def _run(arguments: RunArguments) -> int:
    screen = Screen(Output(1), Output(2))
    served, asked = arguments.serve is not None, os.isatty(0) and os.isatty(2)
    view = JsonView(screen) if arguments.json else LiveView(screen, tells_waits=served and not asked)
    follower = Follower(view)
    model = model_for(arguments)
    spec, cautions = spec_for(arguments, model, _gate(screen, follower, served=served, asked=asked))
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await open_notes(screen, model, cautions)
        try:
            end = await _converse(arguments, spec, follower, signals, screen)
            if isinstance(end, OSError):
                raise end
            await view.end(end.partial if isinstance(end, RunError) else end)
        except BrokenPipeError:
            return FAILED  # whoever read the output has left: there is nobody to say more to
        except OSError as error:
            await screen.note(f"onward: the output cannot be written: {error.strerror}")
            return FAILED
        await closing_notes(screen, end)
    return status_of(end)


async def _converse(
    arguments: RunArguments, spec: AgentSpec, follower: Follower, signals: AsyncIterator[int], screen: Screen
) -> RunResult | RunError | OSError:
    """Run to the end, or until the output cannot be written any more, which cancels the run."""
    async with open_runtime(event_log_bytes=EVENT_LOG_BYTES) as runtime:
        agent = await runtime.spawn(spec)
        if arguments.serve is None:
            return await _follow(agent, arguments.prompt, follower, signals, screen)
        from ._listening import listening  # slow, and only needed here
        from ._task_tree import tree_on_signal

        async with listening(runtime, Listening(port=arguments.serve), screen, restarting=False):
            with tree_on_signal(2):
                end = await _follow(agent, arguments.prompt, follower, signals, screen)
            agent.stop("its run is over")  # so that clients know that nothing comes any more
            await agent.stopped.wait()
            return end


async def _follow(
    agent: Agent, prompt: str, follower: Follower, signals: AsyncIterator[int], screen: Screen
) -> RunResult | RunError | OSError:
    end: RunResult | RunError | OSError
    async with agent.run(prompt) as run, trio.open_nursery() as nursery:
        nursery.start_soon(obey_signals, signals, run, screen, name="signals")
        try:
            await follower.follow(run.events())
            end = await run.result()
        except (RunError, OSError) as error:
            end = error  # as a value: a nursery would wrap it
        finally:
            nursery.cancel_scope.cancel("the run is over, or nobody reads of it")
    return end


def _gate(screen: Screen, follower: Follower, *, served: bool, asked: bool) -> Continuation:
    """Who answers `--on-limit ask`: the person at the terminal, if there is one, and clients, if there can be any."""
    if asked:
        return TerminalGate(screen, follower.wait_shown)
    return remote() if served else decline_unasked(screen, follower.wait_shown)
