"""`onward serve`: agents, and a gateway in front of them, until a signal comes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import trio

from protocol.errors import JournalError

from ..agent import AgentSpec, remote
from ..runtime import Runtime, open_runtime
from ._agent import model_for, spec_for
from ._listening import listening
from ._logging import logs_to
from ._notes import open_notes
from ._output import Output
from ._screen import Screen
from ._serve_arguments import ServeArguments
from ._settings import AgentSettings
from ._status import ANSWERED, FAILED
from ._task_tree import tree_on_signal
from ._usage import UsageError

__all__ = ("serve_command",)

EVENT_LOG_BYTES = 4 * 1024 * 1024
"""Of one agent: what a client that was away can catch up with."""
STOP_SECONDS = 4.0
"""How long runs have to come to their next step: clients, who are told at intervals, all know within ten seconds."""


def serve_command(arguments: ServeArguments) -> int:
    """Serve; the exit status. Raises `UsageError` for what only shows when agents are made, or the address is opened."""
    with logs_to(2, arguments.logging):
        return trio.run(_serve, arguments)


async def _serve(arguments: ServeArguments) -> int:
    screen = Screen(Output(1), Output(2))
    with tree_on_signal(2), trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with _hosting(arguments.journal) as runtime:
                await _spawn_agents(arguments, runtime, screen)
                stays = arguments.journal is not None
                async with listening(
                    runtime, arguments.listening, screen, restarting=True, token_stays=stays
                ) as gateway:
                    await screen.note(f"{_kept_words(arguments.journal)} Ctrl-C ends it.")
                    name = signal.Signals(await anext(signals)).name
                    for number in (signal.SIGINT, signal.SIGTERM):
                        signal.signal(number, signal.SIG_DFL)  # the next one ends the process where it stands
                    gateway.drain()
                    runs = "stand still" if arguments.journal is not None else "are ended"
                    await screen.note(f"{name}: clients are told, and runs {runs}. Once more: at once.")
                    await runtime.drain(grace_seconds=STOP_SECONDS)
                    await runtime.flushed()
        except JournalError as error:
            await screen.note(f"onward: {error}")
            return FAILED
    return ANSWERED


async def _spawn_agents(arguments: ServeArguments, runtime: Runtime, screen: Screen) -> None:
    """Make the agents, or bring them back; say what they go on with, and who is not among them."""
    for settings in arguments.agents:
        agent = await runtime.spawn(await _spec(settings, screen, named=len(arguments.agents) > 1))
        run = agent.brought_back
        if run is not None:
            asks = f" (open questions: {len(run.open_requests)})" if run.open_requests else ""
            await screen.note(f"{agent.name}: goes on with {run.id}{asks}")
    for known in runtime.not_back:
        await screen.note(f"{known.name}: is kept in {arguments.journal}, and not hosted here")


@contextlib.asynccontextmanager
async def _hosting(journal: Path | None) -> AsyncGenerator[Runtime, None]:
    """A runtime. Raises `UsageError` where the journal cannot be opened, `JournalError` where it fails later."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            runtime = await stack.enter_async_context(open_runtime(journal=journal, event_log_bytes=EVENT_LOG_BYTES))
        except JournalError as error:
            raise UsageError(f"--journal {journal}: {error}") from None
        yield runtime


def _kept_words(journal: Path | None) -> str:
    if journal is None:
        return "There is no journal: nothing is kept when it ends."
    return f"Kept in {journal}: the same command goes on where this one ends."


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
