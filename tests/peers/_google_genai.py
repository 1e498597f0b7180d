"""The official client of the Interactions API and our own, asked the same, and what they come to in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from google import genai
from google.genai import errors, types

from actors.models.gemini import Interactions
from protocol.decode import Policy
from protocol.errors import ContinuationInterrupted, ModelError, ModelRefused

__all__ = ("Outcome", "ask_official", "ask_ours", "plain")

_NO_WAIT = 0.001


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of one call."""

    result: Any = None
    """The merged interaction; of a stream that was interrupted, nothing: the official client has none."""
    events: Sequence[Any] = ()
    error: str | None = None
    """`interrupted` for a decode that can be resumed by hand, else the status, or `connection`."""
    token: str | None = None
    owner: str | None = None
    ids: Sequence[str] = ()


def ask_official(address: str, body: Mapping[str, Any], *, stream: bool, automatic: bool | None = None) -> Outcome:
    """Put one call to the official client, which blocks."""
    retries = types.HttpRetryOptions(attempts=3, initial_delay=_NO_WAIT, max_delay=_NO_WAIT)
    client = genai.Client(
        api_key="key-of-the-test", http_options=types.HttpOptions(base_url=address, retry_options=retries)
    )
    create: Any = client.interactions.create  # its many overloads fit no body that is put together
    option = {} if automatic is None else {"automatic_continuation": automatic}
    events: list[Any] = []
    try:
        reply = create(**body, **option, **({"stream": True} if stream else {}))
        if not stream:
            return Outcome(result=plain(reply))
        events.extend(plain(event) for event in reply)
    except errors.ContinuationInterruptedError as error:
        return Outcome(
            result=None if error.partial_interaction is None else plain(error.partial_interaction),
            events=events,
            error="interrupted",
            token=error.continuation_token,
            owner=error.interaction_id,
            ids=list(error.continuation_ids or ()),
        )
    except Exception as error:  # noqa: BLE001  its errors come from several libraries, and share no base
        status = getattr(error, "status_code", None)
        return Outcome(events=events, error=str(status) if isinstance(status, int) else "connection")
    finally:
        client.close()
    return Outcome(events=events)


async def ask_ours(address: str, body: Mapping[str, Any], *, stream: bool, automatic: bool | None = None) -> Outcome:
    """Put the same call to our client."""
    policy = Policy(reconnect_base_seconds=_NO_WAIT)
    client = Interactions(base_url=address, version="v1", api_key="key-of-the-test", policy=policy)
    events: list[Any] = []
    try:
        if not stream:
            return Outcome(result=plain(await client.create(automatic_continuation=automatic, **body)))
        async with client.stream(automatic_continuation=automatic, **body) as reply:
            async for event in reply:
                events.append(plain(event))
    except ContinuationInterrupted as error:
        return Outcome(
            result=None if stream else plain(error.interaction),
            events=events,
            error="interrupted",
            token=error.token,
            owner=error.interaction_id,
            ids=list(error.continuation_ids),
        )
    except ModelError as error:
        return Outcome(events=events, error=str(error.status) if isinstance(error, ModelRefused) else "connection")
    finally:
        await client.aclose()
    return Outcome(events=events)


def plain(value: Any) -> Any:
    """As JSON, without what is null or an empty text: the official client makes those of what is absent."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items() if item is not None and item != ""}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
