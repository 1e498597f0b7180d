"""Interactions, for programs that speak the provider's own form: long decodes go on by themselves (D0)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Unpack

from protocol.decode import Delivery, LoopState, Policy, enabled
from protocol.errors import SpecError

from ..wire import ConnectionOptions, HttpStatistics, encode_body, mapping, parse
from ._interactions_connection import GOOGLE_URL, ask, connect_interactions
from ._interactions_hops import HopObserver, run_hops
from ._interactions_progress import DecodeProgress
from ._interactions_stream import InteractionStream, open_stream

__all__ = ("Interactions",)

_FIELDS = {
    *("model", "agent", "agent_config", "input", "previous_interaction_id", "continuation_token", "tools"),
    *("system_instruction", "generation_config", "response_format", "safety_settings", "service_tier", "store"),
    *("background", "labels", "environment", "webhook_config", "response_mime_type", "response_modalities"),
    "cached_content",
}


class Interactions:
    """The provider's Interactions, over its own requests and replies.

    A reply that the provider cannot finish in one request is continued until it is whole: `create()` returns all of
    it merged, `stream()` hands over the events of all requests. Any number of calls may run at the same time.
    """

    def __init__(
        self,
        *,
        base_url: str = GOOGLE_URL,
        api_key: str | None = None,
        version: str | None = None,
        policy: Policy | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            base_url: The server, without version.
            api_key: By default the environment variable `GEMINI_API_KEY` or `GOOGLE_API_KEY`.
            version: The part of the path before `/interactions`. By default `v1beta`, or nothing if `base_url` ends
                with a version.
            policy: How far a decode is continued.
            connection: Headers, timeouts, retries and the like: see `ConnectionOptions`. `first_byte_timeout_seconds`
                is 600 by default, since a whole interaction is told when all of it is there.

        Raises:
            SpecError: A setting cannot be right, or Google's key is missing.
        """
        self._client, _ = connect_interactions(base_url, version, api_key, connection)
        self._policy = policy or Policy()

    def __repr__(self) -> str:
        return f"<Interactions at {self._client.endpoint.address}>"

    async def create(
        self,
        *,
        automatic_continuation: bool | None = None,
        timeout_seconds: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        progress: DecodeProgress | None = None,
        **body: Any,
    ) -> dict[str, Any]:
        """Make an interaction and return it, merged if it took several requests.

        A status such as `failed` or `incomplete` is a result, not an exception.

        Args:
            automatic_continuation: `False`: one request, and its reply as it came. It is never sent. A background run
                and an agent are left alone in any case.
            timeout_seconds: For the whole call: all requests, replies and waits. By default `call_timeout_seconds` of
                the connection.
            extra_body: Laid over the body before anything is decided; `None` as a value removes a field.
            progress: Shows what had come if the call is cancelled or fails.
            body: The fields of the request, as the provider names them.

        Raises:
            TypeError: A field is not known, or has no form in JSON.
            SpecError: Settings contradict each other.
            ContinuationInterrupted: The decode broke off after something was gained; it can be resumed by hand.
            ModelError: Nothing was gained: the error as it came.
        """
        state = self._state(body, extra_body, automatic_continuation=automatic_continuation, stream=False)
        if progress is not None:
            progress.attach(state)
        await run_hops(self._client, state, HopObserver(), timeout_seconds=_checked(timeout_seconds))
        if automatic_continuation is False:
            _warn_if_cut(state)
        merged = state.merged()
        return mapping(merged if state.enabled or state.whole is None else state.whole)

    def stream(
        self,
        *,
        automatic_continuation: bool | None = None,
        timeout_seconds: float | None = None,
        count_consumer_time: bool = True,
        delivery: Delivery | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **body: Any,
    ) -> AbstractAsyncContextManager[InteractionStream]:
        """Make an interaction and hand over its events as they come.

            async with interactions.stream(model="gemini-x", input="...") as stream:
                async for event in stream:
                    ...
                interaction = await stream.final()

        A server that answers with a whole interaction instead is taken at its word: it comes as one
        `interaction.completed` that holds everything.

        Args:
            automatic_continuation: As for `create()`.
            timeout_seconds: As for `create()`. What has come by then is handed over first.
            count_consumer_time: Whether the time in which the stream waits for its consumer is part of that.
            delivery: What becomes of output after the last checkpoint when the connection drops: `strict` raises,
                `replay` hands over a `Rollback` and goes on from the checkpoint. By default that of the connection.
            extra_body: As for `create()`.
            body: The fields of the request, as the provider names them.

        Raises what `create()` raises: for its arguments at once, for the rest while it is iterated.
        """
        state = self._state(
            body, extra_body, automatic_continuation=automatic_continuation, stream=True, delivery=delivery
        )
        return open_stream(
            self._client,
            state,
            lambda: _warn_if_cut(state) if automatic_continuation is False else None,
            timeout_seconds=_checked(timeout_seconds),
            counts_consumer=count_consumer_time,
        )

    async def get(self, interaction_id: str) -> dict[str, Any]:
        """The interaction as it is stored now: of a decode, the one hop with that id."""
        return await ask(self._client, "GET", interaction_id)

    async def cancel(self, interaction_id: str) -> dict[str, Any]:
        """Cancel a background run, and return the interaction."""
        return await ask(self._client, "POST", interaction_id, "/cancel")

    async def delete(self, interaction_id: str) -> None:
        """Delete a stored interaction: of a decode, the one hop with that id."""
        await ask(self._client, "DELETE", interaction_id)

    def statistics(self) -> HttpStatistics:
        """The requests under way, and those that wait for a connection."""
        return self._client.statistics()

    async def aclose(self) -> None:
        """Close all connections. A later call opens new ones."""
        await self._client.aclose()

    def _state(
        self,
        fields: Mapping[str, Any],
        extra_body: Mapping[str, Any] | None,
        *,
        automatic_continuation: bool | None,
        stream: bool,
        delivery: Delivery | None = None,
    ) -> LoopState:
        body = effective_body(fields, extra_body, stream=stream)
        if delivery not in {None, "strict", "replay"}:
            raise SpecError(f'delivery must be "strict" or "replay"; it is {delivery!r}')
        return LoopState(
            body,
            enabled=enabled(body, automatic_continuation=automatic_continuation),
            policy=self._policy,
            delivery=delivery or self._client.policy.delivery,
            where=self._client.endpoint.address,
        )


def effective_body(fields: Mapping[str, Any], extra_body: Mapping[str, Any] | None, *, stream: bool) -> dict[str, Any]:
    """The body as it is sent: a copy in plain JSON, which later changes of the caller's objects do not reach."""
    unknown = [name for name in fields if name not in _FIELDS]
    if "stream" in unknown or "stream" in (extra_body or {}):
        raise TypeError("stream is not a field to be set: `create()` waits for the whole, `stream()` hands over events")
    if unknown:
        raise TypeError(f"{', '.join(unknown)}: no known field of an interaction; `extra_body` sends it all the same")
    body = {name: value for name, value in {**fields, **(extra_body or {})}.items() if value is not None}
    if stream:
        body["stream"] = True
    return mapping(parse(encode_body(body)))


def _checked(seconds: float | None) -> float | None:
    if seconds is not None and (isinstance(seconds, bool) or not seconds > 0):
        raise SpecError(f"timeout_seconds must be a number above 0, or None; it is {seconds!r}")
    return seconds


_warned: list[bool] = []


def _warn_if_cut(state: LoopState) -> None:
    """Say once in a process that a reply was left unfinished because continuing was switched off."""
    merged = mapping(state.merged())
    if _warned or state.began_with_token or merged.get("status") != "requires_continuation" or state.token is None:
        return
    _warned.append(True)
    warnings.warn(
        "an interaction ended unfinished (requires_continuation), and automatic_continuation=False: go on with its"
        " continuation_token and previous_interaction_id, or leave the option alone",
        UserWarning,
        stacklevel=3,
    )
