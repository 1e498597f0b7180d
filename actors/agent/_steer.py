"""Messages to a run that goes on."""

from __future__ import annotations

from protocol.errors import RunOver, SpecError
from protocol.events import MessageQueued
from protocol.ids import new_id
from protocol.run import QueuedMessage
from protocol.text import clean, is_visible

from ._core import RunCore

__all__ = ("steer",)


def steer(core: RunCore, text: str) -> str:
    """Queue a user message for the next boundary; returns its id. Raises `SpecError` and `RunOver`."""
    if not isinstance(text, str) or not is_visible(text):
        raise SpecError(f"steer(text): say what the model should know or do; it is {text!r}")
    if core.over.is_set():
        raise RunOver(f"run {core.run} has ended and takes no more messages")
    message = QueuedMessage(new_id("msg"), clean(text))
    core.state.steering.append(message)
    core.log.emit(MessageQueued(run=core.run, agent_path=core.path, message=message.id, text=message.text))
    return message.id
