"""What must hold of the cases about the shape of requests, finish reasons and usage, beyond their checks."""

from __future__ import annotations

import json
from typing import Any

import trio

from protocol.events import RunFinished, StepFinished, ToolRequested
from protocol.history import repair
from protocol.model import ModelRequest
from protocol.turns import AssistantMessage, Message, ToolMessage, UserMessage
from tests.actors.models._wire import Network
from tests.support.play import Stage, perform

from .claims import answered, called, claim, results_in
from .claims_wire_stream import cause, only, steps
from .program import Gate, input_of
from .runner import run_case
from .wire.models import model_of, stored_before
from .wire.server import CaseServer
from .wire.speech import data


def sent(messages: list[Message], wire: str) -> Any:
    """The body of the request that a conversation makes on a wire; a strict server has nothing against it."""
    told = {"level": "client", "wire": wire, "turns": [{"text": "ok"}]}
    served = CaseServer(wire, told)

    async def scene(stage: Stage) -> None:
        async with trio.open_nursery() as nursery:
            network = Network(nursery)
            network.server.replies.append(served)
            await model_of(told, network).turn(ModelRequest(messages=messages), lambda _event: None)
            nursery.cancel_scope.cancel("it has been sent")

    perform(scene)

    assert [] == served.faults
    return served.bodies[0]


def blocks(body: Any, place: int) -> list[Any]:
    """The blocks of a message on the Anthropic wire."""
    content = body["messages"][place]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@claim("DNG-03", "the orphan result is dropped or turned into plain text; it is not sent as a tool result")
def an_orphan_is_not_sent() -> None:
    came = only("DNG-03")

    assert "ghost" not in json.dumps(came.served.bodies)
    assert "tool_result" not in json.dumps(came.served.bodies)
    assert "next" in blocks(came.served.bodies[0], -1)[-1]["text"]


@claim("DNG-03", "repairing twice gives the same history (idempotent)")
def repair_is_idempotent() -> None:
    once = repair(stored_before(input_of("DNG-03")))

    assert once == repair(once)
    assert [UserMessage("q")] == once


@claim("DNG-06", "the next request holds one function_call_output for fc1 placed before the new user item")
def the_output_comes_first() -> None:
    items = only("DNG-06").served.bodies[1]["input"]
    kinds = [item.get("type", item.get("role")) if "call_id" in item else item["role"] for item in items]

    assert ["user", "function_call", "function_call_output", "user"] == kinds
    assert ("fc1", "fc1") == (items[1]["call_id"], items[2]["call_id"])
    assert "never mind" in json.dumps(items[3])


@claim("ORD-02", "the user message after the calls starts with the two result blocks, NOTE comes after both")
def results_lead() -> None:
    body = only("ORD-02").served.bodies[1]
    last = blocks(body, -1)

    assert ["tool_result", "tool_result", "text"] == [block["type"] for block in last]
    assert ["a", "b"] == [block["tool_use_id"] for block in last[:2]]
    assert "NOTE" in last[2]["text"]


@claim("ORD-04", "serialized as: assistant, tool(c1), user('mail arrived')")
def results_come_before_what_is_said() -> None:
    body = sent(repair(stored_before(input_of("ORD-04"))), "openai-chat")
    last = [(m["role"], m.get("tool_call_id"), m["content"]) for m in body["messages"][-3:]]

    assert ("assistant", None) == last[0][:2]
    assert [("tool", "c1", "1"), ("user", None, "mail arrived")] == last[1:]


@claim("ORD-04", "same input on the anthropic wire: tool_result block first, then text block")
def on_the_other_wire_too() -> None:
    body = sent(repair(stored_before(input_of("ORD-04"))), "anthropic")

    assert ["tool_result", "text"] == [block["type"] for block in blocks(body, -1)]


@claim("PAR-07", "no request contains an assistant message with more than 128 calls")
def no_more_than_the_server_takes() -> None:
    body = only("PAR-07").served.bodies[1]

    assert [128] == [len(message["tool_calls"]) for message in body["messages"] if "tool_calls" in message]


@claim("PAR-07", "every call kept in the request has its result; calls dropped from the turn have none")
def kept_calls_have_results() -> None:
    came = only("PAR-07")
    kept = [f"c{number}" for number in range(128)]

    assert kept == called(came.messages) == [id for id, _ in answered(came.messages)]
    assert {"t": 128} == came.tool_runs
    assert [72, 0] == [event.dropped_calls for event in came.last.all(StepFinished)]


@claim("IDS-01", "two non-empty distinct ids are made up and used for call and result alike")
def ids_are_made_up() -> None:
    came = only("IDS-01")
    assistant, *results = came.served.bodies[1]["messages"][1:]
    ids = [call["id"] for call in assistant["tool_calls"]]

    assert (2, True) == (len(set(ids)), all(ids))
    assert ids == [result["tool_call_id"] for result in results]
    assert ids == [event.call for event in came.last.all(ToolRequested)]


@claim("IDS-01", "both results 1 and 2 are in request 2")
def no_result_is_lost() -> None:
    assert ["1", "2"] == [message["content"] for message in only("IDS-01").served.bodies[1]["messages"][2:]]


@claim("IDS-07", "the made-up id is stored once and reused: tool_call_id equals tool_calls[0].id and is not empty")
def an_id_crosses_the_wires() -> None:
    answer = {
        "json": {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}
    }
    came = only("IDS-07", ("http", [*input_of("IDS-07")["http"], answer]))
    assistant, result = sent(list(came.messages[:3]), "openai-chat")["messages"][1:3]

    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] != ""
    assert [result["tool_call_id"]] == called(came.messages)


@claim("ARG-07", "t gets n=3")
def an_object_is_as_good_as_its_text() -> None:
    assert [("t", {"n": 3})] == only("ARG-07").tools.received


@claim("ARG-07", "in request 2 arguments is a string holding a JSON object")
def arguments_are_sent_as_text() -> None:
    (call,) = only("ARG-07").served.bodies[1]["messages"][1]["tool_calls"]

    assert {"n": 3} == json.loads(call["function"]["arguments"])


@claim(
    "TRU-02",
    "because output tokens equal the cap and the JSON is unterminated, the error text says truncated, not just invalid"
    " JSON",
)
def cut_is_not_invalid() -> None:
    (result,) = results_in(only("TRU-02").asked[1].messages)

    assert "cut by the token limit" in result.text
    assert [] == only("TRU-02").tools.written


@claim("TRU-11", "the second run answers 'fine'")
def the_session_goes_on() -> None:
    came = only("TRU-11")

    assert ("fine", 2) == (came.played[1].result.text, len(came.played))


def ends_with(id: str, old: str, new: str) -> list[Any]:
    return [step.replace(old, new) for step in steps(id)]


@claim("FIN-05", "variant: stop_reason 'brand_new_reason' is kept verbatim, does not crash and is not retried")
def a_new_reason_is_kept() -> None:
    came = only("FIN-05", ("http.0.sse", ends_with("FIN-05", '"refusal"', '"brand_new_reason"')))

    assert 1 == len(came.served.bodies)
    assert "brand_new_reason" in str(cause(came))


@claim("FIN-07", "the reason SAFETY is in the result")
def what_blocked_it_is_said() -> None:
    (end,) = only("FIN-07").last.all(RunFinished)

    assert "SAFETY" in str(end.summary.stop_reason)


@claim("FIN-07", "variant: candidate with finishReason RECITATION and no content behaves alike")
def blocked_by_its_candidate() -> None:
    came = only("FIN-07", ("http.0.sse", [data({"candidates": [{"finishReason": "RECITATION"}]})]))

    assert (1, "blocked") == (len(came.served.bodies), came.outcome)
    assert "RECITATION" in str(came.last.only(RunFinished).summary.stop_reason)


@claim("FIN-08", "with malformed_call_retries 0: outcome error naming the reason, not answer")
def malformed_is_no_answer() -> None:
    came = only("FIN-08", ("config.malformed_call_retries", 0))

    assert ("error", 1) == (came.outcome, len(came.served.bodies))
    assert "MALFORMED_FUNCTION_CALL" in str(came.last.error) + str(cause(came))


@claim("FIN-08", "with a server that always does this, the number of requests is bounded")
def malformed_for_ever_has_an_end() -> None:
    came = only("FIN-08", ("http", [input_of("FIN-08")["http"][0]] * 20))

    assert ("error", 2) == (came.outcome, len(came.served.bodies))


@claim("FIN-10", "usage 7/3 is counted")
def a_cut_answer_is_paid_for() -> None:
    usage = only("FIN-10").last.result.usage

    assert (7, 3) == (usage.input_tokens, usage.output_tokens)


@claim("FIN-15", "request 2 has no tool_calls key on the first assistant message")
def no_empty_list() -> None:
    assert {"role": "assistant", "content": "hi"} == only("FIN-15").served.bodies[1]["messages"][1]


@claim("FIN-15", "variant: tool_calls null in the response")
def null_is_none() -> None:
    came = only("FIN-15", ("http.0.json.choices.0.message.tool_calls", None))

    assert {"role": "assistant", "content": "hi"} == came.served.bodies[1]["messages"][1]


@claim("FIN-16", "the raw reason end_turn is kept for diagnosis")
def the_reason_is_kept() -> None:
    assert "stop" == only("FIN-16").last.result.finish_reason
    assert "end_turn" == only("FIN-16").last.result.steps[0].raw_finish_reason


@claim("BUD-06", "total input tokens reported = 2000, uncached = 1200 (on this wire input_tokens excludes cached)")
def cached_input_is_counted_once() -> None:
    usage = only("BUD-06").last.result.usage

    assert (2000, 1200, 500, 300) == (
        usage.input_tokens,
        usage.uncached_input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )


@claim("BUD-08", "several message_delta events: the last value counts, nothing is summed")
def the_last_report_counts() -> None:
    usage = only("BUD-08").last.result.usage

    assert (25, 15) == (usage.input_tokens, usage.output_tokens)


@claim("BUD-10", "usage after the finish chunk is still read")
def usage_after_the_end() -> None:
    usage = only("BUD-10").last.result.usage

    assert (7, 4, True) == (usage.uncached_input_tokens, usage.cache_read_tokens, usage.complete)


@claim("BUD-11", "the request asks for usage in streams (stream_options.include_usage)")
def usage_is_asked_for() -> None:
    assert all(body["stream_options"] == {"include_usage": True} for body in only("BUD-11").served.bodies)


@claim(
    "BUD-11",
    "missing usage is recorded as unknown and an estimate is charged (not 0): the run is stopped after a handful of"
    " calls",
)
def what_is_not_reported_is_charged() -> None:
    came = only("BUD-11")

    assert 1 <= len(came.served.bodies) <= 5
    assert (None, False) == (came.last.result.usage.output_tokens, came.last.result.usage.complete)


@claim("BUD-11", "usage explicitly reported as 0 stays 0")
def nothing_reported_is_not_reported_nothing() -> None:
    zero = {"json": {"choices": [{"finish_reason": "stop", "message": {"content": "x" * 40}}], "usage": ZERO}}
    twice = {"continue_when": "asks for the next answer, 2 times"}
    came = only("BUD-11", ("http", [zero] * 3), ("hooks", twice))

    assert ("answer", 3) == (came.outcome, len(came.served.bodies))
    assert (0, 0, True) == (
        came.last.result.usage.input_tokens,
        came.last.result.usage.output_tokens,
        came.last.result.usage.complete,
    )


ZERO = {"prompt_tokens": 0, "completion_tokens": 0}


@claim("PRV-01", "request 2 has one content with exactly 3 functionResponse parts, in call order")
def results_share_one_content() -> None:
    last = only("PRV-01").served.bodies[1]["contents"][-1]

    assert 3 == len(last["parts"])
    assert ["1", "2", "3"] == [_only_value(part["functionResponse"]["response"]) for part in last["parts"]]


def _only_value(response: dict[str, Any]) -> str:
    (value,) = response.values()
    return str(value)


@claim(
    "PRV-02",
    "when fc2 is removed from history, rs2 is removed with it; or fc2 stays with a not-run output and rs2 stays before"
    " it",
)
def reasoning_lives_with_its_call(gate: Gate) -> None:
    (came,) = run_case("PRV-02", gate)
    items = came.served.bodies[2]["input"]
    kinds = [
        item.get("id") or item.get("call_id") for item in items if item.get("type") in {"reasoning", "function_call"}
    ]

    assert ["rs1", "rs2"] == [item["id"] for item in items if item.get("type") == "reasoning"]
    assert 4 == len(kinds)
    assert ["fc1", "fc2"] == [item["call_id"] for item in items if item.get("type") == "function_call_output"]


@claim("PRV-04", "request 2 repeats the three blocks unchanged, in order, before tool_use a")
def thinking_is_repeated() -> None:
    turn = blocks(only("PRV-04").served.bodies[1], 1)

    assert [
        {"type": "thinking", "thinking": "", "signature": "S1"},
        {"type": "redacted_thinking", "data": "D"},
        {"type": "thinking", "thinking": "b", "signature": "S2"},
    ] == turn[:3]
    assert ("tool_use", "a") == (turn[3]["type"], turn[3]["id"])


@claim("PRV-04", "in the variant the unsigned thinking block is not sent back")
def what_is_not_signed_is_not_sent() -> None:
    cut = [
        _event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": {}}),
        _event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        _event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"}),
        _event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"output_tokens": 3}),
        _event("message_stop"),
    ]
    replies = [{"sse": cut}, {"sse": "(normal answer 'ok')"}]
    again = {"when": "run_ended", "do": "user_message", "text": "again"}
    came = only("PRV-04", ("http", replies), ("actions", [again]))

    assert 2 == len(came.served.bodies)
    assert "thinking" not in json.dumps(came.served.bodies[1])


def _event(type: str, **fields: Any) -> str:
    return data({"type": type, **fields}, type)


@claim("PRV-05", "no text block in any request is empty or only white space where the wire forbids it")
def no_empty_text() -> None:
    came = only("PRV-05")
    texts = [
        block["text"]
        for body in came.served.bodies
        for place in range(len(body["messages"]))
        for block in blocks(body, place)
        if block["type"] == "text"
    ]

    assert 4 == len(came.served.bodies)
    assert all(text.strip() for text in texts)
    assert [AssistantMessage, ToolMessage] == [type(message) for message in came.messages[-3:-1]]
