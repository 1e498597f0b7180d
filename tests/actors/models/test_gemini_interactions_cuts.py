"""A decode of two hops whose stream is cut at every byte: it comes to the whole answer, or says that it did not."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import pytest
import trio

from actors.models.gemini import GeminiInteractions, Interactions
from protocol.errors import ContinuationInterrupted, ModelError
from tests.actors.models._interactions_read import shown
from tests.actors.models._wire import HELLO, Heard, Network
from tests.support.interactions import (
    Checkpoint,
    Cut,
    InteractionsServer,
    Thought,
    hop,
    interactions_server,
    stream_bytes,
)

pytestmark = pytest.mark.slow

SHORT: dict[str, Any] = {"usage": None, "over": dict.fromkeys(("object", "model", "created", "updated"))}
DECODE = [
    hop(Thought("s1", "Hm."), "Einst ", Checkpoint("ck1"), "wär’ ", token="tk1", **SHORT),
    hop("ein ", Checkpoint("ck2"), "Mal 🙂.", **SHORT),
]
WHOLE = "Einst wär’ ein Mal 🙂."
LENGTHS = [
    len(stream_bytes(interactions_server(DECODE), f"i{number + 1}", hop=number)) for number in range(len(DECODE))
]


@attrs.frozen
class Stage:
    """A model and a client that share a server: made once, since that takes longer than a decode."""

    server: InteractionsServer
    model: GeminiInteractions
    by_hand: Interactions

    @classmethod
    def of(cls, nursery: trio.Nursery, delivery: Literal["strict", "replay"]) -> Stage:
        network = Network(nursery, server := interactions_server(DECODE))
        url = "http://127.0.0.1:80/v1"
        model = GeminiInteractions(
            "gemini-x", base_url=url, api_key="k", transport=network.transport(), delivery=delivery
        )
        return cls(server, model, Interactions(base_url=url, api_key="k", transport=network.transport()))

    async def resumed(self, error: ModelError) -> str:
        """The text that going on by hand brings."""
        given = error.resume_kwargs() if isinstance(error, ContinuationInterrupted) else {}
        body = {name: value for name, value in self.server.bodies[0].items() if name != "stream"}
        whole = await self.by_hand.create(**body, **given)
        steps = [step for step in whole["steps"] if step["type"] == "model_output"]
        return "".join(content["text"] for step in steps for content in step["content"])


def cut(at_byte: int) -> Cut:
    """Every other time the end is a clean one."""
    return Cut(at_byte=at_byte, end="close" if at_byte % 2 else "cut")


@pytest.mark.parametrize("number", [0, 1])
async def test_nothing_is_silently_short(
    number: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Cut anywhere, the answer is whole or an error holds its beginning and, taken up by hand, comes to the whole."""
    stage = Stage.of(nursery, "strict")
    raised = 0
    for at_byte in range(LENGTHS[number] + 1):
        stage.server.begin_again({number: cut(at_byte)})
        heard = Heard()
        try:
            turn = await stage.model.turn(HELLO, heard)
        except ModelError as error:
            raised += 1
            said = "" if error.partial is None else error.partial.text
            rest = await stage.resumed(error)

            assert WHOLE.startswith(said), at_byte
            assert said == heard.text, at_byte
            assert WHOLE.endswith(rest), at_byte
            assert len(said) + len(rest) >= len(WHOLE), at_byte
        else:
            assert (WHOLE, WHOLE, "stop", "complete") == (turn.text, heard.text, turn.finish, turn.end), at_byte
            assert "Hm." == heard.reasoning, at_byte

    assert 0 < raised < LENGTHS[number]


@pytest.mark.parametrize("number", [0, 1])
async def test_with_replay_it_is_always_whole(
    number: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Cut anywhere, what stands of what was reported is the whole answer, once."""
    stage = Stage.of(nursery, "replay")
    for at_byte in range(LENGTHS[number] + 1):
        stage.server.begin_again({number: cut(at_byte)})
        heard = Heard()
        turn = await stage.model.turn(HELLO, heard)
        stands = shown(heard.events)

        assert (WHOLE, WHOLE, "Hm.") == (turn.text, stands.text, stands.reasoning), at_byte
        assert ("stop", "complete") == (turn.finish, turn.end), at_byte
