"""The cases' words for what clients of a gateway do."""

from __future__ import annotations

import re

import msgspec
import trio

from actors.client import Position
from protocol.codec import digest_of
from protocol.events import TERMINAL_EVENTS, ApprovalRequired, RunStarted
from protocol.wire.commands import AgentAttach, RequestList, RunCancel
from protocol.wire.replies import Attached, Decided, Nothing, Requests, Started

from .clients import REMOTE, At
from .person import Person, Request

DECISIONS = {"approve": "approve", "decline": "deny"}
"""A case's word for a decision about a call, and the wire's."""


def ends_of(person: Person) -> list[str]:
    """The ends of runs that somebody has seen."""
    return [item.event.run for item in person.received if isinstance(item.event, TERMINAL_EVENTS)]


async def see_the_end(person: Person, runs: int) -> None:
    """Wait until somebody has seen so many runs end."""
    await person.until(lambda: True if len(ends_of(person)) >= runs else None)


# ---------------------------------------------------------------- decisions


@REMOTE.says(r"approve|decline")
async def _decide(at: At) -> None:
    where = at.action.get("request") or at.action["when"]
    found = re.fullmatch(r"the request for (\w+)|the one of (\w+)|approval_prompt:(\w+)", where)
    assert found, where
    request = await at.person().request(found[found.lastindex or 0])
    await at.person().decide(request, DECISIONS[at.told[0]], idem=at.idem())


@REMOTE.says(r"clients A and B approve the same request in the same tick")
async def _both_approve(at: At) -> None:
    await at.person("B").come(at.agent)
    async with trio.open_nursery() as nursery:
        for name in ("A", "B"):
            request = await at.person(name).request()
            nursery.start_soon(_approve, at.person(name), request, at.idem())


async def _approve(person: Person, request: Request, idem: str) -> None:
    await person.decide(request, "approve", idem=idem)


@REMOTE.says(r"(\w+ c\d(?:, \w+ c\d)*), as \w+ separate messages")
async def _decide_each(at: At) -> None:
    for told in at.told[1].split(", "):
        word, call = told.split()
        await at.person().decide(await at.person().request(call), DECISIONS[word], idem=at.idem())


@REMOTE.says(r"approve the old request|send the approve meant for run 1")
async def _approve_the_old_one(at: At) -> None:
    await at.person().decide(await at.person().request(), "approve", idem=at.idem())
    await at.person().ask("request.list", RequestList(), Requests)


@REMOTE.says(r"approve (without a request id|an unknown request)")
async def _approve_nothing(at: At) -> None:
    request = await at.person().request()
    params = {"decision": "approve", "digest": request.digest, "idem": at.idem()}
    if at.told[1] == "an unknown request":
        params["request"] = "req-of-nobody"
    await at.person().ask("approval.decide", params, Decided)


@REMOTE.says(r"approve (\w+) = (\d+)")
async def _approve_something_else(at: At) -> None:
    """As one who was shown this."""
    request = await at.person().request()
    assert isinstance(request, ApprovalRequired)
    shown = {**request.arguments, at.told[1]: int(at.told[2])}
    digest = digest_of((request.run, request.call, request.name, shown))
    other = msgspec.structs.replace(request, arguments=shown, digest=digest)
    await at.person().decide(other, "approve", idem=at.idem())


@REMOTE.says(r"client sends approve with client_message_id (\w+) and drops the connection before the acknowledgement")
async def _approve_unheard(at: At) -> None:
    request = await at.person().request()
    at.person().lose_what_comes()
    await at.person().decide(request, "approve", idem=at.told[1])


@REMOTE.says(r"client reconnects and sends the same approve with (\w+) again")
async def _approve_again(at: At) -> None:
    assert [] == at.person().said[1:], "the acknowledgement was not lost"
    await at.person().come_back()
    await at.person().decide(await at.person().request(), "approve", idem=at.told[1])


# ---------------------------------------------------------------- runs


@REMOTE.says(r"cancel run(; start run 2)?")
async def _cancel(at: At) -> None:
    person = at.person()
    started = await person.until(lambda: person.all(RunStarted)[-1] if person.all(RunStarted) else None)
    await person.ask("run.cancel", RunCancel(run=started.run, mode="now"), Nothing)
    if at.told[1]:
        await see_the_end(person, 1)
        await person.start(at.agent, "again", idem=at.idem())


@REMOTE.says(r"user_message")
async def _say(at: At) -> None:
    await at.person().start(at.agent, at.action["text"], idem=at.idem())


@REMOTE.says(r"client sends message with client_message_id (\w+)")
async def _say_unheard(at: At) -> None:
    at.person().lose_what_comes()
    at.clients.place.nursery.start_soon(_start, at, "hello", at.told[1])


@REMOTE.says(r"connection drops before the reply")
async def _wait_for_the_drop(at: At) -> None:
    while at.person().client.statistics().connected:  # noqa: ASYNC110  nobody tells of it
        await trio.sleep(0.01)
    assert [] == at.person().said


@REMOTE.says(r"client reconnects and sends (\w+) again, after the first run has already ended")
async def _say_again(at: At) -> None:
    await at.clients.ended()
    await at.person().come_back()
    await _start(at, "hello", at.told[1])


@REMOTE.says(r"client sends (\w+) with a different text")
async def _say_otherwise(at: At) -> None:
    await _start(at, "something else", at.told[1])


@REMOTE.says(r"send (\w+) '(.*)'; the run fails before any text")
async def _say_and_fail(at: At) -> None:
    await _start(at, at.told[2], at.told[1])
    await see_the_end(at.person(), 1)


@REMOTE.says(r"send (\w+) again as a retry")
async def _retry(at: At) -> None:
    await _start(at, at.person().all(RunStarted)[0].prompt, at.told[1])


@REMOTE.says(r"only if the reply says that (\w+) failed: send '(.*)' as (\w+)")
async def _say_as_new(at: At) -> None:
    reply = at.person().said[-1].answer
    if isinstance(reply, Started) and reply.replayed and reply.state == "failed":
        await _start(at, at.told[2], at.told[3])
    await see_the_end(at.person(), 2)


async def _start(at: At, text: str, idem: str) -> None:
    await at.person().start(at.agent, text, idem=idem)


# ---------------------------------------------------------------- connections


@REMOTE.says(r"client A drops the TCP connection")
async def _drop(at: At) -> None:
    await at.person().request()
    await at.person().drop()


@REMOTE.says(r"client B connects, resumes from the last seen event, approves")
async def _take_over(at: At) -> None:
    b = at.person("B")
    position: Position = at.person().position
    await b.come(at.agent, position)
    await b.ask("agent.attach", AgentAttach(agent=at.agent, from_=position), Attached)
    await b.decide(await at.person().request(), "approve", idem=at.idem())


@REMOTE.says(r"last client disconnects")
async def _leave(at: At) -> None:
    await at.person().leave()


@REMOTE.says(r"client connects and resumes")
async def _resume(at: At) -> None:
    await at.person().come(at.agent, at.person().position)


@REMOTE.says(r"client A stops reading; client B reads normally")
async def _stop_reading(at: At) -> None:
    at.person().stop_reading()
    await at.person("B").come(at.agent)
    at.clients.starter = "B"
