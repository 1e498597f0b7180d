"""Traces: what stands below what, what each span says, and how it ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from actors import (
    AgentSpec,
    PendingTool,
    Run,
    Runtime,
    Tool,
    ask_model,
    never,
    open_runtime,
    remote,
    sub_agent,
    tool,
)
from actors.models.scripted import Scripted, call, reply
from actors.telemetry import trace_runtime
from protocol.errors import ModelError, RunError, SpecError, ToolError
from protocol.model import HopBegan, HopEnded, ModelEmit, ModelRequest, Profile, Retrying, TextDelta
from protocol.turns import TextPart, Turn
from protocol.usage import Usage
from tests.actors.telemetry.collected import Collected
from tests.support.scripts import calls_while_on

Clock = trio.testing.MockClock
SECRET = "the-secret-word"


@pytest.fixture
def collected() -> Collected:
    return Collected()


def asks_for(name: str, **arguments: Any) -> Scripted:
    """A model that calls one tool, and answers."""
    return Scripted([reply("", call(name, arguments, id="c1")), "done"], name="openai:gpt-x")


async def run_of(runtime: Runtime, spec: AgentSpec, act: Callable[[Run], object] | None = None) -> Run:
    """A run that has ended, however."""
    agent = await runtime.spawn(spec)
    async with agent.run(f"say {SECRET}") as run:
        if act is not None:
            await trio.testing.wait_all_tasks_blocked()
            act(run)
        with contextlib.suppress(RunError):
            await run.result()
    return run


def inside(collected: Collected) -> Any:
    """A span of a tool's own."""
    return collected.tracers.get_tracer("tool").start_as_current_span("inside")


def of_kind(kind: str, collected: Collected) -> tuple[Tool, dict[str, Any]]:
    """A tool `look` that makes a span, run in one of the ways that there are; and what else the agent needs."""

    async def look() -> str:
        await trio.lowlevel.checkpoint()
        with inside(collected):
            await trio.lowlevel.checkpoint()
        return "seen"

    def look_in_thread() -> str:
        with inside(collected):
            return "seen"

    async def around(_pending: PendingTool, proceed: Callable[..., Awaitable[Any]]) -> Any:
        return await proceed()

    match kind:
        case "timed":
            return tool(look, timeout_seconds=9), {}
        case "thread":
            return tool(look_in_thread, name="look"), {}
        case "around":
            return tool(look), {"around_tool": around}
        case "around a thread":
            return tool(look_in_thread, name="look"), {"around_tool": around}
        case _:
            return tool(look), {}


@pytest.mark.parametrize("kind", ["plain", "timed", "thread", "around", "around a thread"])
async def test_what_a_tool_does_stands_below_its_call(kind: str, collected: Collected) -> None:
    """A span of a tool's own is a child of `execute_tool`, that of `invoke_agent`, and that of the caller's span."""
    look, options = of_kind(kind, collected)
    async with open_runtime() as runtime:
        with collected.of(runtime), collected.tracers.get_tracer("host").start_as_current_span("caller"):
            await run_of(runtime, AgentSpec(name="ann", model=asks_for("look"), tools=[look], **options))
    found = [collected.lineage(span) for span in collected.spans]

    assert [
        ["caller"],
        ["invoke_agent ann", "caller"],
        ["chat gpt-x", "invoke_agent ann", "caller"],
        ["execute_tool look", "invoke_agent ann", "caller"],
        ["inside", "execute_tool look", "invoke_agent ann", "caller"],
        ["chat gpt-x", "invoke_agent ann", "caller"],
    ] == found


async def test_what_a_model_does_stands_below_its_call(collected: Collected) -> None:
    """A span that is made while a model is asked, as by an instrumented HTTP client, is a child of `chat`."""

    async def answer(_request: ModelRequest) -> str:
        with collected.tracers.get_tracer("http").start_as_current_span("POST"):
            await trio.lowlevel.checkpoint()
        return "done"

    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, AgentSpec(name="ann", model=Scripted(answer)))

    assert ["POST", "chat scripted", "invoke_agent ann"] == collected.lineage(collected.only("POST"))


async def test_sub_agents_and_helper_calls_stand_below_the_tool_that_made_them(collected: Collected) -> None:
    """Of a sub-agent its whole run; of `ask_model` the call."""

    async def look() -> str:
        return (await ask_model("what is it?", model=Scripted(["help"], name="helper"))).text

    child = AgentSpec(name="kim", model=asks_for("look"), tools=[tool(look)])
    spec = AgentSpec(name="ann", model=asks_for("ask_kim", task="look"), tools=[sub_agent(child)])
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, spec)
    kim, helper = collected.only("invoke_agent kim"), collected.only("chat helper")

    assert ["invoke_agent kim", "execute_tool ask_kim", "invoke_agent ann"] == collected.lineage(kim)
    assert ("kim",) == (kim.attributes or {})["onward.agent.path"]
    assert ["chat helper", "execute_tool look", *collected.lineage(kim)] == collected.lineage(helper)


async def test_side_by_side_calls_keep_their_spans_apart(collected: Collected) -> None:
    """Tools of one turn that run at the same time are siblings, each with its own children."""

    async def wait(n: int) -> int:
        await trio.sleep(n)
        with inside(collected):
            return n

    model = Scripted([reply("", call("wait", {"n": 0}, id="a"), call("wait", {"n": 0}, id="b")), "done"])
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, AgentSpec(name="ann", model=model, tools=[tool(wait)]))
    tools = [span for span in collected.spans if span.name == "execute_tool wait"]
    parents = {span.parent.span_id for span in collected.spans if span.name == "inside" and span.parent is not None}

    assert {"a", "b"} == {(span.attributes or {})["gen_ai.tool.call.id"] for span in tools}
    assert parents == {span.context.span_id for span in tools if span.context is not None}


async def test_what_a_span_says(collected: Collected) -> None:
    """Names, ids, usage and finish reasons as the conventions call them; nothing that was said, and no error."""
    usage = Usage(10, 5, 2, 7, 3, complete=True)
    model = Scripted([reply("", call("look", {}, id="c1"), usage=usage), reply("done", usage=usage)], name="gemini:x")
    look, _ = of_kind("plain", collected)
    async with open_runtime() as runtime:
        agent = await runtime.spawn(
            AgentSpec(name="ann", model=model, tools=[look], temperature=0.5, max_tokens=99, system=SECRET)
        )
        with collected.of(runtime):
            async with agent.run(SECRET) as run:
                await run.result()
    common = {"gen_ai.agent.name": "ann", "gen_ai.conversation.id": agent.id}
    chat, spans = [span for span in collected.spans if span.name == "chat x"][0], collected.spans
    tokens = {
        "gen_ai.usage.input_tokens": 17,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }

    assert {
        **common,
        **{name: 2 * count for name, count in tokens.items()},
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "x",
        "gen_ai.agent.id": agent.id,
        "gen_ai.response.finish_reasons": ("stop",),
        "onward.run.id": run.id,
        "onward.run.end": "finished",
        "onward.run.stopped_by": "model",
        "onward.run.answered": True,
        "onward.run.llm_calls": 2,
        "onward.run.tool_calls": 1,
    } == dict(collected.only("invoke_agent ann").attributes or {})
    assert {
        **common,
        **tokens,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "x",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.response.finish_reasons": ("tool_calls",),
    } == dict(chat.attributes or {})
    assert {
        **common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
    } == dict(collected.only("execute_tool look").attributes or {})
    assert {StatusCode.UNSET} == {span.status.status_code for span in spans}
    assert SECRET not in "".join(span.to_json() for span in spans)
    assert (SpanKind.INTERNAL, SpanKind.CLIENT) == (collected.only("invoke_agent ann").kind, chat.kind)


async def test_a_model_of_this_process_is_no_client_call(collected: Collected) -> None:
    """A model that hands nothing to a transport has a span of the kind `INTERNAL`, and no vendor but the house."""
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, AgentSpec(name="ann", model=Scripted(["done"], profile=Profile())))
    chat = collected.only("chat scripted")

    assert (SpanKind.INTERNAL, "onward") == (chat.kind, (chat.attributes or {})["gen_ai.provider.name"])


async def forever() -> None:
    await trio.sleep_forever()


async def quick() -> None:
    await trio.lowlevel.checkpoint()


async def fails() -> None:
    raise ToolError(SECRET)


async def slow(_request: ModelRequest) -> str:
    await trio.sleep(10_000)
    return ""


ENDS: dict[str, tuple[dict[str, Any], Callable[[Run], object] | None, tuple[str, str | None], dict[str, str]]] = {
    "declined": (
        {"model": lambda: Scripted(calls_while_on(name="quick")), "max_tool_iterations": 1, "continuation": never()},
        None,
        ("finished", None),
        {},
    ),
    "stopped": (
        {"model": lambda: asks_for("forever"), "tool_timeout_seconds": 5},
        lambda run: run.stop(),
        ("finished", None),
        {"execute_tool forever": "timed_out"},
    ),
    "tool failed": (
        {"model": lambda: asks_for("fails")},
        None,
        ("finished", None),
        {"execute_tool fails": "tool_error"},
    ),
    "cancelled in a tool": (
        {"model": lambda: asks_for("forever")},
        lambda run: run.cancel(),
        ("cancelled", "cancelled"),
        {"execute_tool forever": "cancelled"},
    ),
    "cancelled in a call": (
        {"model": lambda: Scripted(slow)},
        lambda run: run.cancel(),
        ("cancelled", "cancelled"),
        {"chat scripted": "cancelled"},
    ),
    "model failed": (
        {"model": lambda: Scripted([ModelError(SECRET)])},
        None,
        ("failed", "model_error"),
        {"chat scripted": "ModelError"},
    ),
    "broke off": (
        {"model": lambda: Scripted([Turn((TextPart("par"),), end="lost")])},
        None,
        ("failed", "model_reply_error"),
        {"chat scripted": "lost"},
    ),
}


@pytest.mark.parametrize("name", ENDS)
async def test_how_a_span_ends(name: str, collected: Collected, autojump_clock: Clock) -> None:
    """A failure or a cut is an error, with a word for it and no text; a limit, a decline or a stop is none."""
    options, act, (end, error), others = ENDS[name]
    given = {**options, "model": options["model"]()}
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, AgentSpec(name="ann", tools=[tool(forever), tool(fails), tool(quick)], **given), act)
    run = collected.only("invoke_agent ann")
    wrong = {span.name: error_of(span) for span in collected.spans if error_of(span) is not None and span is not run}

    assert (end, error) == ((run.attributes or {})["onward.run.end"], error_of(run))
    assert others == wrong
    assert SECRET not in "".join(span.to_json() for span in collected.spans)


def error_of(span: ReadableSpan) -> object:
    word = (span.attributes or {}).get("error.type")
    assert (word is not None) == (span.status.status_code is StatusCode.ERROR)
    assert span.status.description is None
    return word


async def test_a_tool_that_ignores_its_cancel_does_not_keep_the_span_of_its_run(
    collected: Collected, autojump_clock: Clock
) -> None:
    """The run's span ends with its terminal event, when the grace time is over; the tool's when the tool ends."""
    release = trio.Event()
    ended: list[str] = []

    async def stubborn() -> None:
        with trio.CancelScope(shield=True):
            await release.wait()

    spec = AgentSpec(name="ann", model=asks_for("stubborn"), tools=[tool(stubborn)], cancel_grace_seconds=1)
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, spec, lambda run: run.cancel())
            ended += [span.name for span in collected.spans]
            release.set()
    run = collected.only("invoke_agent ann")

    assert ["invoke_agent ann", "chat gpt-x"] == ended
    assert ("cancelled", "cancelled") == ((run.attributes or {})["onward.run.end"], error_of(run))
    assert "execute_tool stubborn" in [span.name for span in collected.spans]


async def test_a_suspended_run_is_no_failure(tmp_path: Path, collected: Collected, autojump_clock: Clock) -> None:
    """Its span ends when the runtime stops, and says that it goes on; taken up again, it has a span of the same ids."""
    spec = AgentSpec(
        name="ann",
        model=Scripted(calls_while_on(name="quick")),
        max_tool_iterations=1,
        tools=[tool(quick)],
        continuation=remote(),
    )
    journal = tmp_path / "onward.db"
    async with open_runtime(journal=journal) as runtime:
        with collected.of(runtime):
            agent = await runtime.spawn(spec)
            await agent.start("go")
            await trio.testing.wait_all_tasks_blocked(0.1)
    async with open_runtime(journal=journal) as runtime:
        with collected.of(runtime):
            again = await runtime.spawn(spec)
            assert again.brought_back is not None
            await trio.testing.wait_all_tasks_blocked(0.1)
            again.brought_back.cancel()
            await again.brought_back.wait_ended()
    first, second = [span for span in collected.spans if span.name == "invoke_agent ann"]
    ids = [
        ((span.attributes or {})["gen_ai.conversation.id"], (span.attributes or {})["onward.run.id"])
        for span in (first, second)
    ]

    assert ("suspended", None) == ((first.attributes or {})["onward.run.end"], error_of(first))
    assert "cancelled" == (second.attributes or {})["onward.run.end"]
    assert ids[0] == ids[1]


class Hopping:
    """A model that retries, and takes two hops."""

    name, profile = "gemini:x", Profile(reports_sending=True)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        await trio.lowlevel.checkpoint()
        emit(Retrying(1, 0.5, SECRET))
        for hop in (0, 1):
            emit(HopBegan(hop))
            for _ in range(300):
                emit(TextDelta(SECRET))
            emit(HopEnded(hop, SECRET, "completed", Usage(1, None, None, 2)))
        return Turn((TextPart("done"),), "stop", "stop")


async def test_retries_and_hops_are_events_of_their_call(collected: Collected) -> None:
    """In order, with their numbers; pieces of the reply are none, and nothing that the server said stands in them."""
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, AgentSpec(name="ann", model=Hopping()))
    events = [(event.name, dict(event.attributes or {})) for event in collected.only("chat x").events]
    used = {"gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 2}

    assert [
        ("onward.model_retry", {"attempt": 1, "seconds": 0.5}),
        ("onward.hop_started", {"hop": 0, "strategy": "token"}),
        ("onward.hop_finished", {"hop": 0, "status": "completed", **used}),
        ("onward.hop_started", {"hop": 1, "strategy": "token"}),
        ("onward.hop_finished", {"hop": 1, "status": "completed", **used}),
    ] == events
    assert () == collected.only("invoke_agent ann").events
    assert SECRET not in "".join(span.to_json() for span in collected.spans)


async def test_a_text_that_is_continued_is_several_calls(
    collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request is a `chat` of its own, that says how it goes on; the hops are events of the run, which joins them."""
    turns = [reply("The answer is", finish="length"), reply(" forty-two.")]
    spec = AgentSpec(name="ann", model=Scripted(turns), automatic_continuation=True)
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, spec)
    chats = [dict(span.attributes or {}) for span in collected.spans if span.name == "chat scripted"]
    events = [event.name for event in collected.only("invoke_agent ann").events]

    assert [None, "user_turn"] == [chat.get("onward.resume.strategy") for chat in chats]
    assert ["onward.hop_finished", "onward.hop_started", "onward.hop_finished"] == events
    assert [] == caplog.records


async def test_questions_are_events_of_the_run(collected: Collected) -> None:
    """The limit, the question and its answer, with the request's id."""
    model = Scripted(calls_while_on(name="quick"))
    spec = AgentSpec(name="ann", model=model, max_tool_iterations=1, tools=[tool(quick)], continuation=never())
    async with open_runtime() as runtime:
        with collected.of(runtime):
            await run_of(runtime, spec)
    events = {event.name: dict(event.attributes or {}) for event in collected.only("invoke_agent ann").events}

    assert {"limit": "tool_iterations", "used": 1, "max": 1} == events["onward.limit_reached"]
    assert ("declined", "provider") == (
        events["onward.continuation_resolved"]["outcome"],
        events["onward.continuation_resolved"]["by"],
    )
    assert events["onward.continuation_required"]["request"] == events["onward.continuation_resolved"]["request"]


async def test_content_is_there_for_whoever_asks(collected: Collected) -> None:
    """With `capture_content`: what went in and out of models and tools, in bounds."""
    look, _ = of_kind("plain", collected)
    model = Scripted([reply("x" * 100_000, call("look", {}, id="c1")), "done"])
    async with open_runtime() as runtime:
        with collected.of(runtime, capture_content=True):
            await run_of(runtime, AgentSpec(name="ann", model=model, tools=[look], system="be brief"))
    first, second = [dict(span.attributes or {}) for span in collected.spans if span.name == "chat scripted"]
    body = dict(collected.only("execute_tool look").attributes or {})

    assert (
        '[{"role":"user","parts":[{"type":"text","content":"say the-secret-word"}]}]' == first["gen_ai.input.messages"]
    )
    assert '[{"type":"text","content":"be brief"}]' == first["gen_ai.system_instructions"]
    assert '{"type":"tool_call","id":"c1","name":"look","arguments":{}}' in str(first["gen_ai.output.messages"])
    assert len(str(first["gen_ai.output.messages"])) < 10_000
    assert '{"type":"tool_call_response","id":"c1","response":"seen"}' in str(second["gen_ai.input.messages"])
    assert ("{}", "seen") == (body["gen_ai.tool.call.arguments"], body["gen_ai.tool.call.result"])


async def test_of_a_long_conversation_the_newest_is_captured(collected: Collected) -> None:
    """An attribute is bounded: the oldest messages go first."""
    async with open_runtime() as runtime:
        agent = await runtime.spawn(AgentSpec(name="ann", model=Scripted(lambda _: "y" * 8000)))
        with collected.of(runtime, capture_content=True):
            for number in range(12):
                async with agent.run(f"question {number}") as run:
                    await run.result()
    last = str((collected.spans[-1].attributes or {})["gen_ai.input.messages"])

    assert len(last) <= 65_600
    assert "question 11" in last
    assert '"question 0"' not in last


async def test_outside_the_block_nothing_is_traced(collected: Collected) -> None:
    """A run that begins inside is traced to its end; one that begins behind it is not."""
    async with open_runtime() as runtime:
        with collected.of(runtime):
            agent = await runtime.spawn(AgentSpec(name="ann", model=Scripted(lambda _: "done")))
            run = await agent.start("one")
        await run.wait_ended()
        await run_of(runtime, AgentSpec(name="kim", model=Scripted(["done"])))

    assert ["invoke_agent ann", "chat scripted"] == [span.name for span in collected.spans]


async def test_a_runtime_is_traced_once(collected: Collected) -> None:
    """A second trace of a runtime is refused while the first one lasts, and taken after it."""
    async with open_runtime() as runtime:
        with collected.of(runtime), pytest.raises(SpecError, match="already"), trace_runtime(runtime):
            pass
        with collected.of(runtime):
            pass


async def test_without_the_package_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing `actors.telemetry` needs nothing; tracing says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    async with open_runtime() as runtime:
        with pytest.raises(SpecError, match=r"onward\[otel\]"), trace_runtime(runtime):
            pass
