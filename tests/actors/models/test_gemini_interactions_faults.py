"""Interactions as a model, where the server or the network does not do as it should."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from protocol.decode import Policy
from protocol.errors import (
    ContinuationInterrupted,
    ModelError,
    ModelRefused,
    ModelReplyError,
    ModelServerError,
    ModelTimeout,
)
from protocol.model import HopBegan, HopEnded, ModelRequest, Retrying, Undone
from protocol.usage import UNKNOWN_USAGE
from tests.actors.models._interactions_read import shown
from tests.actors.models._wire import HELLO, Heard, Pause
from tests.actors.models.conftest import Meet
from tests.support.interactions import (
    Call,
    Checkpoint,
    Cut,
    InteractionsServer,
    Raw,
    hop,
    interactions_server,
    refuse,
    stream_bytes,
)

TWO = [hop("Once ", Checkpoint("ck1"), "upon ", token="tk1"), hop("a time.")]
WHOLE = "Once upon a time."


def behind(server: InteractionsServer, what: str, interaction_id: str = "i1", hop: int = 0, decode: int = 0) -> Cut:
    """Cuts a stream behind the event that holds `what`."""
    data = stream_bytes(server, interaction_id, decode=decode, hop=hop)
    return Cut(at_byte=data.index(b"\n\n", data.index(what.encode())) + 2)


async def test_a_drop_behind_a_token_is_mended(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """Nothing came behind the checkpoint: the decode goes on from it, and nothing is reported twice."""
    server, heard = interactions_server(TWO), Heard()
    server.faults[0] = behind(server, "ck1")
    turn = await meet(server).turn(HELLO, heard)

    assert (WHOLE, WHOLE, "stop") == (turn.text, heard.text, turn.finish)
    assert [None, "ck1", "tk1"] == [body.get("continuation_token") for body in server.bodies]
    assert [HopEnded(0, "i1", "lost", UNKNOWN_USAGE)] == [
        event for event in heard.events if isinstance(event, HopEnded) and event.status == "lost"
    ]
    assert not turn.usage.complete


@pytest.mark.parametrize("store", [False, True])
async def test_a_drop_behind_output_is_told(meet: Meet, *, store: bool) -> None:
    """By default what came behind the last token is not taken back: the error says what resumes the decode."""
    server, heard = interactions_server(TWO), Heard()
    server.faults[0] = behind(server, "upon ")
    with pytest.raises(ContinuationInterrupted) as caught:
        await meet(server, extra_body={"store": store}).turn(HELLO, heard)
    error = caught.value

    assert ("transport", "ck1", ("i1",)) == (error.reason, error.token, error.continuation_ids)
    assert ("i1" if store else None) == error.interaction_id
    assert error.partial is not None
    assert ("Once upon ", "lost", "Once upon ") == (error.partial.text, error.partial.end, heard.text)


async def test_a_drop_behind_output_is_taken_back_where_that_is_asked_for(
    meet: Meet, autojump_clock: trio.testing.MockClock
) -> None:
    """With `replay` what was reported behind the last token is undone, and comes again."""
    server, heard = interactions_server(TWO), Heard()
    server.faults[0] = behind(server, "upon ")
    turn = await meet(server, delivery="replay").turn(HELLO, heard)

    assert [Undone(text=5)] == [event for event in heard.events if isinstance(event, Undone)]
    assert (WHOLE, WHOLE) == (turn.text, shown(heard.events).text)
    assert ["lost", "requires_continuation", "completed"] == [made.status for made in turn.hops]


async def test_marks_are_right_after_a_drop(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """What was taken back does not count in what stands: half a character at the end of it neither."""
    decode = [hop("Once ", Checkpoint("ck1"), "upon ", "\ud83d", "\ude00", token="tk1"), hop("a time.")]
    server, heard = interactions_server(decode), Heard()
    server.faults[0] = behind(server, "\\ud83d")
    server.faults[2] = behind(server, "a time.", "i3", hop=1)
    turn = await meet(server, delivery="replay").turn(HELLO, heard)

    assert [Undone(text=5), Undone(text=11)] == [event for event in heard.events if isinstance(event, Undone)]
    assert ("Once upon \U0001f600a time.",) * 2 == (turn.text, shown(heard.events).text)


async def test_a_reply_without_a_token_is_begun_anew_where_that_is_asked_for(
    meet: Meet, autojump_clock: trio.testing.MockClock
) -> None:
    """With `replay` a decode that broke off before its first token starts over; what it used is not forgotten."""
    used = {"metadata": {"total_usage": {"total_input_tokens": 10, "total_output_tokens": 1}}}
    said = Raw({"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Onc"}, **used})
    server, heard = interactions_server([hop(said, Call("c1", "f"), terminal=False, done=False)], TWO), Heard()
    server.faults[1] = behind(server, "upon ", "i2", decode=1)
    turn = await meet(server, delivery="replay").turn(HELLO, heard)

    assert [Undone(), Undone(text=5)] == [event for event in heard.events if isinstance(event, Undone)]
    assert ((WHOLE, []), WHOLE) == ((shown(heard.events).text, shown(heard.events).calls), turn.text)
    assert ("lost", 30) == (turn.hops[0].status, turn.usage.input_tokens)
    assert [0, 1, 2, 3] == [event.hop for event in heard.events if isinstance(event, HopBegan)]


async def test_a_reply_that_had_not_begun_is_asked_for_again(
    meet: Meet, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing had been reported: within `retries` the request is repeated, by default too."""
    server, heard = interactions_server(TWO), Heard()
    server.faults = {0: refuse(503, retry_after="7"), 1: behind(server, "interaction.created")}
    turn = await meet(server).turn(HELLO, heard)
    waits = [event for event in heard.events if isinstance(event, Retrying)]

    assert (WHOLE, WHOLE, 1) == (turn.text, heard.text, heard.sent)
    assert (2, 7.0) == (len(waits), waits[0].seconds)
    with pytest.raises(ModelError):
        server.faults[4] = behind(server, "interaction.created")
        await meet(server, retries=0).turn(HELLO, heard)


async def test_a_stream_without_a_word(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """A reply that ends before its first event is no reply: it is asked for again, so often and no more."""
    server = interactions_server(TWO, faults={0: Cut(at_byte=0, end="close"), 1: Cut(at_byte=0)})
    turn = await meet(server).turn(HELLO, Heard())
    silent = interactions_server(TWO, faults={number: Cut(at_byte=0, end="close") for number in range(9)})
    with pytest.raises(ModelReplyError, match=r"middle of the reply.*3 attempts"):
        await meet(silent).turn(HELLO, Heard())

    assert (WHOLE, 4, 3) == (turn.text, len(server.bodies), len(silent.bodies))


async def test_a_hop_that_is_refused_for_a_while(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """A later hop is repeated with the same token; the hops before it are not made again."""
    server, heard = interactions_server(TWO), Heard()
    server.faults[1] = refuse(503, retry_after="3")
    turn = await meet(server).turn(HELLO, heard)

    assert (WHOLE, 3.0) == (turn.text, trio.current_time())
    assert [None, "tk1", "tk1"] == [body.get("continuation_token") for body in server.bodies]


async def test_a_hop_that_is_refused(meet: Meet) -> None:
    """What had come before is not lost, and the error's cause says why."""
    server = interactions_server(TWO, faults={1: refuse(400, "no")})
    with pytest.raises(ContinuationInterrupted) as caught:
        await meet(server).turn(HELLO, Heard())
    error = caught.value

    assert ("http_status", "tk1") == (error.reason, error.token)
    assert isinstance(error.__cause__, ModelRefused)
    assert error.partial is not None
    assert "Once upon " == error.partial.text


async def test_retries_are_not_multiplied(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """A request that is refused each time is sent `retries` times again and no more; a decode that failed late is not."""
    server = interactions_server(TWO, faults=dict.fromkeys(range(9), refuse(503)))
    with pytest.raises(ModelServerError, match="2 attempts"):
        await meet(server, retries=1, delivery="replay").turn(HELLO, Heard())
    late = interactions_server([hop("a", token="t"), hop("b", status="failed")])
    with pytest.raises(ModelServerError, match="failed"):
        await meet(late, delivery="replay").turn(HELLO, Heard())

    assert (2, 2) == (len(server.bodies), len(late.bodies))


LIES: dict[str, tuple[list[Any], type[ModelError], str]] = {
    "an error event": (
        [hop("a", Raw({"event_type": "error", "error": {"message": "on fire"}}))],
        ModelError,
        "on fire",
    ),
    "an error without a word": ([hop("a", Raw({"event_type": "error"}))], ModelError, "error"),
    "broken JSON": ([hop("a", Raw("data: {oops\n\n"))], ModelReplyError, "oops"),
    "no terminal event": ([hop("a", terminal=False)], ModelReplyError, "middle of the reply"),
    "no end": ([hop("a", terminal=False, done=False)], ModelReplyError, "middle of the reply"),
    "failed": ([hop("a", over={"status": "failed", "errors": [{"message": "on fire"}]})], ModelServerError, "on fire"),
    "failed later": ([hop("a", token="t"), hop("b", status="failed")], ModelServerError, "failed"),
    "a call without a name": ([hop("a", Call("c1", ""))], ModelReplyError, "without a name"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_what_is_no_answer_never_passes_for_one(meet: Meet, lie: str) -> None:
    """Whatever the server does instead of ending its reply is an error, with what was said in its partial."""
    hops, kind, said = LIES[lie]
    with pytest.raises(kind, match=said) as caught:
        await meet(interactions_server(hops)).turn(HELLO, Heard())

    assert caught.value.partial is not None
    assert ("ab" if lie == "failed later" else "a") == caught.value.partial.text


async def test_a_decode_that_does_not_end(meet: Meet) -> None:
    """Tokens in a circle stop it where the first comes again; tokens without end where the policy says."""
    circle = interactions_server([hop("a", token="tA"), hop("b", token="tB", leads_to=0)])
    turn = await meet(circle).turn(HELLO, Heard())
    endless = interactions_server([hop("a", token=f"t{number}") for number in range(9)])
    with pytest.raises(ContinuationInterrupted) as caught:
        await meet(endless, policy=Policy(max_hops=3)).turn(HELLO, Heard())

    assert ("aba", "length", 3) == (turn.text, turn.finish, len(circle.bodies))
    assert ("hop_limit", 4, "t3") == (caught.value.reason, len(endless.bodies), caught.value.token)


async def test_the_time_of_the_call_is_for_all_of_it(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """Hops, silence and waits share `call_timeout_seconds`; what came is in the error."""
    server = interactions_server([hop("a", Raw(Pause(30)), token="t"), hop("b", Raw(Pause(40)), "c")])
    with pytest.raises(ContinuationInterrupted) as caught:
        await meet(server, call_timeout_seconds=60.0).turn(HELLO, Heard())

    assert ("deadline", "t", 60.0) == (caught.value.reason, caught.value.token, trio.current_time())
    assert isinstance(caught.value.__cause__, ModelTimeout)
    assert caught.value.partial is not None
    assert "ab" == caught.value.partial.text


async def test_another_try_has_no_time_of_its_own(meet: Meet, autojump_clock: trio.testing.MockClock) -> None:
    """A decode that is begun anew goes on within what is left of `call_timeout_seconds`."""
    server = interactions_server([hop("a", Raw(Pause(40)), terminal=False, done=False)])
    with pytest.raises(ModelTimeout):
        await meet(server, call_timeout_seconds=60.0, delivery="replay").turn(HELLO, Heard())

    assert (60.0, 2) == (trio.current_time(), len(server.bodies))


async def test_a_decode_that_is_not_to_go_on_needs_an_end_too(meet: Meet) -> None:
    """`[DONE]` alone is no end of a reply, with `automatic_continuation=False` neither."""
    request = ModelRequest(messages=HELLO.messages, automatic_continuation=False)
    with pytest.raises(ModelReplyError) as caught:
        await meet(interactions_server([hop("a", terminal=False)])).turn(request, Heard())

    assert caught.value.partial is not None
    assert ("a", "lost") == (caught.value.partial.text, caught.value.partial.end)


async def test_a_decode_that_is_not_to_go_on_is_not_mended(meet: Meet) -> None:
    """With `automatic_continuation=False` a drop is the error that it is."""
    server = interactions_server(TWO)
    server.faults[0] = behind(server, "ck1")
    request = ModelRequest(messages=HELLO.messages, automatic_continuation=False)
    with pytest.raises(ModelError, match="broke") as caught:
        await meet(server).turn(request, Heard())

    assert not isinstance(caught.value, ContinuationInterrupted)
    assert (1, "Once ") == (len(server.bodies), caught.value.partial and caught.value.partial.text)
