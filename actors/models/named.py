"""Models by one word: `anthropic:NAME`, `deepseek:NAME`, `ollama:NAME`. What the command line and configuration use.

A word is a wire format or a known server of the Chat Completions format. The module of a format is imported when a
model of it is made.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import attrs

from protocol.errors import SpecError
from protocol.model import Model

from .servers import SERVERS
from .wire import ConnectionOptions

__all__ = ("KINDS", "Kind", "named_model", "split_name")


@attrs.frozen(kw_only=True)
class Kind:
    """What may stand before the colon."""

    name: str
    title: str
    """Whose models they are, and in which wire format."""
    module: str
    """Where the class is, seen from this package."""
    class_name: str
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key."""
    base_url: str = ""
    """Where the server is, if it is on this machine by default."""
    base_url_variable: str = ""
    """The environment variable that says where the server is, if it is nowhere in general."""

    def key_variable(self) -> str | None:
        """The variable that holds a key now; `None` if there is none."""
        return next((name for name in self.key_variables if os.environ.get(name, "").strip()), None)

    @property
    def is_local(self) -> bool:
        """Whether its server runs on one's own machine by default: then it needs no key."""
        return bool(self.base_url)


def _chat_kinds() -> list[Kind]:
    return [
        Kind(
            name=server.name,
            title=f"{server.title}, Chat Completions",
            module=".openai",
            class_name="OpenAIChat",
            key_variables=server.key_variables,
            base_url=server.base_url if server.base_url.startswith("http://127.0.0.1:") else "",
            base_url_variable=server.base_url_variable,
        )
        for server in SERVERS.values()
    ]


_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_FORMATS = (
    Kind(
        name="openai-responses",
        title="OpenAI, Responses",
        module=".openai",
        class_name="OpenAIResponses",
        key_variables=("OPENAI_API_KEY",),
    ),
    Kind(
        name="anthropic",
        title="Anthropic, Messages",
        module=".anthropic",
        class_name="Anthropic",
        key_variables=("ANTHROPIC_API_KEY",),
    ),
    Kind(
        name="gemini",
        title="Google Gemini, generateContent",
        module=".gemini",
        class_name="Gemini",
        key_variables=_GOOGLE,
    ),
    Kind(
        name="gemini-interactions",
        title="Google Gemini, Interactions",
        module=".gemini",
        class_name="GeminiInteractions",
        key_variables=_GOOGLE,
    ),
)


def _place(kind: Kind) -> int:
    """Formats of model vendors stand first, whatever table they come from."""
    return 0 if kind.name == "openai" else 1 if kind in _FORMATS else 2


KINDS: Mapping[str, Kind] = MappingProxyType({
    kind.name: kind for kind in sorted((*_FORMATS, *_chat_kinds()), key=_place)
})
"""All of them, by name."""


def split_name(spec: str) -> tuple[Kind, str]:
    """The kind and the model's name in `KIND:NAME`. Raises `SpecError`, which says what there is."""
    word, colon, name = spec.partition(":")
    word, name = word.strip(), name.strip()
    if word not in KINDS:
        near = difflib.get_close_matches(word, KINDS, 1)
        guess = f" (did you mean {near[0]}:{name or 'NAME'}?)" if near else ""
        if not colon and spec.startswith("gpt"):
            guess = f" (did you mean openai:{spec}?)"
        raise SpecError(f"there is no model {spec!r}{guess}; there are: {', '.join(f'{kind}:NAME' for kind in KINDS)}")
    if not name:
        raise SpecError(f"{word}: lacks the model's name, as the server knows it: {word}:NAME")
    return KINDS[word], name


def named_model(spec: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> Model:
    """Make the model that `KIND:NAME` names, at the kind's own address and with the kind's own key by default.

    `options` are further ones of its class, such as `call_timeout_seconds`. Raises `SpecError` if there is no such kind, if
    it has no address, if its key is missing, or for an option that is wrong or that it does not take.
    """
    kind, name = split_name(spec)
    make = getattr(import_module(kind.module, __package__), kind.class_name)
    taken = {*inspect.signature(make).parameters, *ConnectionOptions.__annotations__}
    for option in options:
        if option not in taken:
            raise SpecError(f"{option} is no option of {kind.name} models")
    settings: dict[str, object] = {"api_key": api_key, **options}
    if base_url is not None:
        settings["base_url"] = base_url
    if kind.class_name == "OpenAIChat" and (base_url is None or kind.name != "openai"):
        settings["server"] = kind.name
    return cast("Model", make(name, **settings))
