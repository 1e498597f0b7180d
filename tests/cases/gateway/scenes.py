"""What several scenes need: an agent that talks, events one by one, and what is logged."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from typing import Any

import trio

from actors import Agent
from protocol.events import AgentWarned
from tests.support.specs import agent

from ..model import CaseModel, rule_of
from ..program import GATEWAY_CALL_SECONDS

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


def talker(words: str = WORDS) -> Any:
    """Says one word after the other."""
    said = {"text": words, "deltas": len(words.split())}
    return agent(CaseModel(rule_of([said]), seconds=GATEWAY_CALL_SECONDS))


@contextlib.contextmanager
def errors_logged() -> Generator[list[logging.LogRecord]]:
    """What is logged as an error inside the block."""
    found: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    handler = Keeper(logging.WARNING)
    logger = logging.getLogger("onward.gateway")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


async def warn(one: Agent, up_to: int) -> None:
    """Let events happen until there are so many, a few at a time."""
    while one.stream.end < up_to:
        one.stream.append(AgentWarned(agent=one.id, code="case", text=f"number {one.stream.end + 1}"))
        if one.stream.end % 10 == 0:
            await trio.sleep(0.01)
    await trio.sleep(1)
