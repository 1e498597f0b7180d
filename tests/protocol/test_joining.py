"""How a turn that was cut goes on, and what its pieces come to."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from protocol.joining import cap_of, continuing, join, kept_of, lose, status_of, strategy_of, with_first_hop
from protocol.model import CONTINUE_TEXT, ModelRequest, Profile, Resume, Strategy
from protocol.turns import (
    AssistantMessage,
    Finish,
    Hop,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    Turn,
    Unfinished,
    UserMessage,
)
from protocol.usage import UNKNOWN_USAGE, Usage

GO = UserMessage("go")
ASK = ModelRequest(messages=(GO,), automatic_continuation=True)
CALL = ToolCall("c", "write", "{}", '{"path": "a')
BIGGER = Profile(continues_text="exact_prefix", default_max_tokens=10, max_output_tokens=99)
TEN = Usage(30, 0, 0, 10, 0, complete=True)
JSON: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": {}}}


def cut(*parts: Part, finish: Finish = "length", usage: Usage = TEN, **options: Any) -> Turn:
    return Turn(parts, finish, options.pop("raw", finish), usage, **options)


HALF = cut(TextPart("half"))
PAUSED = cut(OpaquePart("x", "{}"), finish="paused")
PREFIX = Profile(continues_text="exact_prefix")


def asked(**changes: Any) -> ModelRequest:
    return ModelRequest(**{"messages": (GO,), "automatic_continuation": True, **changes})


WAYS: dict[str, tuple[Strategy | None, Turn, ModelRequest, Profile]] = {
    "a text, as the server can": ("exact_prefix", HALF, ASK, PREFIX),
    "in words": ("user_turn", HALF, ASK, Profile()),
    "not at all": (None, HALF, ASK, Profile(continues_text="none")),
    "unless asked to, not": (None, HALF, asked(automatic_continuation=None), PREFIX),
    "never": (None, HALF, asked(automatic_continuation=False), PREFIX),
    "white space is no text": (None, cut(TextPart(" \n")), ASK, PREFIX),
    "nor is reasoning": (None, cut(ReasoningPart("hmm")), ASK, PREFIX),
    "an answer is whole": (None, cut(TextPart("whole"), finish="stop"), ASK, PREFIX),
    "what was lost is not cut": (None, attrs.evolve(HALF, end="lost"), ASK, PREFIX),
    "blocked": (None, cut(TextPart("half"), finish="content_filter"), ASK, PREFIX),
    "a pause": ("resend", PAUSED, asked(automatic_continuation=None), Profile(continues_text="none")),
    "a pause with text": ("resend", cut(TextPart("half"), finish="paused"), ASK, PREFIX),
    "a pause with signed reasoning": ("resend", cut(ReasoningPart("a", "s"), finish="paused"), ASK, PREFIX),
    "a pause with nothing to send back": (None, cut(ReasoningPart("a"), TextPart(" "), finish="paused"), ASK, PREFIX),
    "no pause, if never": (None, PAUSED, asked(automatic_continuation=False), PREFIX),
    "no pause with calls": (None, cut(CALL, finish="paused"), ASK, BIGGER),
    "cut calls anew": ("restart_bigger", cut(TextPart("a"), CALL), asked(automatic_continuation=None), BIGGER),
    "whatever reason is told": ("restart_bigger", cut(CALL, finish="tool_calls"), ASK, BIGGER),
    "not if never": (None, cut(CALL), asked(automatic_continuation=False), BIGGER),
    "the caller's cap stands": (None, cut(CALL), asked(max_tokens=10), BIGGER),
    "no bigger one is known": (None, cut(CALL), ASK, attrs.evolve(BIGGER, max_output_tokens=None)),
    "there is none": (None, cut(CALL), ASK, attrs.evolve(BIGGER, max_output_tokens=10)),
    "nobody knows what cut it": (None, cut(CALL), ASK, attrs.evolve(BIGGER, default_max_tokens=None)),
    "another limit cut it": (None, cut(CALL, usage=Usage(30, 0, 0, 9, 0, complete=True)), ASK, BIGGER),
    "unknown usage": ("restart_bigger", cut(CALL, usage=UNKNOWN_USAGE), ASK, BIGGER),
    "JSON anew": ("restart_bigger", HALF, asked(provider_options=JSON), BIGGER),
    "JSON, if asked to": (None, HALF, asked(provider_options=JSON, automatic_continuation=None), BIGGER),
    "JSON is not gone on with": (None, HALF, asked(provider_options=JSON), PREFIX),
    "a form that is deeper": (None, HALF, asked(provider_options={"text": {"format": {"type": "json_object"}}}), PREFIX),
    "a grammar": (None, HALF, asked(provider_options={"grammar": "root ::= a"}), PREFIX),
    "plain text is none": ("exact_prefix", HALF, asked(provider_options={"response_format": {"type": "text"}}), PREFIX),
    "other options neither": ("exact_prefix", HALF, asked(provider_options={"top_p": 1, "format": None}), PREFIX),
    "the window is full": (None, HALF, ASK, attrs.evolve(PREFIX, context_window=40)),
    "it is not": ("exact_prefix", HALF, ASK, attrs.evolve(PREFIX, context_window=41)),
    "nobody knows": ("exact_prefix", attrs.evolve(HALF, usage=UNKNOWN_USAGE), ASK, attrs.evolve(PREFIX, context_window=1)),
    "the reason says it": (None, cut(TextPart("half"), raw="model_context_window_exceeded"), ASK, PREFIX),
    "its token was left": (None, attrs.evolve(HALF, unfinished=Unfinished("token")), ASK, PREFIX),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "turn", "request_", "profile"), WAYS.values(), ids=WAYS)
def test_how_a_turn_goes_on(strategy: Strategy | None, turn: Turn, request_: ModelRequest, profile: Profile) -> None:
    """What was asked for, what the server can, and what cut the turn decide (D0, D4, D5)."""
    assert strategy == strategy_of(turn, request_, profile, final=False)


def test_a_turn_is_made_anew_once() -> None:
    """The second time it is what it is (section 3, step 6)."""
    turn = cut(CALL)

    assert "restart_bigger" == strategy_of(turn, ASK, BIGGER, final=False)
    assert None is strategy_of(turn, continuing(ASK, BIGGER, turn, "restart_bigger"), BIGGER, final=False)


def test_a_final_call_keeps_to_its_own_rules() -> None:
    """A cap that the caller set ends it (F8), and its calls are none."""
    assert "exact_prefix" == strategy_of(HALF, ASK, PREFIX, final=True)
    assert "exact_prefix" == strategy_of(HALF, asked(max_tokens=10), PREFIX, final=False)
    assert None is strategy_of(HALF, asked(max_tokens=10), PREFIX, final=True)
    assert None is strategy_of(cut(CALL), ASK, BIGGER, final=True)


def test_the_last_request_decides_whether_the_window_is_full() -> None:
    """The sum over all of them counts the prompt once for each."""
    turn = attrs.evolve(HALF, usage=TEN + TEN, hops=(Hop(None, "length", TEN), Hop(None, "length", TEN)))

    assert "exact_prefix" == strategy_of(turn, ASK, attrs.evolve(PREFIX, context_window=41), final=False)


@pytest.mark.parametrize("strategy", ["exact_prefix", "user_turn", "resend"])
def test_the_request_holds_the_turn_so_far(strategy: Any) -> None:
    """It stands behind everything else; where the model is asked in words, the words are last."""
    request = continuing(asked(tail="be brief"), PREFIX, HALF, strategy)
    words = [UserMessage(CONTINUE_TEXT)] if strategy == "user_turn" else []

    assert Resume(HALF.parts, strategy) == request.resume
    assert [GO, UserMessage("be brief"), AssistantMessage(HALF.parts), *words] == request.conversation()


def test_a_turn_made_anew_has_a_bigger_cap() -> None:
    """Nothing else of its request changes; and the cap is never made smaller after it."""
    request = continuing(ASK, BIGGER, cut(CALL), "restart_bigger")

    assert asked(max_tokens=99) == request
    assert (10, 99, 99) == (cap_of(ASK, BIGGER), cap_of(request, BIGGER), cap_of(continuing(request, BIGGER, HALF, "user_turn"), BIGGER))  # fmt: skip


def test_a_token_is_not_presented_here() -> None:
    """It is the model's own, within its call (B1)."""
    with pytest.raises(ValueError, match="within its call"):
        continuing(ASK, PREFIX, HALF, "token")


def joined(kept: Turn, piece: Turn, strategy: Any) -> Turn:
    return join(kept, piece, continuing(ASK, PREFIX, kept, strategy), strategy)


def test_texts_are_joined_with_nothing_between() -> None:
    """One text, the usage of both, the end of the last."""
    first = with_first_hop(attrs.evolve(HALF, response="r1"), "exact_prefix")
    second = cut(TextPart(" and"), TextPart(" half"), finish="stop", usage=Usage(40, 1, 0, 5, 0, True), response="r2")
    turn = joined(first, second, "exact_prefix")

    assert (TextPart("half and half"),) == turn.parts
    assert ("stop", "stop", "r2", "complete") == (turn.finish, turn.raw_finish, turn.response, turn.end)
    assert (Usage(70, 1, 0, 15, 0, True), 41) == (turn.usage, turn.context_tokens)
    assert (
        Hop("r1", "length", TEN, "exact_prefix"),
        Hop("r2", "stop", second.usage, "exact_prefix"),
    ) == turn.hops


def test_calls_that_were_cut_off_are_counted_together() -> None:
    """Of all pieces (T2)."""
    turn = joined(attrs.evolve(HALF, dropped_calls=1), cut(TextPart("!"), dropped_calls=2), "exact_prefix")

    assert 3 == turn.dropped_calls


def test_hops_of_the_model_are_counted_with_its_own() -> None:
    """A call that took several requests has several; how it went on is told of the first of them."""
    inner = (Hop("a", "requires", TEN), Hop("b", "length", TEN))
    first = attrs.evolve(HALF, hops=inner)
    second = cut(TextPart("!"), finish="stop", hops=inner, context_tokens=7)
    turn = joined(with_first_hop(first, "exact_prefix"), second, "exact_prefix")

    assert (*inner, Hop("a", "requires", TEN, "exact_prefix"), inner[1]) == turn.hops
    assert 7 == turn.context_tokens


def test_what_the_model_repeats_is_dropped() -> None:
    """Where it was asked in words, over several parts; where the server went on by itself, nothing is."""
    kept = cut(TextPart("It was the best of times"))
    piece = cut(TextPart("the best "), TextPart("of times, it was"), finish="stop")

    assert "It was the best of times, it was" == joined(kept, piece, "user_turn").text
    assert "It was the best of timesthe best of times, it was" == joined(kept, piece, "exact_prefix").text


def test_what_was_signed_for_another_request_is_not_kept_as_signed() -> None:
    """Reasoning stays, without its signature; items that stand for themselves go, those of a call stay with it."""
    own, alone, of_call = ReasoningPart("first", "s1"), OpaquePart("x", "{}"), OpaquePart("x", "{}", "c")
    kept = cut(own, alone, TextPart("half"))
    piece = cut(ReasoningPart("more", "s2"), alone, TextPart(" done"), of_call, CALL, finish="tool_calls")

    assert (own, alone, TextPart("half"), ReasoningPart("more"), TextPart(" done"), of_call, CALL) == joined(
        kept, piece, "exact_prefix"
    ).parts


def test_a_turn_that_was_paused_is_kept_as_it_came() -> None:
    """The server wants its own turn back, item by item."""
    kept = cut(TextPart("a"), OpaquePart("x", "1"), finish="paused")
    piece = cut(ReasoningPart("b", "s"), OpaquePart("x", "2"), TextPart("c"), finish="stop")

    assert kept.parts + piece.parts == joined(kept, piece, "resend").parts


def test_a_piece_made_anew_takes_its_place() -> None:
    """Of the one before nothing is left but what it used; what was before that one stays."""
    request = continuing(ASK, BIGGER, HALF, "user_turn")
    turn = attrs.evolve(with_first_hop(cut(TextPart("half then"), CALL), "user_turn"), dropped_calls=2)
    kept = kept_of(turn, request, "restart_bigger")
    anew = join(kept, cut(TextPart(" whole"), finish="stop"), continuing(request, BIGGER, turn, "restart_bigger"), "restart_bigger")  # fmt: skip

    assert (HALF.parts, 0) == (kept.parts, kept.dropped_calls)
    assert ((TextPart("half whole"),), TEN + TEN, 2) == (anew.parts, anew.usage, len(anew.hops))
    assert () == kept_of(cut(CALL), ASK, "restart_bigger").parts
    assert turn == kept_of(turn, request, "user_turn")


@pytest.mark.parametrize(
    ("finish", "ends_as"),
    [("stop", "stop"), ("malformed", "length"), ("tool_calls", "length"), ("other", "length"), (None, "length"), ("content_filter", "content_filter"), ("length", "length")],
)  # fmt: skip
def test_a_piece_with_nothing_in_it(finish: Any, ends_as: Finish) -> None:
    """It ends the turn only if it says so: one that cannot be read, or ends for no known reason, leaves it cut."""
    turn = joined(HALF, cut(finish=finish), "exact_prefix")

    assert (ends_as, "half") == (turn.finish, turn.text)


def test_a_piece_that_was_lost() -> None:
    """The turn is lost too, with all its text; a request that brought nothing at all is one of its hops."""
    turn = joined(HALF, cut(TextPart(" an"), finish="stop", end="lost"), "exact_prefix")
    gone = lose(with_first_hop(HALF, "user_turn"), "user_turn")

    assert ("lost", "half an", "lost") == (turn.end, turn.text, turn.hops[-1].status)
    assert ("length", Hop(None, "lost", UNKNOWN_USAGE, "user_turn")) == (gone.finish, gone.hops[-1])
    assert (40, False) == (gone.usage.total_tokens, gone.usage.complete)


def test_the_word_for_an_end() -> None:
    """The vendor's own, else the common one."""
    assert ["max_tokens", "length", "unknown", "lost"] == [
        status_of(turn)
        for turn in (
            cut(raw="max_tokens"),
            Turn(finish="length"),
            Turn(),
            Turn(finish="stop", end="lost"),
        )
    ]
