"""Interactions as a model: a decode that takes several requests is one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import attrs
import trio

from protocol.decode import HopRecord, LoopState, Policy
from protocol.errors import ContinuationInterrupted, ModelError, ModelReplyError
from protocol.model import HopBegan, HopEnded, ModelEmit, ModelEvent, ModelRequest, Profile, RequestSent, Undone
from protocol.turns import Turn, Unfinished

from ..wire import Attempts, ConnectionOptions, RemoteModel, check_server_tools, mapping
from ._interactions_connection import GOOGLE_URL, connect_interactions
from ._interactions_deltas import Deltas
from ._interactions_hops import HopObserver, run_hops
from ._interactions_reply import partial_turn, turn_of, usage_of
from ._interactions_request import check_extra_body, request_body

__all__ = ("GeminiInteractions",)


class GeminiInteractions(RemoteModel):
    """A model behind the Interactions API of Gemini.

    Where the provider cannot finish a reply in one request it hands out a token: the decode goes on with it by itself,
    within the same call, and comes to one turn. The call's hops are reported by `HopBegan` and `HopEnded`.

    Nothing is stored at the provider: the whole conversation is sent with each request, and with each hop. With
    `extra_body={"store": True}` the provider keeps every interaction, and a hop names the one before instead.
    Any number of calls may run at the same time, `max_connections` of them over the network; the rest wait.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = GOOGLE_URL,
        api_key: str | None = None,
        version: str | None = None,
        profile: Profile | None = None,
        extra_body: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        """Nothing is connected before the first call.

        Args:
            model: The model's name, as the server knows it.
            base_url: The server. No proxy is used for this machine.
            api_key: Sent as `x-goog-api-key`; by default the environment variable `GEMINI_API_KEY` or `GOOGLE_API_KEY`.
            version: The part of the path before `/interactions`. By default `v1beta`, or nothing if `base_url` ends
                with a version.
            profile: What the server is known to do. By default, tools that are off stay visible to Google's own models.
            extra_body: Laid over each request's body; `None` as a value removes a field.
            policy: How far a decode is continued, and how patiently.
            server_tools: Definitions of tools that run at the provider, such as `{"type": "google_search"}`, sent as
                they are.
            connection: Headers, timeouts and the like: see `ConnectionOptions`. With `delivery="replay"` a decode goes
                on from its last token also where something had been reported since.

        Raises:
            SpecError: A setting cannot be right, or Google's key is missing.
        """
        client, own = connect_interactions(base_url, version, api_key, connection)
        super().__init__("gemini", model, client=client, profile=profile or Profile(keeps_tools_when_off=own))
        self._extra_body = check_extra_body(extra_body or {})
        self._policy = policy or Policy()
        self._server_tools = check_server_tools(server_tools)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Make one call, of as many requests as the decode takes.

        With `automatic_continuation=False` in the request it is one, and `unfinished` says what resumes the decode.

        Raises `ContinuationInterrupted` for a decode that can be resumed by hand; else `ModelUnreachable`,
        `ModelTimeout`, one of the `ModelRefused` errors, `ModelReplyError` for what is no reply in the format, or
        `ModelError` for a connection that broke; with what had arrived in `partial`.
        """
        body = request_body(
            request,
            model=self._model,
            takes_temperature=self._profile.takes_temperature,
            extra_body=self._extra_body,
            server_tools=self._server_tools,
        )
        deadline = trio.current_time() + self._client.policy.call_seconds
        attempts = Attempts(self._client.policy, emit, deadline=deadline)
        call = _Call(emit)
        while True:
            state = LoopState(
                body,
                enabled=request.automatic_continuation is not False,
                policy=self._policy,
                delivery=self._client.policy.delivery,
                where=self._client.endpoint.address,
            )
            try:
                await run_hops(self._client, state, call, timeout_seconds=deadline - trio.current_time())
                return turn_of(call.records(state), self._client.endpoint, _unfinished(state))
            except ModelError as error:
                if state.told():
                    error.partial = partial_turn(call.records(state))
                if not self._worth_another_try(error, state, call):
                    raise
                await attempts.again(error, call.start_over(state))

    def _worth_another_try(self, error: ModelError, state: LoopState, call: _Call) -> bool:
        """Whether the decode is begun anew: what could go on from a token did, what brought no reply was repeated."""
        told = state.told()
        if isinstance(error, ContinuationInterrupted) or len(told) > 1:
            return False
        if not told:
            return isinstance(error, ModelReplyError)  # a stream that ended without a word
        return self._client.policy.delivery == "replay" or not call.deltas.any_reported


@attrs.define(eq=False)
class _Call(HopObserver):
    """One call: reports what comes, and counts the requests that were begun anew."""

    emit: ModelEmit
    deltas: Deltas = attrs.field(factory=Deltas)
    _void: list[HopRecord] = attrs.field(factory=list[HopRecord])
    """Requests whose output was taken back."""
    _begun: int = 0
    _sent: bool = False

    def records(self, state: LoopState) -> list[HopRecord]:
        """All requests of the call that brought anything."""
        return [*self._void, *state.told()]

    def start_over(self, state: LoopState) -> Undone | None:
        """The decode begins anew; returns what that makes void."""
        for record in state.told():
            kept = {name: value for name, value in record.interaction.items() if name in {"id", "usage"}}
            self._void.append(attrs.evolve(record, interaction=kept, status="lost", ended=False))
        void = Undone() if self.deltas.any_reported else None
        self.deltas = Deltas()
        return void

    async def on_event(self, event: Mapping[str, Any]) -> None:
        for told in self.deltas.feed(mapping(event)):
            self.emit(told)

    async def on_undone(self, to: int) -> None:  # noqa: ARG002  models count by what they report
        void = self.deltas.undo()
        if void is not None:
            self.emit(void)

    def on_sent(self) -> None:
        if not self._sent:
            self._sent = True
            self.emit(RequestSent())

    def on_retrying(self, event: ModelEvent) -> None:
        self.emit(event)

    def on_hop_began(self, hop: int) -> None:  # noqa: ARG002  a call may begin its decode several times
        self.deltas.begin_hop()
        self.emit(HopBegan(self._begun))
        self._begun += 1

    def on_hop_ended(self, record: HopRecord) -> None:
        self.emit(HopEnded(self._begun - 1, record.id, record.status, usage_of(record.usage)))


def _unfinished(state: LoopState) -> Unfinished | None:
    """What resumes the decode, if the provider asks for that."""
    if state.token is None or not state.records or state.records[-1].status != "requires_continuation":
        return None
    return Unfinished(state.token, state.owner, state.continuation_ids)
