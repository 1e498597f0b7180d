"""What must hold of the cases about messages that are none, or too big."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import attrs

from actors.gateway import Principal
from actors.tools import tool
from protocol.events import RunFinished
from protocol.wire import WireLimits
from tests.actors.gateway.wired import Client, last_number, numbers_are_whole
from tests.support.play import Stage
from tests.support.specs import agent

from .claims import claim
from .gateway.person import Person
from .gateway.place import Place, at_a_gateway
from .gateway.scenes import WORDS, errors_logged, talker
from .model import CaseModel, rule_of
from .program import CASES, GATEWAY_CALL_SECONDS


@claim("GTW-09", "A gets an error reply or a close of its own connection only; B is unaffected")
def nonsense_harms_its_sender_alone() -> None:
    texts = [re.fullmatch(r"client A sends: (.*)", told) for told in CASES["GTW-09"]["input"]["actions"]]
    (text,) = [found[1] for found in texts if found]
    assert "{not json" == text

    async def scene(stage: Stage, place: Place) -> tuple[Any, Any, Any, Person]:
        one = await stage.spawn(talker())
        a, b = await place.hall.connect("somebody"), place.person("B")
        await b.come(one.id)
        await b.start(one.id, "go", idem="m1")
        await a.socket.send_message(text)
        await a.read()
        after = await a.ask("ping")
        await a.socket.send_message(b"\xff\xfe")
        closed = await a.closed()
        assert one.current is not None
        await b.until(lambda: True if b.all(RunFinished) else None)
        return a.replies[None]["error"], after, closed, b

    with errors_logged() as errors:
        error, after, closed, b = at_a_gateway(scene)

    assert (-32700, {}) == (error["code"], after)
    assert 1003 == closed[0]
    assert (1, WORDS) == (b.client.statistics().connections, b.only(RunFinished).summary.text)
    assert [] == errors


@functools.cache
def nonsense() -> tuple[list[tuple[str, Any, int]], Any]:
    """GTW-10: each message with the id and the code of its answer, and the answer to the good one."""
    *bad, good = CASES["GTW-10"]["input"]["actions"]
    assert "then a valid request q2" == good

    async def scene(_stage: Stage, place: Place) -> tuple[list[tuple[str, Any, int]], Any]:
        client: Client = await place.hall.connect("somebody")
        answers: list[tuple[str, Any, int]] = []
        for told in bad:
            text = told.removeprefix("send ")
            json.loads(text)
            await client.socket.send_message(text)
            before = len(client.order)
            await client.read()
            (answer,) = client.order[before:]
            answers.append((text, answer["id"], answer["error"]["code"]))
        return answers, await client.reply(await client.send("ping", id="q2"))

    return at_a_gateway(scene)


@claim("GTW-10", "each bad message gets an error reply (with id q1 where given)")
def nonsense_is_answered() -> None:
    answers, _ = nonsense()

    assert [
        ("null", None, -32600),
        ("[1,2,3]", None, -32600),
        ("5", None, -32600),
        ("{}", None, -32600),
        ('{"type":42}', None, -32600),
        ('{"type":"no_such_command","id":"q1"}', "q1", -32600),
    ] == answers


@claim("GTW-10", "q2 is answered on the same connection")
def nonsense_closes_nothing() -> None:
    _, good = nonsense()

    assert {} == good


@attrs.frozen
class Sizes:
    """GTW-16: messages at the limit and above it, and an event above the client's own."""

    too_big: tuple[int, str | None]
    """The code and reason with which that connection was closed."""
    just_fits: Any
    """The reply."""
    text: str
    """Of the run whose client watched on."""
    frames: list[int]
    """The sizes of those that came while the tool's output did."""
    told: str
    """The output, as it was sent."""
    whole: bool
    """Whether the numbers that came with it had no gap."""


@functools.cache
def sizes() -> Sizes:
    told = CASES["GTW-16"]["input"]
    limits = WireLimits(message_bytes=told["config"]["max_message_bytes"])
    above, at = [int(size) for size in re.findall(r"client sends (\d+) bytes", " ".join(told["actions"][:2]))]
    megabytes, own_limit = re.findall(r"(\d+) Mi?B", told["actions"][2])

    async def produce() -> str:
        return "x" * (int(megabytes) * 1_000_000)

    async def scene(stage: Stage, place: Place) -> Sizes:
        one = await stage.spawn(talker())
        b = place.person("B")
        await b.come(one.id)
        await b.start(one.id, "go", idem="m1")
        a, other = await place.hall.connect("somebody"), await place.hall.connect("else")
        await a.socket.send_message(padded("a1", above))
        too_big = await a.closed()
        await other.socket.send_message(padded("a1", at))
        just_fits = await other.reply("a1")
        await b.until(lambda: True if b.all(RunFinished) else None)

        turns: list[Any] = [{"calls": [["c1", "t", {}]]}, {"text": "done"}]
        big = agent(
            CaseModel(rule_of(turns), seconds=GATEWAY_CALL_SECONDS),
            tool(produce, name="t", description="Produces much."),
            max_tool_output_chars=10_000_000,
        )
        producer = await stage.spawn(big)
        client = await place.hall.connect(Principal("narrow"), max_message_size=int(own_limit) * 2**20)
        await client.ask("agent.attach", agent=producer.id, from_="start")
        await client.ask("run.start", agent=producer.id, prompt="go", idem="m1")
        await client.read_until(client.saw(producer.id, "run_finished"))
        events = client.events(producer.id)
        (finished,) = [event for _, event in events if event["type"] == "tool_finished"]
        return Sizes(
            too_big,
            just_fits,
            b.only(RunFinished).summary.text,
            [len(frame.encode()) for frame in client.frames],
            finished["text"],
            numbers_are_whole(events, 0) and last_number(events) == producer.stream.end,
        )

    return at_a_gateway(scene, limits=limits)


def padded(id: str, size: int) -> str:
    """A ping of so many bytes."""
    empty = json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"padding": ""}})
    return empty.replace('"padding": ""', f'"padding": "{"x" * (size - len(empty))}"')


@claim(
    "GTW-16",
    "first: close code 1009 (or error reply) on that connection only, run unaffected; second: accepted",
)
def the_limit_is_exact() -> None:
    came = sizes()

    assert 1009 == came.too_big[0]
    assert came.too_big[1]
    assert {} == came.just_fits
    assert WORDS == came.text


@claim("GTW-16", "third: frames to clients stay below a documented size (output cut or paged)")
def no_frame_is_too_big() -> None:
    came = sizes()

    assert max(came.frames) <= WireLimits().frame_bytes == 2**20
    assert came.whole
    assert 1000 < len(came.told) < 2**20
    assert came.told.strip("x") != ""  # it says that it was cut
