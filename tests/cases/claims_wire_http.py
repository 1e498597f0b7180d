"""What must hold of the cases about statuses, retries, silence and the errors of a network, beyond their checks."""

from __future__ import annotations

import json

import httpx
import pytest
import trio

from actors import Agent
from protocol.errors import (
    ContextOverflow,
    ModelRateLimited,
    ModelServerError,
    ModelTimeout,
    ModelUnreachable,
    RunFailedError,
)
from protocol.events import ModelRetry
from protocol.turns import AssistantMessage, TextPart
from tests.actors.models._wire import Network
from tests.support.play import Stage, perform
from tests.support.specs import agent

from .claims import claim
from .claims_wire_stream import cause, only
from .program import input_of
from .wire.models import model_of

AGAIN = {"when": "run_ended", "do": "user_message", "text": "again"}


@claim("HTP-01", "second request is sent 20 virtual seconds after the first (jitter above allowed)")
def a_date_is_obeyed() -> None:
    first, second = only("HTP-01").served.times

    assert 20 <= second - first <= 25


@claim("HTP-01", "the final error has status 429 and 'still'")
def the_last_error_stands() -> None:
    error = cause(only("HTP-01"))

    assert isinstance(error, ModelRateLimited)
    assert 429 == error.status
    assert "still" in str(error)


@claim("HTP-03", "the three attempts count as one logical model call")
def attempts_are_one_call() -> None:
    came = only("HTP-03")

    assert 1 == came.last.result.counters.llm_calls
    assert 2 == len(came.last.all(ModelRetry))


@claim("HTP-03", "400, 401, 403, 404 and 422 are not retried")
def refusals_stand() -> None:
    for status in (400, 401, 403, 404, 422):
        came = only("HTP-03", ("http.0", {"status": status}))
        assert (1, "error") == (len(came.served.bodies), came.outcome)


@claim("HTP-04", "classified the same way as HTTP 529 (retryable, same backoff)")
def overload_is_overload() -> None:
    in_stream = cause(only("HTP-04", ("config.retries", 0)))
    status = {"status": 529, "json": {"error": {"type": "overloaded_error", "message": "Overloaded"}}}
    by_status = cause(only("HTP-04", ("config.retries", 0), ("http.0", status)))

    assert isinstance(in_stream, ModelServerError)
    assert isinstance(by_status, ModelServerError)
    assert (529, True) == (in_stream.status, in_stream.retryable) == (by_status.status, by_status.retryable)


@claim("HTP-08", "a 400 is not retried unchanged")
def a_refusal_is_no_reason_to_repeat() -> None:
    came = only("HTP-08", ("actions", [AGAIN]))

    assert 2 == len(came.served.bodies)
    assert came.served.bodies[0] != came.served.bodies[1]


@claim("HTP-09", "the second request is smaller than the first")
def less_is_sent() -> None:
    first, second = only("HTP-09").served.bodies

    assert len(json.dumps(second["messages"])) < len(json.dumps(first["messages"]))


@claim(
    "HTP-09",
    "without the hook: outcome error of a distinct kind (context), and the next user message can still be sent after"
    " history was cut",
)
def the_kind_is_known() -> None:
    compact = {"when": "run_ended", "do": "compact history keeping the last 1 messages"}
    go_on = {"when": "compacted", "do": "user_message", "text": "again"}
    came = only("HTP-09", ("hooks", {}), ("actions", [compact, go_on]))

    assert isinstance(came.played[0].error, RunFailedError)
    assert isinstance(came.played[0].error.__cause__, ContextOverflow)
    assert "Hello" == came.played[1].result.text


@claim("HTP-09", "bounded: if the server always says so, a fixed small number of requests")
def it_is_asked_a_few_times() -> None:
    refusal = input_of("HTP-09")["http"][0]
    came = only("HTP-09", ("http", [refusal] * 20))

    assert isinstance(cause(came), ContextOverflow)
    assert 2 == len(came.served.bodies)


@claim("HTP-12", "fails at about 30 virtual seconds after the last byte with an idle-timeout error; partial text kept")
def silence_has_an_end() -> None:
    came = only("HTP-12")

    assert isinstance(cause(came), ModelTimeout)
    assert "idle" in str(cause(came))
    assert came.last.seconds == pytest.approx(30, rel=0.05)
    assert AssistantMessage((TextPart("He"),), partial=True) == came.messages[-1]


@claim("HTP-12", "cancel during the silence works at once")
def silence_can_be_cut() -> None:
    came = only("HTP-12", ("actions", [{"when": "t=7", "do": "cancel"}]))

    assert ("cancelled", 7.0) == (came.outcome, came.last.seconds)
    assert AssistantMessage((TextPart("He"),), partial=True) == came.messages[-1]


@claim("HTP-13", "600 virtual seconds of steady output is not cut")
def steady_output_goes_on() -> None:
    came = only("HTP-13")

    assert (600.0, 1) == (came.last.seconds, len(came.served.bodies))


@claim(
    "HTP-15",
    "message contains 'provider down'; status 502 inside the body is treated as retryable when retries > 0",
)
def an_error_in_a_body() -> None:
    came = only("HTP-15")
    good = {"json": {"choices": [{"finish_reason": "stop", "message": {"content": "fine"}}]}}
    again = only("HTP-15", ("http", [*input_of("HTP-15")["http"], good]), ("config.retries", 1))

    assert "provider down" in str(cause(came))
    assert ("fine", 2) == (again.last.result.text, len(again.served.bodies))


@claim(
    "TRI-01",
    "the run result/exception is a single typed error (connection failed), not an ExceptionGroup with one member",
)
def one_error_is_one_error() -> None:
    error = only("TRI-01").last.error

    assert isinstance(error, RunFailedError)
    assert isinstance(error.__cause__, ModelUnreachable)
    assert not isinstance(error.__cause__.__cause__, BaseExceptionGroup)
    assert isinstance(error.__cause__.__cause__, httpx.ConnectError)


@claim("TRI-01", "two real independent errors are both reported; none is lost")
def two_errors_are_two() -> None:
    async def result_of(stage: Stage, served: Agent) -> None:
        async with stage.run(served) as run:
            await run.result()

    async def scene(stage: Stage) -> list[str]:
        found: list[str] = []
        async with trio.open_nursery() as network_nursery:
            network = Network(network_nursery, refuse=True)
            agents = [
                await stage.spawn(agent(model_of(input_of("TRI-01"), network), name=name)) for name in ("one", "two")
            ]
            try:
                async with trio.open_nursery() as nursery:
                    for served in agents:
                        nursery.start_soon(result_of, stage, served)
            except ExceptionGroup as group:
                found = [type(error.__cause__).__name__ for error in group.exceptions]
        return found

    assert ["ModelUnreachable", "ModelUnreachable"] == perform(scene)
