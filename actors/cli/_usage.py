"""Wrong use: how it is told, and the checks that all commands share."""

from __future__ import annotations

import argparse
from typing import NoReturn

from protocol.text import guess

__all__ = ("Parser", "UsageError", "at_least_one", "guess")


class UsageError(Exception):
    """The command was given what it cannot take; the text says what, and what it would take."""


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` where it would write and leave."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nTry: {self.prog} --help")


def at_least_one(flag: str, text: str) -> int:
    """Read a whole number of 1 or more."""
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{flag} must be a whole number of 1 or more; it is {text!r}") from None
    if number < 1:
        raise UsageError(f"{flag} must be 1 or more; it is {number}")
    return number
