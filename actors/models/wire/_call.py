"""A whole model call: one request, its repeats, the waits between them, and the time that all of it may take.

A request is repeated as long as nothing of its reply has been reported. With `delivery="replay"` it is repeated
afterwards too: what had been reported is undone first, and reported again.

What a failed request had reported of its usage is not lost: it is part of the usage of the turn that comes in the end,
or of the error's `partial`, which is the longest reply there was.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from protocol.errors import ModelError
from protocol.model import ModelEmit, ModelEvent, RequestSent, Retrying, Undone
from protocol.turns import Turn
from protocol.usage import UNKNOWN_USAGE, Usage

from ._http import HttpClient
from ._policy import CallPolicy
from ._reading import ReplyReader, read_turn
from ._retry import retry_wait
from ._transport_errors import call_too_slow

__all__ = ("Attempts", "make_call")


class Attempts:
    """The attempts at one request.

    A driver makes them, in a loop: it returns what came, and brings each `ModelError` here, to `again()`.
    """

    def __init__(self, policy: CallPolicy, emit: ModelEmit, *, deadline: float) -> None:
        """`deadline` is the end of the whole call, on trio's clock."""
        self._policy = policy
        self._emit = emit
        self._deadline = deadline
        self.failures = 0

    async def again(self, error: ModelError, undone: Undone | None = None) -> None:
        """Return when it is time for the next attempt; raise `error` if there is none.

        The wait is announced by `Retrying`, and before that by `undone`, if something of the reply had been reported.
        """
        self.failures += 1
        policy = self._policy
        left = self._deadline - trio.current_time()
        seconds = retry_wait(
            error, failures=self.failures, retries=policy.retries, left_seconds=left, draw=policy.draw()
        )
        if seconds is None:
            raise self.final(error)
        if undone is not None:
            self._emit(undone)
        self._emit(Retrying(self.failures, seconds, str(error)))
        await trio.sleep(seconds)

    def final(self, error: ModelError) -> ModelError:
        """`error`, as the last word on the request: it says how many attempts there were, if there were several."""
        asked = error.retry_after_seconds
        text = str(error)
        if error.retryable and asked is not None and self._deadline - trio.current_time() <= asked:
            text += f"; it asks for a pause of {asked:g} s, longer than what is left of the call (call_timeout_seconds)"
        if self.failures > 1:
            text += f" ({self.failures} attempts were made)"
        error.args = (text,)
        return error


async def make_call(client: HttpClient, body: bytes, new_reader: Callable[[], ReplyReader], emit: ModelEmit) -> Turn:
    """Send `body`, again if need be, and read the reply. Raises `ModelError`, with the best of what came in `partial`."""
    seconds = client.policy.call_seconds
    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
        call = _Call(client, body, new_reader, emit, deadline=scope.deadline)
        return await call.run()
    return call.cut(seconds)  # pyright: ignore[reportPossiblyUnboundVariable]


class _Call:
    def __init__(
        self,
        client: HttpClient,
        body: bytes,
        new_reader: Callable[[], ReplyReader],
        emit: ModelEmit,
        *,
        deadline: float,
    ) -> None:
        self._client = client
        self._body = body
        self._new_reader = new_reader
        self._emit = emit
        self._attempts = Attempts(client.policy, emit, deadline=deadline)
        self._reader = new_reader()
        self._sent = False
        self._told = False
        """Whether anything of the reply in hand has been reported."""
        self._best: Turn | None = None
        """The longest of the replies that broke off."""
        self._lost: Usage | None = None
        """What those had reported that they used."""

    async def run(self) -> Turn:
        while True:
            try:
                turn = await read_turn(self._client, self._body, self._reader, self._note)
            except ModelError as error:
                error.partial = self._keep(error.partial)
                if self._told and self._client.policy.delivery == "strict":
                    self._attempts.failures += 1
                    raise self._attempts.final(error) from None
                await self._attempts.again(error, Undone() if self._told else None)
            else:
                return self._with_lost(turn)
            self._reader = self._new_reader()
            self._told = False

    def cut(self, seconds: float) -> Turn:
        """The call's time is over: what there is, if that is whole."""
        if self._reader.ended:
            return self._with_lost(self._reader.finish())
        error = call_too_slow(self._client.endpoint, seconds, sent=self._sent)
        error.partial = self._keep(self._reader.lost() if self._reader.started else None)
        raise error

    def _note(self, event: ModelEvent) -> None:
        if isinstance(event, RequestSent):
            if self._sent:
                return
            self._sent = True
        else:
            self._told = True
        self._emit(event)

    def _keep(self, partial: Turn | None) -> Turn | None:
        """Take note of a reply that broke off, and return the best one, with the usage of all."""
        if partial is not None:
            if partial.parts or partial.usage != UNKNOWN_USAGE:
                self._lost = partial.usage if self._lost is None else self._lost + partial.usage
            if self._best is None or len(partial.text) >= len(self._best.text):
                self._best = partial
        best = self._best
        return best if best is None or self._lost is None else attrs.evolve(best, usage=self._lost)

    def _with_lost(self, turn: Turn) -> Turn:
        if self._lost is None:
            return turn
        context = turn.context_tokens
        if context is None and turn.usage.uncached_input_tokens is not None:
            context = turn.usage.input_tokens
        return attrs.evolve(turn, usage=self._lost + turn.usage, context_tokens=context)
