"""What binding a call's arguments gives, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from protocol.errors import OnwardError

__all__ = ("ArgumentsInvalid", "Binder", "Bound")


@attrs.frozen
class Bound:
    """Arguments that fit a tool."""

    arguments: dict[str, Any]
    """Keyword arguments for the tool's function."""
    repaired: bool
    """Whether what the model sent had to be mended: a string that held the object or array that was wanted is decoded,
    `3.0` where an integer is wanted is `3`. Nothing else is ever changed."""
    decoded: dict[str, Any]
    """The arguments as JSON values, repairs applied: what an approval shows, and what runs."""


Binder: TypeAlias = Callable[[str, dict[str, Any]], Bound]
"""Takes the tool's name and the decoded JSON arguments. Raises `ArgumentsInvalid`, and nothing else."""


class ArgumentsInvalid(OnwardError):
    """The model's arguments do not fit the tool; its body is not entered. The text is written for the model."""
