"""What models there are here and now: kinds and their keys, and servers on this machine that answer.

Nothing is spent and no key leaves: servers are asked for their list of models, on loopback addresses, within a second.
"""

from __future__ import annotations

import os
import shlex
from typing import Literal, TypeAlias

import attrs
import trio

from protocol.errors import ModelAuthError, ModelError, ModelTimeout, ModelUnreachable

from ..models.named import KINDS, Kind
from ..models.openai import ListedModel, list_models
from ._style import harmless

__all__ = ("MAX_NAMES", "FoundModel", "KeyState", "LocalServer", "LocalState", "Survey", "find_local", "survey")

MAX_NAMES = 50
"""Models of one server that are listed; more are counted."""
_MAX_NAME_CHARS = 200
_SECONDS = 1.0

LocalState: TypeAlias = Literal["running", "wants_key", "silent", "other", "absent"]
"""`wants_key`: it answers, but not without its key. `silent`: it takes connections and does not answer. `other`: what
answers has no list of models. `absent`: nothing listens there."""

_OWNERS = {"vllm": "vllm", "llamacpp": "llama.cpp"}
"""What servers call themselves in their lists: a port alone proves nothing."""


@attrs.frozen(kw_only=True)
class FoundModel:
    """A model of a server that runs here."""

    name: str
    command: str
    """What uses it."""


@attrs.frozen(kw_only=True)
class KeyState:
    """A kind of models that needs a key or an address."""

    kind: str
    title: str
    variables: tuple[str, ...]
    """Environment variables that may hold the key."""
    found: str | None
    """The one that is set."""
    command: str


@attrs.frozen(kw_only=True)
class LocalServer:
    """A place on this machine where such a server usually is."""

    kind: str
    title: str
    base_url: str
    state: LocalState
    models: tuple[FoundModel, ...] = ()
    more: int = 0
    """Models beyond those listed."""


@attrs.frozen(kw_only=True)
class Survey:
    """All that was found."""

    keys: tuple[KeyState, ...]
    local: tuple[LocalServer, ...]


async def survey() -> Survey:
    """Look at the environment and at this machine's usual addresses, all at the same time."""
    local_kinds = [kind for kind in KINDS.values() if kind.is_local]
    found: dict[str, LocalServer] = {}

    async def look(kind: Kind) -> None:
        found[kind.name] = await find_local(kind)

    async with trio.open_nursery() as nursery:
        for kind in local_kinds:
            nursery.start_soon(look, kind)
    keys = tuple([_key_state(kind) for kind in KINDS.values() if not kind.is_local])
    return Survey(keys=keys, local=tuple([found[kind.name] for kind in local_kinds]))


async def find_local(kind: Kind, *, base_url: str | None = None) -> LocalServer:
    """Ask the server of a kind, at its usual address by default, for its models. Never raises for what it answers."""
    address = base_url or kind.base_url
    state: LocalState = "silent"
    listed: tuple[ListedModel, ...] = ()
    with trio.move_on_after(2 * _SECONDS):
        try:
            listed = await list_models(
                address,
                connect_timeout_seconds=_SECONDS / 2,
                first_byte_timeout_seconds=_SECONDS,
                idle_timeout_seconds=_SECONDS,
            )
            state = "running"
        except ModelUnreachable:
            state = "absent"
        except ModelAuthError:
            state = "wants_key"
        except ModelTimeout:
            state = "silent"
        except ModelError:
            state = "other"
    kind = next((KINDS[_OWNERS[model.owner]] for model in listed if model.owner in _OWNERS), kind)
    named = [model.name for model in listed if _is_printable(model.name)]
    shown = [FoundModel(name=name, command=_command(kind, name, address)) for name in named[:MAX_NAMES]]
    return LocalServer(
        kind=kind.name,
        title=kind.title.partition(",")[0],
        base_url=address,
        state=state,
        models=tuple(shown),
        more=len(listed) - len(shown),
    )


def _key_state(kind: Kind) -> KeyState:
    return KeyState(
        kind=kind.name,
        title=kind.title,
        variables=kind.key_variables,
        found=kind.key_variable(),
        command=_command(kind, "NAME", kind.base_url),
    )


def _command(kind: Kind, name: str, address: str) -> str:
    words = ["onward", "run", "PROMPT", "--model", f"{kind.name}:{name}"]
    if address != kind.base_url:
        words += ["--base-url", address]
    elif kind.base_url_variable and not os.environ.get(kind.base_url_variable, "").strip():
        words += ["--base-url", "URL"]
    return shlex.join(words)


def _is_printable(name: str) -> bool:
    """Whether a name can be shown, and typed, as it is: a server may call a model anything."""
    return name == name.strip() and 0 < len(name) <= _MAX_NAME_CHARS and name.isprintable() and harmless(name) == name
