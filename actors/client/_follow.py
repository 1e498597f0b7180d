"""Following agents: what comes is put in order, gaps are found, and what is missing is asked for again.

Each agent has a track with its place in that agent's events. From an attach to its reply, all that comes of the agent is
of an earlier attach and is dropped: the reply precedes the first event behind the place that it answers for.

The queue is bounded, and nobody waits for a slow reader: when it is full, its agents are detached, and when the reader
has emptied it they are attached again from their places. So nothing is lost that the server's log still holds.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any, Literal, Self

import attrs
import msgspec
import trio

from protocol.events import AgentStopped
from protocol.wire.commands import AgentAttach, AgentDetach, Position
from protocol.wire.cursor import Cursor
from protocol.wire.incoming import NotOfTheWireError
from protocol.wire.notifications import Events
from protocol.wire.replies import Attached as AttachReply
from protocol.wire.replies import AttachedAll

from ._errors import ClientError, ReplyLost, WireRefused
from ._items import Attached, Gone, Item, Reattached, Received
from ._link import Link
from ._track import Counts, FollowStatistics, Track

__all__ = ("Follower",)

_MOST_BARREN = 3


@attrs.define(eq=False, repr=False)
class Follower:
    """An async iterator over what happens to an agent, or to all. Made by `client.follow()`.

    It goes on over broken connections. The iteration ends when the agent has stopped (not for `*`), and raises
    `ClientError` when the client is disconnected for good.
    """

    target: str
    since: Position | Literal["head", "start"]
    deltas: bool
    types: tuple[str, ...] | None
    most_queued: int
    _link: Link
    _tracks: dict[str, Track] = attrs.field(factory=dict[str, Track])
    _all_waiting: bool = True
    _queue: deque[Item] = attrs.field(factory=deque[Item])
    _woken: trio.Event = attrs.field(factory=trio.Event)
    _ready: trio.Event = attrs.field(factory=trio.Event)
    _ended: bool = False
    _error: ClientError | None = None
    _begun: bool = False
    _counts: Counts = attrs.field(factory=Counts)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        await trio.lowlevel.checkpoint()
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            await self._woken.wait()
        item = self._queue.popleft()
        if not self._queue:
            self._emptied()
        return item

    def statistics(self) -> FollowStatistics:
        """A frozen look at it."""
        cursors = [track.cursor for track in self._tracks.values() if track.cursor is not None]
        return self._counts.statistics(cursors, len(self._queue))

    def excludes(self, target: str) -> bool:
        """Whether another follower of `target` would follow an agent that this one follows."""
        return "*" in {self.target, target} or target == self.target

    async def wait_ready(self, within_seconds: float) -> None:
        """Wait for the reply to the first attach. Raises `ClientError`."""
        if self._link.is_connected:
            self.connected()
        with trio.move_on_after(within_seconds):
            await self._ready.wait()
        if self._error is not None:
            raise self._error
        if not self._ready.is_set():
            raise ReplyLost(f"agent.attach was not answered within {within_seconds:g} s")

    def leave(self) -> None:
        """Follow no longer."""
        self._ended = True
        if self._link.is_connected:
            self._post("agent.detach", AgentDetach(agent=self.target), _ignore)

    # What the link tells.

    def connected(self) -> None:
        """Attach, from where it stands."""
        for track in self._tracks.values():
            track.parked = False
            track.waiting = True
            track.head = 0
        if self.target != "*":
            self._attach(self._tracks.setdefault(self.target, Track(self.target)))
            return
        self._all_waiting = True
        since = "head" if self._begun else self.since
        self._counts.attaches += 1
        self._post("agent.attach", self._params("*", since), self._attached_all)

    def lost(self) -> None:
        """Nothing is attached any more."""
        self._all_waiting = True
        for track in self._tracks.values():
            track.waiting = True

    def over(self, error: ClientError) -> None:
        """No connection will come any more."""
        self._fail(error)

    def heartbeat(self, heads: dict[str, int]) -> None:
        """What was said last time must have come by now: else it was lost without a word."""
        for track in list(self._tracks.values()):
            if track.waiting or track.cursor is None:
                continue
            if track.head > track.cursor.seq:
                self._counts.gaps += 1
                self._attach(track)
            track.head = max(track.head, heads.get(track.agent, 0))

    def events(self, events: Events) -> None:
        """Events have come."""
        track = self._tracks.get(events.agent)
        if track is None:
            if self.target != "*" or self._all_waiting:
                return
            # Spawned since the attach to all: followed from its first event.
            track = self._tracks[events.agent] = Track(events.agent, Cursor(events.epoch, 0), waiting=False)
        if track.waiting or track.cursor is None:
            return
        if len(self._queue) >= self.most_queued:
            self._park(track)
            return
        new, whole = track.cursor.take(events)
        for numbered in new:
            track.barren = 0
            self._counts.events += 1
            self._put(Received(events.agent, events.epoch, numbered.number, numbered.event, numbered.last))
            if isinstance(numbered.event, AgentStopped):
                self._drop(track)
        if not whole:
            self._counts.gaps += 1
            track.barren += 1
            if track.barren >= _MOST_BARREN:
                raise NotOfTheWireError(f"the events of {track.agent} do not go on behind {track.cursor.seq}")
            self._attach(track)

    # Attaching.

    def _params(self, agent: str, since: Position | Literal["head", "start"]) -> AgentAttach:
        return AgentAttach(agent=agent, from_=since, deltas=self.deltas, types=self.types)

    def _post(self, method: str, params: Any, on_reply: Any) -> None:
        self._link.post(method, params, on_reply)

    def _attach(self, track: Track) -> None:
        """Ask for what comes behind a track's place, or to begin where the follower was told to."""
        track.waiting = True
        track.parked = False
        cursor = track.cursor
        since = self.since if cursor is None else Position(epoch=cursor.epoch, seq=cursor.seq)
        self._counts.attaches += 1
        self._post("agent.attach", self._params(track.agent, since), partial(self._attached, track))

    def _attached(self, track: Track, reply: msgspec.Raw | WireRefused) -> None:
        if self._ended or self._tracks.get(track.agent) is not track:
            return
        if isinstance(reply, WireRefused):
            self._refused(track, reply)
            return
        attached = _decoded(reply, AttachReply)
        self._place(track, attached)
        self._settled()

    def _attached_all(self, reply: msgspec.Raw | WireRefused) -> None:
        if self._ended:
            return
        if isinstance(reply, WireRefused):
            self._fail(reply)
            return
        agents = _decoded(reply, AttachedAll).agents
        for gone in self._tracks.keys() - agents.keys():
            self._put(Gone(gone))
            self._drop(self._tracks[gone])
        for agent, attached in agents.items():
            track = self._tracks.get(agent)
            if track is None:
                track = self._tracks[agent] = Track(agent)
                if self._begun:
                    # It came while there was no connection: from its first event, if that can be had.
                    track.cursor = Cursor(attached.epoch, 0)
                else:
                    self._place(track, attached)
                    continue
            assert track.cursor is not None
            if (track.cursor.epoch, track.cursor.seq) == (attached.epoch, attached.head):
                track.waiting = False
            else:
                self._attach(track)
        self._all_waiting = False
        self._settled()

    def _place(self, track: Track, reply: AttachReply) -> None:
        """Go on from where the reply says."""
        lost = track.cursor is not None or isinstance(self.since, Position)
        if reply.snapshot is not None:
            self._counts.keep(track.cursor)
            track.cursor = Cursor(reply.epoch, reply.head)
            self._counts.reattached += lost
            self._put((Reattached if lost else Attached)(track.agent, reply))
        elif track.cursor is None:
            seq = self.since.seq if isinstance(self.since, Position) else 0
            track.cursor = Cursor(reply.epoch, seq)
        track.waiting = False

    def _refused(self, track: Track, error: WireRefused) -> None:
        if error.code != "not_found" or not self._begun:
            self._fail(error)
            return
        self._put(Gone(track.agent))
        self._drop(track)

    def _settled(self) -> None:
        self._begun = True
        self._ready.set()

    # The queue.

    def _put(self, item: Item) -> None:
        self._queue.append(item)
        self._wake()

    def _wake(self) -> None:
        self._woken.set()
        self._woken = trio.Event()

    def _park(self, track: Track) -> None:
        self._counts.overflows += 1
        track.waiting = track.parked = True
        self._post("agent.detach", AgentDetach(agent=track.agent), _ignore)

    def _emptied(self) -> None:
        for track in list(self._tracks.values()):
            if track.parked and self._link.is_connected:
                self._attach(track)

    def _drop(self, track: Track) -> None:
        self._counts.keep(track.cursor)
        self._tracks.pop(track.agent, None)
        if self.target != "*":
            self._ended = True
            self._wake()

    def _fail(self, error: ClientError) -> None:
        if self._error is None and not self._ended:
            self._error = error
            self._ready.set()
            self._wake()


def _decoded(reply: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(bytes(reply), type=kind)
    except msgspec.DecodeError as error:
        raise NotOfTheWireError(f"the reply to agent.attach cannot be read: {error}") from None


def _ignore(_reply: object) -> None:
    """Nothing depends on it."""
