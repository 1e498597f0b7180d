"""Decisions by the seven rules, in their order."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from actors.agent import Agent
from actors.gateway import ALL_ROLES, Principal

from .cast import asker, parent, payer
from .wired import Client, Hall, RefusedError, open_hall

Clock = trio.testing.MockClock


async def asked(hall: Hall, client: Client, agent: Agent) -> dict[str, Any]:
    """Start a run, and wait for the next question."""
    await client.ask("agent.attach", agent=agent.id)
    await agent.start("go")
    known = len(client.requests(agent.id))
    await client.read_until(lambda: len(client.requests(agent.id)) > known)
    return client.requests(agent.id)[-1]


def decision(request: dict[str, Any], /, **changes: Any) -> dict[str, Any]:
    return {
        "request": request["request"],
        "decision": "approve",
        "digest": request["digest"],
        "idem": "i1",
        **changes,
    }


async def resolution(client: Client, agent: Agent, kind: str = "continuation") -> dict[str, Any]:
    await client.read_until(client.saw(agent.id, f"{kind}_resolved"))
    return next(event for _, event in client.events(agent.id) if event["type"] == f"{kind}_resolved")


class TestAccepted:
    async def test_approve(self, autojump_clock: Clock) -> None:
        """The reply says so, and the event says all there is to it, to everybody."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client, other = await hall.connect("ada"), await hall.connect("bob")
            await other.ask("agent.attach", agent=agent.id)
            request = await asked(hall, client, agent)
            told = await client.ask(
                "continuation.decide", **decision(request, message="go on", discard_tool_calls=True, tool_message="no")
            )
            events = [await resolution(one, agent) for one in (client, other)]

        assert {"status": "accepted", "request": request["request"]} == told
        assert events[0] == events[1]
        assert {
            "outcome": "approved",
            "by": "ada",
            "message": "go on",
            "tool_message": "no",
            "granted": 1,
            "discarded": [request["tool_calls"][0]["id"]],
        } == {key: events[0].get(key) for key in ("outcome", "by", "message", "tool_message", "granted", "discarded")}

    async def test_decline(self, autojump_clock: Clock) -> None:
        """What goes with an approval alone is looked at for its type only."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            request = await asked(hall, client, agent)
            await client.ask(
                "continuation.decide",
                **decision(request, decision="decline", message="enough", discard_tool_calls=["unknown"], grant=2.5),
            )
            event = await resolution(client, agent)
            await client.read_until(client.saw(agent.id, "run_finished"))

        assert ("declined", "enough", []) == (event["outcome"], event["message"], event.get("discarded", []))

    @pytest.mark.parametrize(
        ("most", "grant", "granted"), [(None, 7, 2), (None, None, 2), (5, 7, 5), (5, 3, 3), (5, None, 2)]
    )
    async def test_a_grant_is_cut(
        self, most: int | None, grant: int | None, granted: int, autojump_clock: Clock
    ) -> None:
        """A client grants at most what the request offers, and the event says how much that is."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker(max_tool_iterations=2, max_grant=most))
            client = await hall.connect()
            request = await asked(hall, client, agent)
            await client.ask("continuation.decide", **decision(request, grant=grant))
            event = await resolution(client, agent)

        assert (2, most or 2) == (request["default_grant"], request["max_grant"])
        assert granted == event["granted"]

    async def test_an_approval_with_other_arguments(self, autojump_clock: Clock) -> None:
        """They are what runs, and the event says them."""
        async with open_hall() as hall:
            agent = await hall.spawn(payer(1))
            client = await hall.connect()
            request = await asked(hall, client, agent)
            told = await client.ask("approval.decide", **decision(request, arguments={"n": 2}))
            event = await resolution(client, agent, "approval")
            await client.read_until(client.saw(agent.id, "tool_finished"))
            finished = next(event for _, event in client.events(agent.id) if event["type"] == "tool_finished")

        assert "accepted" == told["status"]
        assert ("edited", {"n": 2}) == (event["outcome"], event["arguments"])
        assert finished["text"].endswith("paid 2")

    async def test_a_denial(self, autojump_clock: Clock) -> None:
        """The model reads the reason."""
        async with open_hall() as hall:
            agent = await hall.spawn(payer(1))
            client = await hall.connect()
            request = await asked(hall, client, agent)
            await client.ask("approval.decide", **decision(request, decision="deny", reason="too dear"))
            await client.read_until(client.saw(agent.id, "tool_finished"))
            finished = next(event for _, event in client.events(agent.id) if event["type"] == "tool_finished")

        assert ("denied", "Not run: declined. too dear") == (finished["status"], finished["text"])

    async def test_a_question_of_a_sub_agent(self, autojump_clock: Clock) -> None:
        """It stands in the root's events, with its path, and is decided like any other."""
        async with open_hall() as hall:
            agent = await hall.spawn(parent(payer(1)))
            client = await hall.connect()
            request = await asked(hall, client, agent)
            attached = await client.ask("agent.attach", agent=agent.id)
            await client.ask("approval.decide", **decision(request))
            await client.read_until(lambda: client.types(agent.id).count("run_finished") == 2)
        (waiting,) = attached["open_requests"]

        assert ["payer"] == request["agent_path"] == waiting["agent_path"]
        assert agent.id == waiting["agent"]
        assert "waiting" == attached["snapshot"]["state"]
        assert [("payer", "waiting")] == [
            (child["agent_path"][0], child["state"]) for child in attached["snapshot"]["children"]
        ]


class TestRules:
    async def test_1_no_such_request(self, autojump_clock: Clock) -> None:
        """Unknown, or of an agent that one may not see: before the role is looked at."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            request = await asked(hall, client, agent)
            blind = await hall.connect(Principal("bob", ALL_ROLES, sees=lambda _name: False))
            weak = await hall.connect("eve", "observe")
            words = [
                (await blind.refusal("continuation.decide", **decision(request))).word,
                (await client.refusal("continuation.decide", **decision(request, request="q-unknown"))).word,
                (await weak.refusal("approval.decide", **decision(request, request="q-unknown"))).word,
            ]

        assert ["not_found"] * 3 == words

    @pytest.mark.parametrize("roles", [("observe",), ("operate",), ("observe", "operate")])
    async def test_2_no_role(self, roles: Any, autojump_clock: Clock) -> None:
        """Only `decide` decides, and `admin`: no other role implies it."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect("admin", "admin")
            request = await asked(hall, client, agent)
            weak = await hall.connect("weak", *roles)
            refused = await weak.refusal("continuation.decide", **decision(request, digest="wrong"))
            told = await client.ask("continuation.decide", **decision(request))

        assert "forbidden" == refused.word
        assert "accepted" == told["status"]

    async def test_3_sent_again(self, autojump_clock: Clock) -> None:
        """The stored answer again: on another connection too, however long after, and nothing is done twice."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect("ada")
            request = await asked(hall, client, agent)
            first = await client.ask("continuation.decide", **decision(request, grant=1))
            await client.drop()
            again = await hall.connect("ada")
            order = list(decision(request, grant=1.0).items())
            second = await again.ask("continuation.decide", **dict(reversed(order)))
            await again.ask("agent.attach", agent=agent.id, from_="start")
            await again.read_until(lambda: len(again.requests(agent.id)) == 2)

        assert {**first, "replayed": True} == second
        assert 1 == again.types(agent.id).count("continuation_resolved")

    async def test_3_another_command_under_the_same_key(self, autojump_clock: Clock) -> None:
        """A conflict, whatever has become of the request."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            request = await asked(hall, client, agent)
            await client.ask("continuation.decide", **decision(request))
            changed: list[dict[str, Any]] = [
                {"decision": "decline"},
                {"grant": 2},
                {"message": ""},
                {"digest": "other"},
                {"grant": True},
            ]
            words = []
            for change in changed:
                words.append((await client.refusal("continuation.decide", **decision(request, **change))).word)

        assert ["idem_conflict"] * 4 + ["-32602"] == words

    async def test_3_a_key_is_of_one_principal_and_method(self, autojump_clock: Clock) -> None:
        """Another's is another, and so is that of another method; a refusal leaves it free."""
        async with open_hall() as hall:
            agent, other = await hall.spawn(asker()), await hall.spawn(payer(1))
            client, bob = await hall.connect("ada"), await hall.connect("bob")
            request, approval = await asked(hall, client, agent), await asked(hall, client, other)
            stale = await client.refusal("continuation.decide", **decision(request, digest="wrong"))
            told = await client.ask("continuation.decide", **decision(request))
            late = await bob.refusal("continuation.decide", **decision(request))
            also = await client.ask("approval.decide", **decision(approval))

        assert ["stale_view", "already_resolved"] == [stale.word, late.word]
        assert ["accepted"] * 2 == [told["status"], also["status"]]

    @pytest.mark.parametrize("how", ["decided", "expired", "cancelled", "stopped"])
    async def test_4_already_resolved(self, how: str, autojump_clock: Clock) -> None:
        """With the resolution that stands: outcome, by whom, and the number of its event; before the digest."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker(continuation_timeout_seconds=30))
            client, bob = await hall.connect("ada"), await hall.connect("bob")
            request = await asked(hall, client, agent)
            match how:
                case "decided":
                    await client.ask("continuation.decide", **decision(request, decision="decline"))
                case "expired":
                    await client.read_for(35)
                case "cancelled":
                    await client.ask("run.cancel", run=request["run"], mode="now")
                case "stopped":
                    await client.ask("run.cancel", run=request["run"])
            event = await resolution(client, agent)
            number = next(number for number, one in client.events(agent.id) if one == event)
            refused = await bob.refusal("continuation.decide", **decision(request, digest="wrong", decision="what"))
        by, outcome = {
            "decided": ("ada", "declined"),
            "expired": (None, "timed_out"),
            "cancelled": (None, "cancelled"),
            "stopped": (None, "cancelled"),
        }[how]

        assert "already_resolved" == refused.word
        assert {"outcome": outcome, "by": by, "seq": number} == refused.data["resolution"]
        assert (outcome, by) == (event["outcome"], event.get("by"))

    async def test_4_long_after(self, autojump_clock: Clock) -> None:
        """The number of its event is told even where the log holds that no longer."""
        async with open_hall(event_log_bytes=500) as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            request = await asked(hall, client, agent)
            await client.ask("continuation.decide", **decision(request))
            event = await resolution(client, agent)
            number = next(number for number, one in client.events(agent.id) if one == event)
            await client.read_until(lambda: agent.stream.oldest > number)
            refused = await client.refusal("continuation.decide", **decision(request, idem="i2"))

        assert number == refused.data["resolution"]["seq"]

    async def test_5_a_stale_view(self, autojump_clock: Clock) -> None:
        """What the person saw is not what is asked; before the decision itself is looked at."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker())
            client = await hall.connect()
            request = await asked(hall, client, agent)
            refused = await client.refusal("continuation.decide", **decision(request, digest="", decision="what"))

        assert "stale_view" == refused.word

    @pytest.mark.parametrize(
        "change",
        [
            {"decision": "timeout"},
            {"decision": "Approve"},
            {"decision": ""},
            {"discard_tool_calls": ["no-such-call"]},
            {"grant": 1.5},
        ],
    )
    async def test_6_what_is_not_on_offer(self, change: dict[str, Any], autojump_clock: Clock) -> None:
        """It is refused, and the request is still open."""
        async with open_hall() as hall:
            agent = await hall.spawn(asker(max_grant=5))
            client = await hall.connect()
            request = await asked(hall, client, agent)
            refused = await client.refusal("continuation.decide", **decision(request, **change))
            told = await client.ask("continuation.decide", **decision(request))

        assert "invalid_argument" == refused.word
        assert "accepted" == told["status"]

    async def test_6_a_decision_of_the_other_kind(self, autojump_clock: Clock) -> None:
        """An approval is no continuation."""
        async with open_hall() as hall:
            gate, pays = await hall.spawn(asker()), await hall.spawn(payer(1))
            client = await hall.connect()
            continuation, approval = await asked(hall, client, gate), await asked(hall, client, pays)
            words = [
                (await client.refusal("approval.decide", **decision(continuation))).word,
                (await client.refusal("continuation.decide", **decision(approval))).word,
                (await client.refusal("approval.decide", **decision(approval, decision="edit"))).word,
                (await client.refusal("approval.decide", **decision(approval, arguments={"n": "much"}))).word,
            ]
            left = (await client.ask("request.list"))["requests"]

        assert ["invalid_argument"] * 4 == words
        assert 2 == len(left)

    @pytest.mark.parametrize(
        "change",
        [
            {"digest": None},
            {"idem": None},
            {"idem": "a b"},
            {"idem": "a\n"},
            {"decision": None},
            {"decision": 1},
            {"grant": 0},
            {"grant": 0.5},
            {"grant": "2"},
            {"discard_tool_calls": "all"},
            {"discard_tool_calls": [1]},
            {"message": 7},
        ],
    )
    async def test_0_what_does_not_fit_the_schema(self, change: dict[str, Any], autojump_clock: Clock) -> None:
        """It is -32602, even for a request that does not exist."""
        async with open_hall() as hall:
            client = await hall.connect("eve", "observe")
            params = {"request": "q1", "decision": "approve", "digest": "d", "idem": "i", **change}
            params = {key: value for key, value in params.items() if value is not None}
            try:
                await client.ask("continuation.decide", **params)
            except RefusedError as error:
                number = error.number

        assert -32602 == number

    async def test_texts_that_are_too_long(self, autojump_clock: Clock) -> None:
        """They are `too_large`, and the request is still open."""
        async with open_hall() as hall:
            gate, pays = await hall.spawn(asker()), await hall.spawn(payer(1))
            client = await hall.connect()
            continuation, approval = await asked(hall, client, gate), await asked(hall, client, pays)
            long = 8193 * "x"
            words = [
                (await client.refusal("continuation.decide", **decision(continuation, message=long))).word,
                (await client.refusal("continuation.decide", **decision(continuation, tool_message=long))).word,
                (await client.refusal("approval.decide", **decision(approval, decision="deny", reason=long))).word,
            ]
            left = (await client.ask("request.list"))["requests"]

        assert ["too_large"] * 3 == words
        assert 2 == len(left)
