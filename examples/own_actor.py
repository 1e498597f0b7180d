"""An actor of one's own: a store of tickets that the tools of two agents ask. The models are scripts.

It takes ten tickets a second, whoever asks. One makes it crash: its asker is told, and the store starts again as it was.

    python examples/own_actor.py
"""

from __future__ import annotations

import logging

import attrs
import trio

from actors import Agent, AgentSpec, EventsLost, open_runtime
from actors.kit import Ask, Mailbox, Port, Restarts
from actors.models.scripted import Scripted, call, reply
from protocol.events import Event, ToolFinished


@attrs.define(eq=False)
class Put(Ask[str]):
    """Keep a ticket; the answer is what was kept."""

    title: str


@attrs.define(eq=False)
class Drop(Ask[str]):
    """Forget a ticket; `KeyError` if there is none of that title."""

    title: str


@attrs.define
class Store:
    """It handles one message after the other: its state needs no lock."""

    titles: set[str] = attrs.field(factory=set[str])

    async def run(self, mailbox: Mailbox[Put | Drop]) -> None:
        """Handle messages until the mailbox ends."""
        async for message in mailbox:
            match message:
                case Put(title=title):
                    await trio.sleep(0.1)
                    self.titles.add(title.encode("ascii").decode())
                    message.reply.set(title)
                case Drop(title=title) if title in self.titles:
                    self.titles.remove(title)
                    message.reply.set(title)
                case Drop(title=title):
                    message.reply.fail(KeyError(title))


def desk(name: str, store: Port[Put | Drop], *titles: str) -> AgentSpec:
    """An agent whose tools ask the store: they hold its port, and need nothing else."""

    async def put(title: str) -> str:
        """Keep a ticket."""
        with trio.fail_after(5):  # the deadline of an ask is the asker's
            return f"kept {await store.ask(Put(title))}"

    async def drop(title: str) -> str:
        """Forget a ticket."""
        return f"dropped {await store.ask(Drop(title))}"

    puts = [call("put", {"title": title}) for title in titles]
    drops = [call("drop", {"title": title}) for title in (titles[0], "none")]
    return AgentSpec(name=name, model=Scripted([reply("", *puts), reply("", *drops), "done"]), tools=[put, drop])


async def main() -> None:
    """Let both agents work at once, and print what their tools say."""
    logging.getLogger("onward").setLevel(logging.ERROR)  # which has each crash with its traceback

    def note(_agent: Agent, event: Event | EventsLost) -> None:
        if isinstance(event, ToolFinished):
            print(f"{event.name} {event.status}: {event.text}")

    async with open_runtime(on_event=note) as runtime:
        store = await runtime.spawn_actor(Store(), name="store", restarts=Restarts(backoff_seconds=0.05, jitter=0.5))
        north = await runtime.spawn(desk("north", store, "lamp", "door"))
        south = await runtime.spawn(desk("south", store, "roof", "t\xfcr", "wall"))
        for run in (await north.start("Do your work"), await south.start("Do your work")):
            await run.wait_ended()


if __name__ == "__main__":
    trio.run(main)
