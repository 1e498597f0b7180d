"""Answers: checked before they are taken, and followed up where the agent wants more (H5, H6)."""

from __future__ import annotations

from protocol.limits import LimitState
from protocol.run import Failed
from protocol.text import clean, is_visible

from ._callbacks import EndRun, call_hook, failed, stop_state
from ._core import RunCore

__all__ = ("answer_rejected", "continuation_of", "rejection_of")


async def rejection_of(core: RunCore, text: str) -> str | None:
    """The complaint of `check_answer` about an answer. Raises `EndRun` if it fails."""
    hook = core.acting.check_answer
    return None if hook is None else await _text_of(core, "check_answer", hook, text)


async def continuation_of(core: RunCore) -> str | None:
    """What `continue_when` wants said, so that the run goes on. Raises `EndRun` if it fails."""
    hook = core.acting.continue_when
    if hook is None or core.state.continues >= core.acting.max_continues:
        return None
    return await _text_of(core, "continue_when", hook, stop_state(core))


def answer_rejected(complaint: str, *, limit: LimitState | None = None) -> Failed:
    """How a run ends whose answer is not good enough, and that may not ask again."""
    text = clean(f"the answer was rejected: {complaint}")
    return Failed(ValueError(text), "answer_rejected", text, limit)


async def _text_of(core: RunCore, name: str, hook: object, argument: object) -> str | None:
    assert callable(hook)
    text = await call_hook(core, name, hook, argument)
    if text is None or text == "" or text is False:
        return None
    if not isinstance(text, str):
        raise EndRun(failed("hook_error", name, TypeError(f"{name} returns a str or None, not {type(text).__name__}")))
    return clean(text) if is_visible(text) else None
