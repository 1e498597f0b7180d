"""Keys and passwords: none stands in a host file. It names the variable, or the file, that holds one."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from ._faults import Reading
from ._places import Place

__all__ = ("VARIABLE", "has_password", "key_in_file", "key_in_variable", "refuse_secrets")

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
"""The name of an environment variable."""
_ALWAYS = r"api[_-]?keys?|passwords?|passwd|secrets?|authorization|credentials?"
_NAMED = re.compile(rf"(?:.*[_.-])?(?:{_ALWAYS})", re.IGNORECASE)
_NAMED_TEXT = re.compile(r"(?!max_|default_max_)(?:.*[_.-])?tokens?", re.IGNORECASE)  # a number of them is none
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|AIza[A-Za-z0-9_-]{30,}|gh[pousr]_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AKIA[A-Z0-9]{16}|Bearer [A-Za-z0-9._~+/-]{16,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_A_PLAIN_NAME = re.compile(r"[A-Z][A-Z0-9]{0,14}(?:_[A-Z0-9]{1,15})*", re.ASCII)
_WAYS = {
    "models": 'api_key_env = "VARIABLE", or api_key_file = "FILE"',
    "headers": 'headers_env = { name = "VARIABLE" }',
    "gateway": 'token_file = "FILE", with lines of TOKEN [ROLE,ROLE...] [NAME]',
    "other": "code of your own finds it in the environment",
}


def refuse_secrets(data: dict[str, Any], reading: Reading) -> None:
    """Note every value that is a secret, by the name of its key or by its looks; it is not shown."""
    waiting: list[tuple[Place, Any]] = [((), data)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*place, key), below) for key, below in cast("dict[str, Any]", value).items()]
        elif isinstance(value, list):
            waiting += [((*place, number), below) for number, below in enumerate(cast("list[Any]", value))]
        elif isinstance(value, (str, int)) and not isinstance(value, bool) and _is_secret(place, value):
            reading.refused.add(place)
            reading.fault(place, f"no key and no password stands in a host file: {_way(place)}")


def _is_secret(place: Place, value: str | int) -> bool:
    name = place[-1]
    if isinstance(value, str) and _SHAPES.search(value):
        return True
    if not isinstance(name, str) or value == "":
        return False
    return bool(_NAMED.fullmatch(name) or (isinstance(value, str) and _NAMED_TEXT.fullmatch(name)))


def _way(place: Place) -> str:
    if "headers" in place:
        return _WAYS["headers"]
    if place[0] == "gateway":
        return _WAYS["gateway"]
    is_of_a_model = place[0] == "models" or (place[0] == "agents" and "model" in place) or place[-1] == "api_key"
    return _WAYS["models" if is_of_a_model and "arguments" not in place else "other"]


def has_password(url: str) -> bool:
    """Whether a URL names a user, or a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False  # it is refused where addresses are checked
    return "@" in parts.netloc


def key_in_variable(name: str, place: Place, reading: Reading) -> Any:
    """The secret in an environment variable."""
    key = os.environ.get(name, "").strip()
    if key:
        return key
    shown = f" {name}" if _A_PLAIN_NAME.fullmatch(name) else ""  # else it may be the key itself
    return reading.fault(place, f"the environment variable{shown} that it names is not set, or empty")


def key_in_file(path: Path, place: Place, reading: Reading) -> Any:
    """The secret in a file, which is to be its owner's alone."""
    try:
        mode = path.stat().st_mode
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        return reading.fault(place, f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}")
    if not key or len(key.split()) != 1:
        return reading.fault(place, f"{path} must hold one key, and nothing else")
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        reading.note(place, f"{path} can be read by others: chmod 600 {path}")
    return key
