"""The HTTP client of the models, over a network in memory: deadlines, cancellation, connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest
import trio
import trio.testing

from actors.models.wire import _reply
from actors.models.wire._http import HttpStatistics
from protocol.errors import ModelError, ModelRefused, ModelReplyError, ModelTimeout, ModelUnreachable
from protocol.model import ModelEvent, RequestSent, TextDelta
from protocol.turns import TextPart, Turn
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import DONE, HELLO, HI, Heard, Network, Pause, answer, chunk, raw, stream
from tests.actors.models.conftest import MakeModel

ADDRESS = "http://127.0.0.1:8080/v1/chat/completions"


async def test_comments_keep_a_stream_alive(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """SSE-04: 24 s without an event, but never 10 s without a byte."""
    network.server.replies = [
        stream(HI[0], Pause(8), ": ka\n\n", Pause(8), ": ka\n\n", Pause(8), *HI[1:]),
    ]

    assert HELLO_TURN == await make_model(idle_timeout_seconds=10).turn(HELLO, Heard())
    assert 24 == trio.current_time()


async def test_a_silent_stream_times_out(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-12: 30 s after the last byte, with the partial text; the connection is closed at that moment."""
    network.server.replies = [stream(Pause(5), HI[0], end="hang")]
    with pytest.raises(ModelTimeout, match=r"went silent .* for 30 s \(idle_timeout_seconds\)") as caught:
        await make_model(idle_timeout_seconds=30).turn(HELLO, Heard())
    await trio.testing.wait_all_tasks_blocked()

    assert trio.current_time() == pytest.approx(35, abs=0.5)
    assert [trio.current_time()] == network.server.gone
    assert (True, Turn((TextPart("He"),), end="lost", response="r1")) == (caught.value.retryable, caught.value.partial)


async def test_a_long_stream_is_not_cut(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-13: 600 s of steady output, no silence longer than the deadline."""
    steady = [step for _ in range(30) for step in (chunk({"content": "x"}), Pause(20))]
    network.server.replies = [stream(*steady, chunk(finish="stop"), DONE)]
    turn = await make_model(idle_timeout_seconds=30).turn(HELLO, Heard())

    assert ("x" * 30, 600) == (turn.text, trio.current_time())


@pytest.mark.parametrize("head", ["", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"])
async def test_the_first_byte_has_a_deadline_of_its_own(
    head: str, network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """It counts from the request to the reply's body: early headers are no sign of life, a connect is not counted."""
    network.connect_seconds = 3
    network.server.replies = [raw(head, Pause(1000))]
    heard = Heard()
    with pytest.raises(ModelTimeout, match=r"did not begin its reply within 120 s \(first_byte_timeout_seconds\)"):
        await make_model().turn(HELLO, heard)

    assert trio.current_time() == pytest.approx(123, abs=1.5)
    assert [RequestSent()] == heard.events


async def test_a_slow_first_byte_is_in_time(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A model may think longer than a stream may be silent."""
    network.server.replies = [stream(Pause(100), *HI)]

    assert HELLO_TURN == await make_model(idle_timeout_seconds=10).turn(HELLO, Heard())


async def test_a_connection_that_does_not_come_times_out(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """After 10 s, and the error says that nothing was sent; nor was it reported."""
    network.connect_seconds = 100
    heard = Heard()
    with pytest.raises(ModelTimeout, match=rf"no connection to {ADDRESS} within 10 s .*; nothing was sent"):
        await make_model().turn(HELLO, heard)

    assert trio.current_time() == pytest.approx(10, abs=0.2)
    assert [] == heard.events


async def test_a_refused_connection(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing was sent, and the error says where, why, and what to look at."""
    network.refuse = True
    heard = Heard()
    with pytest.raises(ModelUnreachable) as caught:
        await make_model().turn(HELLO, heard)
    expected = (
        f"cannot connect to {ADDRESS}: [Errno 111] Connection refused; nothing was sent."
        " Is a server running there, is the address (base_url, --base-url) right?"
    )

    assert (expected, True, []) == (str(caught.value), caught.value.retryable, heard.events)


async def test_sending_is_reported_when_the_connection_stands(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Not when the call begins, and not only when the reply does."""
    network.connect_seconds = 3
    network.server.replies = [stream(Pause(4), *HI)]
    times: list[tuple[type[ModelEvent], float]] = []
    await make_model().turn(HELLO, lambda event: times.append((type(event), trio.current_time())))

    assert [(RequestSent, 3), (TextDelta, 7), (TextDelta, 7)] == times


async def test_a_server_that_hangs_up_without_a_word(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The request was sent, so it counts; the error says what happened."""
    network.server.replies = [raw()]
    heard = Heard()
    with pytest.raises(ModelError, match="broke before the reply began: Server disconnected") as caught:
        await make_model().turn(HELLO, heard)

    assert (1, None, True) == (heard.sent, caught.value.partial, caught.value.retryable)


async def test_an_error_that_the_caller_handles_is_no_reason(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that is made while another error is handled does not tell that one's text."""
    network.server.replies = [raw()]
    with pytest.raises(ModelError) as caught:
        try:
            raise RuntimeError("something else")
        except RuntimeError:
            await make_model().turn(HELLO, Heard())

    assert "Server disconnected" in str(caught.value)


async def test_a_connection_from_before_may_be_dead(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server may hang up just as the next request comes: it is sent again on a new connection, as one call."""
    network.server.replies = [stream(*HI), raw(), stream(*HI), raw(), raw()]
    model = make_model()
    heard = Heard()
    await model.turn(HELLO, Heard())

    assert HELLO_TURN == await model.turn(HELLO, heard)
    assert (1, 3, 2) == (heard.sent, len(network.server.requests), network.server.connections)

    with pytest.raises(ModelError, match="broke before the reply began: Server disconnected"):
        await model.turn(HELLO, heard)

    assert (2, 5, 3) == (heard.sent, len(network.server.requests), network.server.connections)


async def test_a_dead_connection_and_then_none(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that went down after it may have seen the request is not called unreachable."""
    network.server.replies = [stream(*HI), raw()]
    model = make_model()
    await model.turn(HELLO, Heard())
    network.refuse = True
    with pytest.raises(ModelError, match="broke before the reply began: .* refused") as caught:
        await model.turn(HELLO, Heard())

    assert ModelError is type(caught.value)


async def test_a_server_that_speaks_no_http(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Another protocol at that port is named as such."""
    network.server.replies = [raw("220 mail.example.com ESMTP\r\n\r\n")]
    with pytest.raises(ModelReplyError, match=f"{ADDRESS} does not speak HTTP"):
        await make_model().turn(HELLO, Heard())


async def test_after_the_sentinel_nothing_is_waited_for(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """SSE-14: a server that keeps the connection open costs no time, and a second call works, one that breaks too."""
    network.server.replies = [stream(*HI, end="hang"), stream(*HI, Pause(0.01), end="cut")]
    model = make_model(max_connections=1)

    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert trio.current_time() < 1
    assert HELLO_TURN == await model.turn(HELLO, Heard())
    assert 1 == len(network.server.gone)


async def test_a_connection_is_used_again(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Calls that end well, or with a status, share one connection; an end a moment after the sentinel is waited for."""
    network.server.replies = [stream(*HI), stream(*HI, Pause(0.05)), answer(429, "{}"), stream(*HI)]
    model = make_model()
    await model.turn(HELLO, Heard())
    await model.turn(HELLO, Heard())
    with pytest.raises(ModelRefused):
        await model.turn(HELLO, Heard())
    await model.turn(HELLO, Heard())

    assert (4, 1, 0) == (len(network.server.requests), network.server.connections, network.closed)


async def test_a_closed_model_opens_anew(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Closing leaves no connection open; closing twice is no error."""
    network.server.replies = [stream(*HI), stream(*HI)]
    model = make_model()
    await model.aclose()
    await model.turn(HELLO, Heard())
    await model.aclose()
    await model.aclose()

    assert (1, 1) == (network.server.connections, network.closed)
    assert HELLO_TURN == await model.turn(HELLO, Heard())


async def test_a_cancelled_call_closes_its_connection_at_once(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The server sees the end in the same moment, so that it can stop; the place is free again."""
    network.server.replies = [stream(HI[0], Pause(1), end="hang"), stream(*HI)]
    model = make_model(max_connections=1)
    with trio.move_on_after(7):
        await model.turn(HELLO, Heard())
    await trio.testing.wait_all_tasks_blocked()

    assert [7] == network.server.gone
    assert HttpStatistics(calls=0, waiting=0, max_connections=1) == model.statistics()
    assert HELLO_TURN == await model.turn(HELLO, Heard())


async def test_a_call_is_cancelled_before_its_reply(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """While it connects, or waits for the first byte: nothing is left open."""
    network.connect_seconds = 2
    network.server.replies = [raw(Pause(50)), stream(*HI)]
    model = make_model(max_connections=1)
    for seconds in (1, 5):
        with trio.move_on_after(seconds):
            await model.turn(HELLO, Heard())

    assert network.server.connections == network.closed
    assert HELLO_TURN == await model.turn(HELLO, Heard())


async def test_calls_beyond_the_connections_wait(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """No more run at a time than there are connections, and waiting has no deadline of its own."""
    network.server.replies = [stream(Pause(100), *HI) for _ in range(5)]
    model = make_model(max_connections=2)
    seen = []
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(model.turn, HELLO, Heard())
        await trio.testing.wait_all_tasks_blocked()
        seen.append(model.statistics())

    assert [HttpStatistics(calls=2, waiting=3, max_connections=2)] == seen
    assert (300, 2) == (trio.current_time(), network.server.connections)


async def cancel_as_a_connection_closes(network: Network, call: Callable[[], Awaitable[None]]) -> None:
    """Cancel a call that waits for the one connection, in the very step in which that becomes free."""
    network.server.replies = [stream(HI[0], end="hang"), stream(*HI)]
    holding, waiting = trio.CancelScope(), trio.CancelScope()

    async def run(scope: trio.CancelScope) -> None:
        with scope:
            await call()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, holding)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(run, waiting)
        await trio.testing.wait_all_tasks_blocked()
        network.on_close = waiting.cancel
        holding.cancel()
    network.on_close = lambda: None


async def test_a_pool_alone_loses_a_slot(network: Network, autojump_clock: trio.testing.MockClock) -> None:
    """The fault that the limiter is for is still there; when this fails, the limiter may go."""
    client = httpx.AsyncClient(transport=network.transport(max_connections=1), timeout=30)

    async def call() -> None:
        await client.post(ADDRESS)

    await cancel_as_a_connection_closes(network, call)

    with pytest.raises(httpx.PoolTimeout):
        await call()
    await client.aclose()


async def test_no_slot_is_lost(network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock) -> None:
    """A call that is cancelled in the step in which a connection becomes free leaves that connection usable."""
    model = make_model(max_connections=1, transport=network.transport(max_connections=1))

    async def call() -> None:
        await model.turn(HELLO, Heard())

    await cancel_as_a_connection_closes(network, call)

    assert HELLO_TURN == await model.turn(HELLO, Heard())


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://127.0.0.1:8443/v1/chat/completions", "https://127.0.0.1:8443/v1/chat/completions"),
        ("/v2/chat?key=hidden", "http://127.0.0.1:8080/v2/chat"),
        ("http://me:hidden@a.b/", "http://a.b/"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(
    status: int,
    location: str,
    shown: str,
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The key goes nowhere else; the error says where it would have gone."""
    network.server.replies = [answer(status, "", [f"location: {location}"])]
    with pytest.raises(ModelRefused, match=f"answered {status} and points to {shown}: redirects are not") as caught:
        await make_model().turn(HELLO, Heard())

    assert (status, 1) == (caught.value.status, len(network.server.requests))
    assert "hidden" not in str(caught.value)


async def test_an_error_without_end_is_bounded(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Of an error's body the first 64 KiB are read, and of one that never ends what comes within 5 s."""
    head = "HTTP/1.1 500 X\r\nconnection: close\r\n\r\n"
    endless = [step for _ in range(1000) for step in ("x" * 1000, Pause(0.02))]
    cut = raw(head[:-2], "content-length: 99\r\n\r\nhalf", Pause(1))
    silent = raw(head, Pause(1000))
    network.server.replies = [raw(head, *endless), raw(head, "half a text", Pause(1000)), cut, silent]
    model = make_model(idle_timeout_seconds=1, first_byte_timeout_seconds=2)
    for seconds, said in [(1.3, r": x+\.\.\."), (6.3, ": half a text"), (7.3, ": half"), (12.3, "")]:
        with pytest.raises(ModelRefused, match=r"answered 500 \(Internal Server Error\)" + said + "$"):
            await model.turn(HELLO, Heard())

        assert trio.current_time() == pytest.approx(seconds, abs=0.03)
    assert 4 == network.closed


async def test_a_reply_without_end_is_bounded(
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server cannot fill the memory with a stream, not even one of comments."""
    monkeypatch.setattr(_reply, "_MAX_REPLY_BYTES", 1000)
    network.server.replies = [stream(*[": comment\n\n"] * 1000)]
    with pytest.raises(ModelReplyError, match="a reply of more than 1000 bytes"):
        await make_model().turn(HELLO, Heard())

    assert 1 == network.closed


@pytest.mark.slow
async def test_an_event_without_end_is_an_error(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A single line may not fill the memory either: 16 MiB are the most."""
    network.server.replies = [stream("data: ", *[b"x" * 2**20] * 17)]
    with pytest.raises(ModelReplyError, match=f"{ADDRESS}: a line or an event of the stream is longer than 16777216"):
        await make_model().turn(HELLO, Heard())


async def test_a_whole_body_without_end_is_bounded(
    network: Network,
    make_model: MakeModel,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same for a reply that is not streamed."""
    monkeypatch.setattr(_reply, "_MAX_BODY_BYTES", 1000)
    network.server.replies = [stream('{"x":"', *["x" * 500] * 5, content_type="application/json")]
    with pytest.raises(ModelReplyError, match="a body of more than 1000 bytes"):
        await make_model().turn(HELLO, Heard())


async def test_a_cancel_during_the_release_does_not_lose_the_turn(
    network: Network, make_model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Once the reply has come to its end, the turn is returned whatever happens in the moment of letting go."""
    network.server.replies = [stream(*HI, Pause(1), end="hang")]
    turns = []
    with trio.CancelScope() as scope:

        def emit(event: ModelEvent) -> None:
            if event == TextDelta("llo"):
                scope.deadline = trio.current_time() + 0.01

        turns.append(await make_model().turn(HELLO, emit))

    assert [HELLO_TURN] == turns
