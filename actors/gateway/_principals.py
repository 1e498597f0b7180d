"""Who a client is, and what it may do."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from protocol.wire import Role

__all__ = ("ALL_ROLES", "Principal")

ALL_ROLES: frozenset[Role] = frozenset({"observe", "decide", "operate", "admin"})
"""What a token holds that names none."""


@attrs.frozen
class Principal:
    """Somebody that the gateway knows by a token, or by a cookie that a ticket was exchanged for."""

    name: str
    roles: frozenset[Role] = ALL_ROLES
    sees: Callable[[str], bool] | None = None
    """Whether it may see the agent of this name; `None`: all."""

    def holds(self, role: Role) -> bool:
        """Whether it has a role: `admin` holds all, and each includes `observe`."""
        return role in self.roles or "admin" in self.roles or (role == "observe" and bool(self.roles))

    def may_see(self, agent_name: str) -> bool:
        """Whether an agent of this name is there for it."""
        return self.sees is None or self.sees(agent_name)
