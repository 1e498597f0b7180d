"""Whether a request is continued at all, and what its continuation says. Both look at the body as it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SpecError
from ..untyped import string

__all__ = ("enabled", "hop_body", "token_in")


def enabled(body: Mapping[str, Any], *, automatic_continuation: bool | None = None) -> bool:
    """Whether a decode with this body is continued by the caller's side.

    A background run goes on at the server's own pace, and so does an agent: both are left alone. Raises `SpecError`
    (a `ValueError`) for an option that is no bool, and for `False` with a background run, which it cannot stop.
    """
    if automatic_continuation is not None and type(automatic_continuation) is not bool:
        raise SpecError(f"automatic_continuation must be True, False or None; it is {automatic_continuation!r}")
    background = body.get("background") is True
    if background and automatic_continuation is False:
        raise SpecError(
            "automatic_continuation=False does not go with background=True: the server continues a background run itself"
        )
    agent = body.get("agent") is not None or body.get("agent_config") is not None
    return automatic_continuation is not False and not background and not agent


def token_in(body: Mapping[str, Any]) -> str | None:
    """The continuation token in a request or an interaction, if there is one."""
    return string(body.get("continuation_token")) or None


def hop_body(original: Mapping[str, Any], token: str, owner: str | None) -> dict[str, Any]:
    """The body that continues `original` from `token`, issued by the interaction `owner`. `original` stays as it is.

    Where the provider stores interactions, the owner stands for the input; where it does not, or the owner is not
    known, the input is sent again.
    """
    body = {**original, "continuation_token": token}
    if owner is not None and original.get("store") is not False:
        body.pop("input", None)
        body["previous_interaction_id"] = owner
    return body
