"""What all models over HTTP share: a wire format adds how a request is written, and how a reply is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from urllib.parse import urlsplit

import attrs

from protocol.errors import SpecError
from protocol.model import ModelEmit, ModelRequest, Profile
from protocol.turns import Turn

from ._call import make_call
from ._http import HttpClient, HttpStatistics
from ._reading import ReplyReader

__all__ = ("HttpModel", "RemoteModel")


class RemoteModel:
    """A model at the other end of an HTTP client; how a call goes is for its subclasses."""

    def __init__(self, vendor: str, model: str, *, client: HttpClient, profile: Profile) -> None:
        if not model or model.isspace():
            raise SpecError("model must be the name of a model on the server; it is empty")
        self._vendor = vendor
        self._model = model
        self._client = client
        self._profile = attrs.evolve(profile, reports_sending=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._model!r} at {self._client.endpoint.address}>"

    @property
    def name(self) -> str:
        """The vendor and the model's name, such as `openai:gpt-x`."""
        return f"{self._vendor}:{self._model}"

    @property
    def profile(self) -> Profile:
        """What the server is known to do."""
        return self._profile

    @property
    def provider(self) -> str:
        """The server's host, with the port where the address names one: whose calls are counted together."""
        return urlsplit(self._client.endpoint.url).netloc

    def statistics(self) -> HttpStatistics:
        """The requests under way, and those that wait for a connection."""
        return self._client.statistics()

    async def aclose(self) -> None:
        """Close all connections. A later call opens new ones."""
        await self._client.aclose()


class HttpModel(RemoteModel, ABC):
    """A model behind a wire format. It keeps no conversation; any number of calls may run at the same time."""

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Make one call, of as many requests as its options allow: see `ConnectionOptions`.

        The ids of the calls in the turn are the server's own: they may be empty or repeated; so may their arguments
        be no JSON.

        Raises `ModelUnreachable`, `ModelTimeout`, one of the `ModelRefused` errors, `ModelReplyError` for what is no
        reply in the format, or `ModelError` for a connection that broke; with what had arrived in `partial`.
        """
        return await make_call(self._client, self._encode(request), partial(self._reader, request), emit)

    @abstractmethod
    def _encode(self, request: ModelRequest) -> bytes:
        """The request's body. Raises `SpecError` for options that would set what the request itself says."""

    @abstractmethod
    def _reader(self, request: ModelRequest, /) -> ReplyReader:
        """Reads one reply to this request: a new one for each attempt."""
