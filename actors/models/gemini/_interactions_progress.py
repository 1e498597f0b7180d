"""What a decode has come to: while it goes on, when it is over, and where it was cancelled."""

from __future__ import annotations

from typing import Any

from protocol.decode import LoopState

__all__ = ("DecodeProgress",)


class DecodeProgress:
    """A view of one decode that stays readable whatever becomes of it.

    `InteractionStream.progress()` gives one. For `Interactions.create()` make one yourself and pass it:

        progress = DecodeProgress()
        with trio.move_on_after(60):
            await interactions.create(model="gemini-x", input="...", progress=progress)
        print(progress.interaction())

    Nothing is sent to the server when a call is cancelled: what has ended is kept there, and the token stays good.
    """

    def __init__(self) -> None:
        self._state: LoopState | None = None

    def attach(self, state: LoopState) -> None:
        """Show this decode from now on; the call that it is passed to does that."""
        self._state = state

    def interaction(self) -> dict[str, Any] | None:
        """All that has come, merged; `None` if nothing has."""
        return None if self._state is None else self._state.merged()

    @property
    def continuation_ids(self) -> tuple[str, ...]:
        """The interactions up to now, in order."""
        return () if self._state is None else self._state.continuation_ids

    @property
    def usage_total(self) -> dict[str, Any] | None:
        """The usage of all requests; `None` if none has told any."""
        return None if self._state is None else self._state.usage_total

    @property
    def usage_by_hop(self) -> tuple[dict[str, Any], ...]:
        """What each request has told of its usage, unknown numbers included."""
        return () if self._state is None else self._state.usage_by_hop

    @property
    def hops(self) -> int:
        """Requests that came to their end."""
        return 0 if self._state is None else self._state.hops

    @property
    def token(self) -> str | None:
        """What resumes the decode; output that came after it was handed out is made again."""
        return None if self._state is None else self._state.token

    @property
    def interaction_id(self) -> str | None:
        """The interaction that issued the token; `None` where nothing is stored, or it is not known."""
        return None if self._state is None else self._state.owner

    def resume_kwargs(self) -> dict[str, Any]:
        """The arguments that continue the decode by hand, as `ContinuationInterrupted.resume_kwargs()` gives them."""
        given = {"continuation_token": self.token, "previous_interaction_id": self.interaction_id}
        return {} if self.token is None else {name: value for name, value in given.items() if value is not None}
