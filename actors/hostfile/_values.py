"""The single values of a host file: names, numbers, times, paths, functions, secrets."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, cast

from protocol.text import is_visible

from ._faults import BAD, Reading
from ._imports import IMPORT_PATH, imported
from ._kinds import Choice, Kind, ListOf, OrNone, Plain, is_number
from ._places import Place
from ._secrets import VARIABLE, has_password, key_in_file, key_in_variable

__all__ = (
    "COUNT",
    "FILE",
    "FLAG",
    "FUNCTION",
    "JSON_TABLE",
    "KEY_FILE",
    "KEY_VARIABLE",
    "NAME",
    "NEW_FILE",
    "NOT_NEGATIVE",
    "NUMBER",
    "OBJECT",
    "POSITIVE",
    "REFERENCE",
    "SECONDS",
    "TEXT",
    "TEXT_OF_FILE",
    "URL",
    "VARIABLE_NAME",
    "choice",
    "optional",
    "texts",
)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def _is_text(value: str) -> bool:
    return is_visible(value)


def _is_whole(least: int) -> Callable[[Any], bool]:
    return lambda value: bool(is_number(value) and value >= least)


def _is_json(value: Any) -> bool:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += cast("dict[str, Any]", one).values()
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
        elif isinstance(one, (dt.date, dt.time)) or (
            isinstance(one, (int, float)) and not isinstance(one, bool) and not is_number(one)
        ):
            return False
    return True


def _text_of_file(name: str, place: Place, reading: Reading) -> Any:
    path = reading.path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return reading.fault(place, f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}")
    return text if is_visible(text) else reading.fault(place, f"{path} is empty")


def _file(name: str, place: Place, reading: Reading) -> Any:
    path = reading.path(name)
    try:
        is_there = path.is_file()
    except (OSError, ValueError):
        is_there = False
    return path if is_there else reading.fault(place, f"there is no file {path}")


def _new_file(name: str, place: Place, reading: Reading) -> Any:
    path = reading.path(name)
    try:
        problem = f"{path} is a folder" if path.is_dir() else "" if path.parent.is_dir() else f"no folder {path.parent}"
    except (OSError, ValueError):
        problem = "it can be the name of no file"
    return reading.fault(place, f"must be a file, there or still to be made: {problem}") if problem else path


def _url(url: str, place: Place, reading: Reading) -> Any:
    if not has_password(url):
        return url
    way = 'headers_env = { authorization = "VARIABLE" }; for a proxy, the variable HTTPS_PROXY'
    return reading.fault(place, f"no user and no password stands in an address here: {way}")


TEXT = Plain(what="a text that is not empty", fits=_is_text, schema_={"type": "string", "minLength": 1})
"""Any text."""
NAME = Plain(
    what="a name of 1 to 64 letters, digits, _ or -",
    fits=lambda value: _NAME.fullmatch(value) is not None,
    schema_={"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
)
"""The name of something that the file makes."""
REFERENCE = Plain(what="the name of something in this file", fits=_is_text, schema_={"type": "string", "minLength": 1})
"""A name that stands elsewhere in the file; whether it does shows when all of it has been read."""
FLAG = Plain(what="true or false", form=bool, fits=lambda _: True, schema_={"type": "boolean"})
"""True or false."""
COUNT = Plain(
    what="a whole number of 1 or more", form=int, fits=_is_whole(1), schema_={"type": "integer", "minimum": 1}
)
"""A number of things."""
NOT_NEGATIVE = Plain(
    what="a whole number of 0 or more", form=int, fits=_is_whole(0), schema_={"type": "integer", "minimum": 0}
)
"""A number of things, or none."""
NUMBER = Plain(what="a number", form=(int, float), fits=is_number, schema_={"type": "number"})
"""Any number."""
POSITIVE = Plain(
    what="a number above 0",
    form=(int, float),
    fits=lambda value: is_number(value) and value > 0,
    schema_={"type": "number", "exclusiveMinimum": 0},
)
"""US dollars, or so many in a second."""
SECONDS = Plain(
    what="a number of seconds above 0",
    form=(int, float),
    fits=lambda value: is_number(value) and value > 0,
    schema_={"type": "number", "exclusiveMinimum": 0},
)
"""A time."""
URL = Plain(what="an address such as https://...", fits=_is_text, schema_={"type": "string"}, meaning=_url)
"""An address, without a password."""
FILE = Plain(what="the path of a file", fits=_is_text, schema_={"type": "string", "minLength": 1}, meaning=_file)
"""A file that is there, seen from the host file."""
NEW_FILE = Plain(
    what="the path of a file", fits=_is_text, schema_={"type": "string", "minLength": 1}, meaning=_new_file
)
"""A file that may be still to be made."""
TEXT_OF_FILE = Plain(
    what="the path of a file", fits=_is_text, schema_={"type": "string", "minLength": 1}, meaning=_text_of_file
)
"""A file whose text is meant."""
_VARIABLE_SCHEMA = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
VARIABLE_NAME = Plain(
    what="the name of an environment variable",
    fits=lambda value: VARIABLE.fullmatch(value) is not None,
    schema_=_VARIABLE_SCHEMA,
    is_secret=True,
)
"""An environment variable, by its name."""
KEY_VARIABLE = Plain(
    what=VARIABLE_NAME.what, fits=VARIABLE_NAME.fits, schema_=_VARIABLE_SCHEMA, meaning=key_in_variable, is_secret=True
)
"""A secret that an environment variable holds."""
KEY_FILE = Plain(
    what="the path of a file with one key",
    fits=_is_text,
    schema_={"type": "string", "minLength": 1},
    meaning=lambda name, place, reading: key_in_file(reading.path(name), place, reading),
    is_secret=True,
)
"""A secret that a file holds."""
OBJECT = Plain(
    what='an import path, "package.module:name"',
    fits=lambda value: IMPORT_PATH.fullmatch(value) is not None,
    schema_={"type": "string", "pattern": r"^[\w.]+:[\w.]+$"},
    meaning=imported,
)
"""Whatever an import path names."""


def _function(path: str, place: Place, reading: Reading) -> Any:
    found = imported(path, place, reading)
    if found is BAD or callable(found):
        return found
    return reading.fault(place, f"must be a function; {path} is a {type(found).__name__}")


FUNCTION = Plain(what=OBJECT.what, fits=OBJECT.fits, schema_=OBJECT.schema_, meaning=_function)
"""A function that an import path names."""
JSON_TABLE = Plain(
    what="a table of JSON values: no dates, and no number that JSON has not",
    form=dict,
    fits=_is_json,
    schema_={"type": "object"},
)
"""Fields that somebody else reads."""


def optional(kind: Kind) -> Kind:
    """A value, or the word `none`."""
    return OrNone(kind=kind)


def choice(*words: str, otherwise: Kind | None = None, **meanings: Any) -> Choice:
    """One of the words; `meanings` gives those that stand for something else than themselves."""
    known = {**{word: word for word in words}, **meanings}
    what = f"one of {', '.join(known)}" + ("" if otherwise is None else f", or {otherwise.what}")
    return Choice(what=what, words=known, otherwise=otherwise)


def texts(what: str, item: Kind = TEXT) -> ListOf:
    """A list of texts."""
    return ListOf(what=what, item=item)
