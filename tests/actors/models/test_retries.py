"""A call that takes several requests: what is repeated, when, what is told, what is kept."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors.models.wire import Attempts, CallPolicy
from protocol.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelReplyError,
    ModelServerError,
    ModelUnreachable,
)
from protocol.errors import ModelTimeout as TooLate
from protocol.model import ModelEvent, RequestSent, Retrying, TextDelta, Undone
from protocol.turns import TextPart
from protocol.usage import Usage
from tests.actors.models._cases import HELLO as HELLO_TURN
from tests.actors.models._wire import HELLO, HI, Heard, Network, Pause, Reply, answer, chunk, event, raw, stream
from tests.actors.models.conftest import MakeModel

USED = {"prompt_tokens": 10, "completion_tokens": 2}
ALL_USED = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.fixture
def model(make_model: MakeModel) -> MakeModel:
    """Makes models that send a request three times at most."""
    return lambda **settings: make_model(**{"retries": 2, **settings})


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_may_pass_is_repeated(
    status: int, network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The same bytes are sent again; what the second reply says is the turn, and sending is reported once."""
    network.server.replies = [answer(status, "{}"), stream(*HI)]
    heard = Heard()

    assert HELLO_TURN == await model().turn(HELLO, heard)
    assert [network.server.requests[0]] * 2 == network.server.requests
    assert (1, "Hello") == (heard.sent, heard.text)


@pytest.mark.parametrize(
    "reply",
    [
        answer(400),
        answer(401),
        answer(403),
        answer(404),
        answer(422),
        answer(429, {"error": {"message": "no money", "code": "insufficient_quota"}}),
        answer(429, "", ["x-should-retry: false"]),
        answer(302, "", ["location: /elsewhere"]),
        answer(200, "<html>welcome</html>", content_type="text/html"),
        stream("data: {nonsense\n\n"),
        stream(event({"error": {"message": "odd"}})),
        raw("220 mail.example.com ESMTP\r\n\r\n"),
    ],
)
async def test_what_would_come_again_is_not_repeated(
    reply: Reply, network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """HTP-08, HTP-11: one request, no wait, and an error that speaks of one attempt by not speaking of any."""
    network.server.replies = [reply]
    with pytest.raises(ModelError) as caught:
        await model().turn(HELLO, Heard())

    assert (1, False, 0) == (len(network.server.requests), caught.value.retryable, trio.current_time())
    assert "attempts" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        raw(),
        raw("HTTP/1.1 200 OK\r\n"),
        raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"),
        stream(": comment\n\n", end="cut"),
        stream(),
        stream(chunk({"role": "assistant"}), end="cut"),
        stream(chunk({"role": "assistant"})),
        stream(event({"error": {"message": "busy", "type": "overloaded_error"}})),
        stream(chunk(finish="error")),
    ],
)
async def test_a_reply_that_breaks_off_unheard_is_repeated(
    reply: Reply, network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Wherever it breaks, as long as no delta of it was reported."""
    network.server.replies = [reply, stream(*HI)]
    heard = Heard()
    turn = await model().turn(HELLO, heard)

    assert ("Hello", 2, "Hello") == (turn.text, len(network.server.requests), heard.text)


async def test_a_silent_reply_is_repeated(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A deadline of one request is as good as a broken connection."""
    network.server.replies = [raw(Pause(50)), stream(Pause(50)), stream(*HI)]

    assert HELLO_TURN == await model(first_byte_timeout_seconds=10).turn(HELLO, Heard())


async def test_a_connection_that_fails_is_made_again(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that is just starting is waited for; nothing is reported as sent before it is."""
    network.refuse = True
    network.server.replies = [stream(*HI)]
    heard = Heard()

    def emit(event: ModelEvent) -> None:
        network.refuse = False
        heard(event)

    assert HELLO_TURN == await model().turn(HELLO, emit)
    assert [Retrying, RequestSent] == [type(event) for event in heard.events[:2]]


async def test_each_retry_is_announced(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Number, wait and reason, before the wait; the reason holds no secret."""
    network.server.replies = [
        answer(503, {"error": {"message": "busy, says sk-very-secret"}}),
        answer(429, "{}", ["retry-after: 7"]),
        stream(*HI),
    ]
    times: list[tuple[float, Retrying]] = []
    await model().turn(
        HELLO,
        lambda event: times.append((trio.current_time(), event)) if isinstance(event, Retrying) else None,
    )
    [(first_at, first), (second_at, second)] = times

    assert (1, 2, 7) == (first.attempt, second.attempt, second.seconds)
    assert (0, first.seconds) == (first_at, second_at)
    assert 0.375 <= first.seconds <= 0.5
    assert "503 (Service Unavailable): busy, says ***" in first.reason
    assert trio.current_time() == pytest.approx(first.seconds + 7)


async def test_the_last_error_says_how_often_it_was_tried(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """As its own kind, with the attempts in its text."""
    network.server.replies = [answer(500), answer(429), answer(503, "{}", ["retry-after: 5"])]
    with pytest.raises(ModelServerError, match=r"answered 503 .* \(3 attempts were made\)$") as caught:
        await model().turn(HELLO, Heard())

    assert (3, 5) == (len(network.server.requests), caught.value.retry_after_seconds)


async def test_a_retry_may_fail_for_good(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A second reply that would come again is the last."""
    network.server.replies = [answer(500), answer(401)]
    with pytest.raises(ModelAuthError, match=r"\(2 attempts were made\)$"):
        await model().turn(HELLO, Heard())


async def test_a_pause_that_is_too_long_is_not_waited_for(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The caller hears at once how long the server wants to be left alone."""
    network.server.replies = [answer(429, "{}", ["retry-after: 3601"])]
    with pytest.raises(ModelRateLimited, match="it asks for a pause of 3601 s, longer than what is left") as caught:
        await model().turn(HELLO, Heard())

    assert (0, 3601, True) == (trio.current_time(), caught.value.retry_after_seconds, caught.value.retryable)


async def test_what_is_left_of_the_call_bounds_the_pause(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The second pause of 6 s does not fit into 10."""
    network.server.replies = [answer(429, "{}", ["retry-after: 6"]), answer(429, "{}", ["retry-after: 6"])]
    with pytest.raises(ModelRateLimited, match=r"a pause of 6 s.*call_timeout_seconds.* \(2 attempts were made\)"):
        await model(call_timeout_seconds=10).turn(HELLO, Heard())

    assert 6 == trio.current_time()


async def test_no_retries_are_one_request(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """`retries=0` raises what came."""
    network.server.replies = [answer(500)]
    heard = Heard()
    with pytest.raises(ModelServerError) as caught:
        await model(retries=0).turn(HELLO, heard)

    assert [RequestSent()] == heard.events
    assert "attempts" not in str(caught.value)


async def test_what_was_reported_is_not_repeated(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """`strict`: a reply that breaks off after a delta fails, with what there is."""
    network.server.replies = [stream(HI[0], end="cut")]
    heard = Heard()
    with pytest.raises(ModelError, match="broke while the reply came in") as caught:
        await model().turn(HELLO, heard)

    assert caught.value.partial is not None
    assert ("He", "He", 1) == (caught.value.partial.text, heard.text, len(network.server.requests))


async def test_replay_undoes_and_starts_over(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """`replay`: what had been reported is undone before the retry is announced, and then comes again."""
    network.server.replies = [stream(HI[0], end="cut"), stream(*HI)]
    heard = Heard()

    assert HELLO_TURN == await model(delivery="replay").turn(HELLO, heard)

    kinds = [RequestSent, TextDelta, Undone, Retrying, TextDelta, TextDelta]
    assert kinds == [type(event) for event in heard.events]
    assert Undone() == heard.events[2]


async def test_replay_undoes_only_what_was_reported(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A second attempt that failed without a delta has nothing to undo, and the last failure undoes nothing."""
    network.server.replies = [stream(HI[0], end="cut"), answer(500), stream(HI[0], end="cut")]
    heard = Heard()
    with pytest.raises(ModelError, match="3 attempts"):
        await model(delivery="replay").turn(HELLO, heard)

    assert 1 == heard.events.count(Undone())
    assert TextDelta("He") == heard.events[-1]


async def test_the_best_partial_is_kept(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """The last error carries the longest reply of all attempts, and what all of them used."""
    first = stream(HI[0], HI[1], chunk({}, usage=USED), end="cut")
    network.server.replies = [first, stream(HI[0], chunk({}, usage=USED), end="cut"), answer(500)]
    with pytest.raises(ModelServerError) as caught:
        await model(delivery="replay").turn(HELLO, Heard())
    partial = caught.value.partial

    assert partial is not None
    assert ((TextPart("Hello"),), "lost") == (partial.parts, partial.end)
    assert Usage(20, output_tokens=4, complete=True) == partial.usage


async def test_the_usage_of_a_failed_attempt_is_not_lost(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """It is part of the turn's usage; how full the context is, the last request alone says."""
    lost = stream(chunk({"role": "assistant"}, usage=USED), end="cut")
    network.server.replies = [lost, stream(HI[0], chunk(finish="stop", usage=ALL_USED))]
    turn = await model().turn(HELLO, Heard())

    assert (Usage(20, output_tokens=7, complete=True), 10) == (turn.usage, turn.context_tokens)


async def test_a_lost_reply_that_told_no_usage_makes_the_sum_incomplete(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """What was generated and not accounted for is unknown, and is not passed off as nothing."""
    network.server.replies = [stream(HI[0], end="cut"), stream(HI[0], chunk(finish="stop", usage=ALL_USED))]
    turn = await model(delivery="replay").turn(HELLO, Heard())

    assert Usage(10, output_tokens=5, complete=False) == turn.usage


async def test_a_refusal_used_nothing(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A status that was repeated leaves the usage as it was reported."""
    network.server.replies = [answer(429), stream(HI[0], chunk(finish="stop", usage=ALL_USED))]
    turn = await model().turn(HELLO, Heard())

    assert (Usage(10, output_tokens=5, complete=True), None) == (turn.usage, turn.context_tokens)


async def test_the_whole_call_has_a_deadline(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Requests and waits together; the partial reply is kept, and the connection closed at that moment."""
    network.server.replies = [
        answer(503, "{}", ["retry-after: 4"]),
        stream(HI[0], *[step for _ in range(9) for step in (Pause(1), ": ka\n\n")], end="hang"),
    ]
    with pytest.raises(TooLate, match=r"took longer than 10 s \(call_timeout_seconds\)$") as caught:
        await model(call_timeout_seconds=10).turn(HELLO, Heard())
    await trio.testing.wait_all_tasks_blocked()

    assert caught.value.partial is not None
    assert ("He", 10, True) == (caught.value.partial.text, trio.current_time(), caught.value.retryable)


async def test_comments_alone_keep_nothing_alive_for_ever(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that never says anything is ended by the deadline of the call: an hour, unless it is set."""
    network.server.replies = [stream(*[step for _ in range(1000) for step in (": ka\n\n", Pause(30))])]
    with pytest.raises(TooLate, match="took longer than 3600 s") as caught:
        await model().turn(HELLO, Heard())

    assert (3600, None) == (trio.current_time(), caught.value.partial)


async def test_a_whole_reply_is_not_cut_by_the_end_of_the_call(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """After its end signal a turn stands, even if the server dawdles with the rest."""
    network.server.replies = [stream(HI[0], Pause(8), chunk({"content": "llo"}, finish="stop"), Pause(3), end="hang")]

    assert "Hello" == (await model(call_timeout_seconds=10).turn(HELLO, Heard())).text
    assert 10 == trio.current_time()


async def test_waiting_for_a_connection_is_part_of_the_call(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that does not get its turn in time ends as well, and says that it was not sent."""
    network.server.replies = [stream(Pause(6), *HI), stream(Pause(6), *HI)]
    only = model(max_connections=1, call_timeout_seconds=10)
    heard = [Heard(), Heard(), Heard()]
    said: list[str] = []

    async def call(number: int) -> None:
        try:
            said.append((await only.turn(HELLO, heard[number])).text)
        except TooLate as error:
            said.append(str(error).partition(" (call_timeout_seconds)")[2])

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(call, number)
            await trio.testing.wait_all_tasks_blocked()
    unsent = "; nothing was sent: no connection came to stand, or all max_connections were in use"

    assert sorted(["", "Hello", unsent]) == sorted(said)
    assert ([1, 1, 0], 10) == ([each.sent for each in heard], trio.current_time())


async def test_one_request_has_a_deadline_too(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """`hop_timeout_seconds` bounds a request from its connection to its last byte, however lively it is."""
    lively = [step for _ in range(20) for step in (Pause(1), ": ka\n\n")]
    network.connect_seconds = 2
    network.server.replies = [stream(*lively), stream(*HI)]
    heard = Heard()

    assert HELLO_TURN == await model(hop_timeout_seconds=5).turn(HELLO, heard)

    [retry] = [event for event in heard.events if isinstance(event, Retrying)]
    assert "took longer than 5 s (hop_timeout_seconds)" in retry.reason
    assert trio.current_time() == pytest.approx(5 + retry.seconds + 2, abs=0.01)


@pytest.mark.parametrize(
    ("seconds", "where"),
    [(1, "connect"), (3, "first byte"), (5, "body"), (7.1, "retry"), (9, "second connect"), (11, "second body")],
)
async def test_a_cancel_at_any_point_leaves_nothing_behind(
    seconds: float, where: str, network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing is swallowed, no request hangs on, no place is lost, and the next call works."""
    network.connect_seconds = 2
    network.server.replies = [
        stream(Pause(2), chunk({"role": "assistant"}), Pause(3), end="cut"),
        stream(HI[0], end="hang"),
    ]
    only = model(max_connections=1)
    with trio.move_on_after(seconds) as scope:
        await only.turn(HELLO, Heard())
    await trio.testing.wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert seconds == trio.current_time()
    assert (0, 0) == (only.statistics().calls, only.statistics().waiting)
    assert network.closed == network.server.connections
    network.connect_seconds = 0
    network.server.replies = [stream(*HI)]
    assert HELLO_TURN == await only.turn(HELLO, Heard())


async def test_no_place_is_held_while_a_retry_waits(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Another call uses the one connection meanwhile."""
    network.server.replies = [answer(429, "{}", ["retry-after: 50"]), stream(*HI), stream(*HI)]
    only = model(max_connections=1)
    ended: list[tuple[str, float]] = []

    async def call(name: str) -> None:
        await only.turn(HELLO, Heard())
        ended.append((name, trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, "refused")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(call, "other")

    assert [("other", 0), ("refused", 50)] == ended


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("reply", [stream(HI[0], end="hang"), raw(Pause(50))])
async def test_closing_a_model_ends_its_calls(
    reply: Reply, before: int, network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A call under way fails at once and is not repeated, on a connection from before neither; its place is free."""
    network.server.replies = [*[stream(*HI)] * before, reply]
    only = model(max_connections=1)
    for _ in range(before):
        await only.turn(HELLO, Heard())
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def call() -> None:
            with pytest.raises(ModelError, match="its model has been closed$") as caught:
                await only.turn(HELLO, Heard())

            assert not caught.value.retryable

        await trio.testing.wait_all_tasks_blocked()
        await only.aclose()

    assert (0, 0) == (only.statistics().calls, only.statistics().waiting)
    assert (before + 1, 1, 1) == (len(network.server.requests), network.server.connections, network.closed)


async def test_closing_a_model_that_connects(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """A connection that comes to stand too late is not left open."""
    network.connect_seconds = 5
    network.server.replies = [stream(*HI)]
    only = model()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def call() -> None:
            with pytest.raises(ModelError, match="has been closed"):
                await only.turn(HELLO, Heard())

        await trio.sleep(1)
        await only.aclose()
    await trio.testing.wait_all_tasks_blocked()

    assert (1, 1) == (network.server.connections, network.closed)


async def failing(attempts: Attempts, times: int, make_error: Callable[[], ModelError]) -> None:
    for _ in range(times):
        await attempts.again(make_error())


async def test_attempts_serve_any_driver(autojump_clock: trio.testing.MockClock) -> None:
    """The waits are exact where chance is given, and failures are counted for the caller."""
    heard = Heard()
    attempts = Attempts(CallPolicy(retries=3, draw=lambda: 1.0), heard, deadline=math.inf)
    await failing(attempts, 3, lambda: ModelError("lost", retryable=True))
    with pytest.raises(ModelReplyError, match=r"^odd \(4 attempts were made\)$"):
        await failing(attempts, 1, lambda: ModelReplyError("odd", retryable=True))

    expected = [Retrying(1, 0.375, "lost"), Retrying(2, 0.75, "lost"), Retrying(3, 1.5, "lost")]
    assert (expected, 2.625, 4) == (heard.events, trio.current_time(), attempts.failures)


async def test_a_last_error_can_be_pickled(
    network: Network, model: MakeModel, autojump_clock: trio.testing.MockClock
) -> None:
    """Its text is that of the error itself."""
    network.refuse = True
    with pytest.raises(ModelUnreachable) as caught:
        await model().turn(HELLO, Heard())

    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retries": -1}, "retries must be a number from 0 up; it is -1"),
        ({"retries": 1.5}, "retries must be a number from 0 up; it is 1.5"),
        ({"retries": True}, "retries must be a number from 0 up; it is True"),
        ({"delivery": "hold"}, 'delivery must be "strict" or "replay"; it is \'hold\''),
        ({"call_timeout_seconds": 0}, "call_timeout_seconds must be more than 0; it is 0"),
        ({"call_timeout_seconds": math.nan}, "call_timeout_seconds must be more than 0; it is nan"),
        ({"hop_timeout_seconds": -1}, "hop_timeout_seconds must be more than 0; it is -1"),
    ],
)
async def test_a_wrong_setting_is_told(settings: dict[str, Any], said: str, make_model: MakeModel) -> None:
    """When the model is made, with the value and what would be right."""
    with pytest.raises(ValueError, match="^" + said.replace("(", r"\(") + "$"):
        make_model(**settings)
