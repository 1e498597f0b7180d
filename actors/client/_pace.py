"""When a client tries again, and how long it waits for what."""

from __future__ import annotations

import attrs

__all__ = ("Allowance", "ClientPace")


@attrs.frozen(kw_only=True)
class ClientPace:
    """When a client does what."""

    command_seconds: float = 30.0
    """Within it a command is answered, reconnections included, or `ReplyLost` is raised."""
    connect_seconds: float = 10.0
    """For one try: name, TCP, TLS, upgrade, hello."""
    send_seconds: float = 10.0
    """For one frame; then the connection is dropped."""
    first_seconds: float = 0.5
    """The longest wait before the first new try; it doubles with each."""
    most_seconds: float = 30.0
    """The longest wait of all."""
    give_up_seconds: float | None = None
    """How long it tries to come back; `None`: as long as the server does not refuse it."""
    missed_heartbeats: float = 2.5
    """After so many intervals without a frame the connection counts as dead."""

    def wait_seconds(self, tries: int, chance: float) -> float:
        """How long to wait after `tries` that failed: anything up to a bound that doubles (`chance`: 0 to 1).

        The whole of it is random: clients that were thrown out together must not come back together.
        """
        return chance * min(self.most_seconds, self.first_seconds * 2.0 ** min(tries, 32))


@attrs.define
class Allowance:
    """A bucket of commands: what the server allows is not exceeded (its `hello` says what)."""

    per_second: float
    burst: float
    _at: float
    """When it was last looked at."""
    _left: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = self.burst

    def take(self, now: float) -> float:
        """Take one; returns how many seconds to wait before it may be used."""
        self._left = min(self.burst, self._left + (now - self._at) * self.per_second) - 1
        self._at = now
        return max(0.0, -self._left / self.per_second)
