"""A message that wants an answer carries the slot for it, and the answer's type.

    @attrs.define(eq=False)
    class Lookup(Ask[int]):
        key: str

    number = await port.ask(Lookup("a"))      # an int, proven by both type checkers
    message.reply.set(7)                      # in the actor

The slot knows nothing of trio: whoever waits installs a notifier. Setting it is synchronous and cannot fail, also
when nobody waits any more; `set` says whether somebody does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import attrs

from ._waits import Party

__all__ = ("Ask", "Keeper", "Reply")

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Keeper(Protocol):
    """Who has received an ask, and remembers it until it is answered: a mailbox."""

    @property
    def title(self) -> str:
        """Its actor's name."""
        ...

    def here(self) -> Party | None:
        """Its actor, in the task of its loop."""
        ...

    def forget(self, reply: Reply[Any]) -> None:
        """The ask is answered."""
        ...


class Reply(Party, Generic[R]):
    """A slot for one answer: set or failed once, later attempts are ignored.

    It stands for the work on the ask, too: what a task waits for that works on it, the ask waits for.
    """

    __slots__ = ("_dropped", "_keeper", "_notify", "_on_drop", "_state", "_value")

    def __init__(self) -> None:
        self.waits = None
        self._state: Literal["pending", "done", "failed"] = "pending"
        self._value: Any = None
        self._dropped = False
        self._notify: Callable[[], None] | None = None
        self._on_drop: Callable[[], object] | None = None
        self._keeper: Keeper | None = None

    @property
    def title(self) -> str:
        """The name of the actor that has received it."""
        return self._keeper.title if self._keeper is not None else "an ask"

    def here(self) -> Party | None:
        """The actor, in the task of its loop; in a task that it has started the ask itself, until it is answered."""
        loop = self._keeper.here() if self._keeper is not None else None
        return loop or (self if self._state == "pending" else None)

    @property
    def done(self) -> bool:
        """Whether it has been set or failed."""
        return self._state != "pending"

    @property
    def is_fresh(self) -> bool:
        """Whether nobody has asked with it."""
        return self._state == "pending" and self._notify is None and not self._dropped

    @property
    def dropped(self) -> bool:
        """Whether the asker has left."""
        return self._dropped

    def set(self, value: R) -> bool:
        """Answer. Returns whether somebody still waits for it."""
        return self._finish("done", value)

    def fail(self, error: Exception) -> bool:
        """Answer with an error, which is raised at the asker. Returns whether somebody still waits."""
        return self._finish("failed", error)

    def result(self) -> R:
        """The answer. Raises what it was failed with, or `RuntimeError` if there is none yet."""
        if self._state == "failed":
            error: Exception = self._value
            raise error
        if self._state == "pending":
            raise RuntimeError("there is no answer yet")
        value: R = self._value
        return value

    def on_done(self, notify: Callable[[], None]) -> None:
        """Call `notify` when there is an answer: at once if there is one already."""
        self._notify = notify
        if self._state != "pending":
            notify()

    def on_drop(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the asker leaves, to end the work: at once if it has left already."""
        self._on_drop = stop
        if self._dropped:
            stop()

    def drop(self) -> None:
        """The asker leaves: nobody waits any more. Dropping twice is once."""
        if not self._dropped:
            self._dropped = True
            if self._on_drop is not None:
                self._on_drop()

    def kept_by(self, keeper: Keeper) -> None:
        """It has been received: `keeper` is told when it is answered."""
        self._keeper = keeper

    def _finish(self, state: Literal["done", "failed"], value: Any) -> bool:
        if self._state != "pending":
            return False
        self._state = state
        self._value = value
        if self._keeper is not None:
            self._keeper.forget(self)
        if self._notify is not None:
            self._notify()
        return not self._dropped


@attrs.define(eq=False)
class Ask(Generic[R_co]):
    """The base of every message that wants an answer of type `R`."""

    reply: Reply[R_co] = attrs.field(factory=cast("type[Reply[R_co]]", Reply), init=False, repr=False)
    """Where the answer goes."""
