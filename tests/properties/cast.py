"""Who acts in a world besides the engine: the model that speaks its turns, and its tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from actors import Agent, AgentSpec
from actors.agent import ask_agent, current_run
from actors.tools import Tool, external_tool, tool
from protocol.errors import ContextOverflow, FailRun, ModelError, ModelUnreachable, RunOver, StopRun
from protocol.model import CallDelta, ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import Part, TextPart, ToolCall, Turn, UserMessage
from protocol.usage import UNKNOWN_USAGE, Usage
from tests.support.strict import request_faults

from .truth import HELPER_PROMPT, Asked, Entered, Truth
from .world import Call, Does, Say, World

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "o": {"type": "object"}},
    "required": ["n"],
    "additionalProperties": False,
}
BIGGER_CAP = 30
LOOP: list[Any] = []
LOOP.append(LOOP)
ODD: tuple[Any, ...] = (None, "", 0, {}, float("nan"), "\ud800", "x" * 9000, {"s": {1}}, b"\xff", object(), LOOP, dict)


@attrs.define(eq=False)
class ScriptModel:
    """Speaks the turns of a world, to each run from the first one on; refuses what a strict server refuses."""

    world: World
    truth: Truth
    name: str = "script"
    places: dict[str, int] = attrs.field(factory=dict)

    @property
    def profile(self) -> Profile:
        settings = self.world.settings
        return Profile(
            keeps_tools_when_off=settings.keeps_tools,
            flatten_without_tools=settings.flatten,
            reports_sending=settings.reports_sending,
            continues_text=settings.continues_text,
            default_max_tokens=3 if settings.bigger_cap else None,
            max_output_tokens=BIGGER_CAP,
        )

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        truth = self.truth
        helps = request.messages == (UserMessage(HELPER_PROMPT),) or (request.system or "").startswith("You condense")
        say = Say("sum", seconds=0.5) if helps else self._next()
        asked = truth.ask(request, say)
        asked.helps = helps
        if not self.profile.reports_sending:
            truth.send(asked)
        if say.fails == "unsent":
            await trio.lowlevel.checkpoint()
            raise ModelUnreachable("nobody there")
        if self.profile.reports_sending:
            truth.send(asked)
            emit(RequestSent())
        truth.faults += request_faults(request, self.profile)
        if say.fails == "overflow" and len(request.messages) > 1:
            raise ContextOverflow("too long", status=400)
        if say.fails == "before":
            raise ModelError("refused")
        return await self._speak(say, asked, emit)

    def _next(self) -> Say:
        context = current_run.get()
        assert context is not None
        if not self.truth.wild:
            return Say("second")
        place = self.places.get(context.run, 0)
        self.places[context.run] = place + 1
        turns = self.world.turns
        if self.world.again and turns:
            return turns[place % len(turns)]
        return turns[place] if place < len(turns) else Say("done")

    async def _speak(self, say: Say, asked: Asked, emit: ModelEmit) -> Turn:
        for piece in (say.text[:2], say.text[2:]):
            if piece:
                asked.shown += piece
                emit(TextDelta(piece))
            await trio.sleep(say.seconds / 2)
        usage = UNKNOWN_USAGE
        if say.usage is not None:
            usage = Usage(say.usage, 0, 0, 3 if say.usage else 0, 0, True)
        text: tuple[Part, ...] = (TextPart(say.text),) if say.text else ()
        if say.fails == "after":
            asked.usage = usage
            raise ModelError("broke off", partial=Turn(text, usage=usage, end="lost"))
        if say.fails == "foreign":
            raise ValueError("no model error")
        calls = tuple([self._call(wanted, asked) for wanted in say.calls])
        for index, call in enumerate(calls):
            emit(CallDelta(index, call.arguments, call.name))
        finish: Any = say.finish
        if finish == "auto":
            finish = "tool_calls" if calls else "stop"
        raw = "strange" if finish == "other" else finish
        turn = Turn((*text, *calls), finish, raw, usage, "lost" if say.lost else "complete")
        asked.turn, asked.usage = turn, usage
        return turn

    def _call(self, wanted: Call, asked: Asked) -> ToolCall:
        number = len(self.truth.numbers) + 1
        self.truth.numbers[number] = wanted, asked
        name = "ghost" if wanted.tool < 0 else f"t{wanted.tool % len(self.world.tools)}"
        arguments = {
            "good": {"n": number},
            "bad": {"n": "x"},
            "more": {"n": number, "zz": 1},
            "text": {"n": number, "o": '{"a": 1}'},
            "malformed": [number],
            "object": json.dumps({"n": number}),
        }.get(wanted.args)
        raw = json.dumps(arguments) if arguments is not None else '{"n": 1' if wanted.args == "cut" else ""
        return ToolCall({"new": f"c{number}", "": "", "same": "same"}[wanted.id], name, raw)


def tools_of(world: World, truth: Truth, child: AgentSpec | Agent | None) -> list[Tool]:
    """The tools of a world, `t0` and so on."""
    return [_tool_of(f"t{place}", does, truth, child) for place, does in enumerate(world.tools)]


def _tool_of(name: str, does: Does, truth: Truth, child: AgentSpec | Agent | None) -> Tool:
    settings: dict[str, Any] = {"needs_approval": does.approval, "ends_run": does.ends_run}
    if does.body == "external":
        return external_tool(name, "The caller's.", SCHEMA, **settings)

    async def body(n: int, o: dict[str, int] | None = None) -> Any:
        if not truth.wild:
            return 1
        entered = truth.enter(name, {"n": n} if o is None else {"n": n, "o": o})
        try:
            value = await _BODIES[does.body](does, truth, entered, child)
        except trio.Cancelled:
            entered.how = "cancelled"
            raise
        except BaseException:
            if entered.how == "inside":
                entered.how = "raised"
            raise
        if entered.how == "inside":
            entered.how = "returned"
        return value

    return tool(body, name=name, description="A tool.", timeout_seconds=does.timeout, **settings)


async def _return(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    await trio.sleep(does.seconds)
    return 1


async def _odd(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    await trio.sleep(does.seconds)
    entered.how = "odd"
    return ODD[entered.number % len(ODD)]


async def _raise(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    await trio.sleep(does.seconds)
    raise ValueError("tool")


async def _exit(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    raise SystemExit(3)


async def _stubborn(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    try:
        await trio.sleep(5)
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(does.seconds)


async def _swallow(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    try:
        await trio.sleep(5)
    except trio.Cancelled:  # noqa: ASYNC103
        entered.how = "swallowed"
        return "Status: cancelled"  # noqa: ASYNC104
    return 1


async def _itself(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    with trio.CancelScope() as scope:
        scope.cancel()
        await trio.sleep(does.seconds)
    return "cut"


async def _stop_run(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    await trio.sleep(does.seconds)
    entered.how = "stopped"
    raise StopRun("stopped here")


async def _fail_run(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    await trio.sleep(does.seconds)
    entered.how = "failed"
    raise FailRun("failed here")


async def _agent(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    assert child is not None
    return await ask_agent(child, f"task {entered.number}")


async def _steer(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    assert truth.run is not None
    try:
        truth.run.steer("said by a tool")
    except RunOver:
        truth.fault("the run is over, and a body still runs unmolested")
    await trio.sleep(does.seconds)
    return 1


async def _stop(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    assert truth.run is not None
    truth.run.stop("a tool said so")
    await trio.sleep(does.seconds)
    return 1


async def _cancel(does: Does, truth: Truth, entered: Entered, child: Any) -> Any:
    assert truth.run is not None
    truth.run.cancel("a tool said so")
    truth.cut()
    await trio.sleep(does.seconds)
    return 1


_BODIES: dict[str, Callable[[Does, Truth, Entered, Any], Awaitable[Any]]] = {
    "return": _return,
    "odd": _odd,
    "raise": _raise,
    "exit": _exit,
    "sleep": _return,
    "stubborn": _stubborn,
    "swallow": _swallow,
    "itself": _itself,
    "stop_run": _stop_run,
    "fail_run": _fail_run,
    "agent": _agent,
    "steer": _steer,
    "stop": _stop,
    "cancel": _cancel,
}
