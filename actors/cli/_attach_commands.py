"""What a person may command between questions: start, steer and end runs, and look around."""

from __future__ import annotations

import attrs

from ..client import Client
from ._board import Board, Known, Waiting
from ._style import harmless, one_line
from ._words import count, waits_for

__all__ = ("COMMANDS", "Commands")

COMMANDS = """\
  PROMPT          start a run (/run PROMPT, where it could be taken for an answer)
  /steer TEXT     give the run a message: the model reads it at the next step
  /cancel [now]   end the run after the step in hand, or now
  /to NAME        which agent is meant, where there are several
  /agents /waits  who is there; what waits for somebody, and how long
  /quit           leave; what runs goes on"""


@attrs.define(eq=False)
class Commands:
    """Does them; each returns what there is to say. Raise `ClientError`."""

    client: Client
    board: Board
    agent: str | None = None
    """The agent that is meant: its name or id; `None`: the only one there is."""

    async def do(self, line: str) -> str:
        """Do what a line says; without a slash it is a prompt."""
        if not line.startswith("/"):
            return await self._start(line)
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        match word, rest:
            case "/run" | "/steer" | "/to", "":
                return f"{word} lacks its text (/help lists the commands)"
            case "/run", _:
                return await self._start(rest)
            case "/steer", _:
                return await self._steer(rest)
            case "/cancel", "" | "now":
                return await self._cancel(now=rest == "now")
            case "/to", _:
                return self._choose(rest)
            case "/agents", "":
                return "\n".join([self._line_of(agent) for agent in self.board.agents.values()]) or "Nobody is there."
            case "/waits", "":
                return "\n".join([self._wait_of(one) for one in self.board.waiting.values()]) or "Nothing waits."
            case _:
                return f"{one_line(line, 60)!r} is no command (/help lists them)"

    async def _start(self, prompt: str) -> str:
        agent, trouble = self._meant()
        if agent is None:
            return trouble
        if agent.run is not None:
            return f"{harmless(agent.name)} has a run going on: /steer TEXT gives it a message, /cancel ends it"
        await self.client.start(agent.id, prompt)
        return ""

    async def _steer(self, text: str) -> str:
        run, trouble = self._run()
        if run is not None:
            await self.client.steer(run, text)
        return trouble

    async def _cancel(self, *, now: bool) -> str:
        run, trouble = self._run()
        if run is None:
            return trouble
        await self.client.cancel(run, mode="now" if now else "boundary")
        return "It ends now." if now else "It ends after the step in hand."

    def _choose(self, name: str) -> str:
        if len(self.board.named(name)) != 1:
            return f"There is no agent {one_line(name, 64)!r}; there are: {self.board.names()}"
        self.agent = name
        return f"Now {one_line(name, 64)} is meant."

    def _meant(self) -> tuple[Known | None, str]:
        """The agent that a command is for, or what is missing where that is not clear."""
        agents = list(self.board.agents.values()) if self.agent is None else self.board.named(self.agent)
        if len(agents) == 1:
            return agents[0], ""
        return None, f"Which agent? /to NAME; there are: {self.board.names()}" if agents else "No agent is there now."

    def _run(self) -> tuple[str | None, str]:
        agent, trouble = self._meant()
        if agent is None or agent.run is not None:
            return (None if agent is None else agent.run), trouble
        return None, f"{harmless(agent.name)} has no run going on"

    def _line_of(self, agent: Known) -> str:
        waits = sum(waiting.agent is agent for waiting in self.board.waiting.values())
        said = "idle" if agent.run is None else "runs"
        return f"  {harmless(agent.name)}: {said}" + (f", {count(waits, 'open question')}" if waits else "")

    def _wait_of(self, waiting: Waiting) -> str:
        return f"  {harmless(waiting.agent.name)}: {waits_for(self.board.as_of_now(waiting))}"
