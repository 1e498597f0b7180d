"""`onward serve`: agents, and a gateway in front of them, until a signal comes."""

from __future__ import annotations

import signal

import trio

from ..agent import AgentSpec, remote
from ..runtime import open_runtime
from ._agent import model_for, spec_for
from ._listening import listening
from ._logging import logs_to
from ._notes import open_notes
from ._output import Output
from ._screen import Screen
from ._serve_arguments import ServeArguments
from ._settings import AgentSettings
from ._status import ANSWERED
from ._task_tree import tree_on_signal
from ._usage import UsageError

__all__ = ("serve_command",)

EVENT_LOG_BYTES = 4 * 1024 * 1024
"""Of one agent: what a client that was away can catch up with."""


def serve_command(arguments: ServeArguments) -> int:
    """Serve; the exit status. Raises `UsageError` for what only shows when agents are made, or the address is opened."""
    with logs_to(2, arguments.logging):
        return trio.run(_serve, arguments)


async def _serve(arguments: ServeArguments) -> int:
    screen = Screen(Output(1), Output(2))
    with tree_on_signal(2), trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with open_runtime(event_log_bytes=EVENT_LOG_BYTES) as runtime:
            for settings in arguments.agents:
                await runtime.spawn(await _spec(settings, screen, named=len(arguments.agents) > 1))
            async with listening(runtime, arguments.listening, screen, restarting=True):
                await screen.note("There is no journal: nothing is kept when it ends. Ctrl-C ends it.")
                name = signal.Signals(await anext(signals)).name
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)  # the next one ends the process where it stands
                await screen.note(f"{name}: clients are told, and runs are ended. Once more: at once.")
    return ANSWERED


async def _spec(settings: AgentSettings, screen: Screen, *, named: bool) -> AgentSpec:
    """An agent whose questions go to clients; what there is to say of it is said."""
    prefix = f"{settings.name}: " if named else ""
    try:
        model = model_for(settings)
        spec, cautions = spec_for(settings, model, remote())
    except UsageError as error:
        raise UsageError(f"{prefix}{error}") from None
    await open_notes(screen, model, cautions, prefix=prefix)
    return spec
