"""`onward serve`: agents, and a gateway in front of them, until a signal comes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import trio

from protocol.errors import JournalError

from ..agent import AgentSpec, remote
from ..hostfile import told
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
from ._style import harmless
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
            async with _hosting(arguments) as runtime:
                await _spawn_agents(arguments, runtime, screen)
                stays = arguments.journal is not None
                async with listening(
                    runtime, arguments.listening, screen, restarting=True, token_stays=stays
                ) as gateway:
                    for text in gateway.left_out.values():
                        await screen.note(text)
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
    for spec in await _specs(arguments, screen):
        agent = await runtime.spawn(spec)
        run = agent.brought_back
        if run is not None:
            asks = f" (open questions: {len(run.open_requests)})" if run.open_requests else ""
            await screen.note(f"{agent.name}: goes on with {run.id}{asks}")
    for known in runtime.not_back:
        if known.made is not None:
            continue  # the gateway brings it back
        await screen.note(f"{known.name}: is kept in {arguments.journal}, and not hosted here")


@contextlib.asynccontextmanager
async def _hosting(arguments: ServeArguments) -> AsyncGenerator[Runtime, None]:
    """A runtime. Raises `UsageError` where the journal cannot be opened, `JournalError` where it fails later."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            runtime = await stack.enter_async_context(open_runtime(**_options(arguments)))
        except JournalError as error:
            raise UsageError(f"--journal {arguments.journal}: {error}") from None
        yield runtime


def _options(arguments: ServeArguments) -> dict[str, Any]:
    """Options of the runtime."""
    host = arguments.host
    given = {} if host is None else dict(host.runtime)
    return {"event_log_bytes": EVENT_LOG_BYTES, **given, "journal": arguments.journal}


def _kept_words(journal: Path | None) -> str:
    if journal is None:
        return "There is no journal: nothing is kept when it ends."
    return f"Kept in {journal}: the same command goes on where this one ends."


async def _specs(arguments: ServeArguments, screen: Screen) -> list[AgentSpec]:
    """The agents that are there from the start; what there is to say of them is said."""
    host = arguments.host
    if host is None:
        return [await _spec(settings, screen) for settings in arguments.agents]
    for warning in host.warnings:
        await screen.note(screen.style.yellow(harmless(f"note: {told(host.path, warning)}")))
    for spec in host.spawned:
        await open_notes(screen, spec.model, (), prefix=f"{spec.name}: " if len(host.spawned) > 1 else "")
    return list(host.spawned)


async def _spec(settings: AgentSettings, screen: Screen) -> AgentSpec:
    """An agent whose questions go to clients; what there is to say of it is said."""
    model = model_for(settings)
    spec, cautions = spec_for(settings, model, remote())
    await open_notes(screen, model, cautions)
    return spec
