"""The text of a run as far as a client has shown it: a client may come in the middle."""

from __future__ import annotations

import attrs

from protocol.events import ContentDelta, Event, Rollback
from protocol.result import RunSummary

from ._words import closing_text

__all__ = ("ShownText",)


@attrs.define(eq=False)
class ShownText:
    """Keeps what has been shown of one run."""

    from_start: bool = False
    _messages: dict[str, str] = attrs.field(factory=dict[str, str])

    def keep(self, event: Event) -> None:
        """This event of the run has been shown."""
        match event:
            case ContentDelta(message=message, text=text):
                self._messages[message] = self._messages.get(message, "") + text
            case Rollback(message=message, to=to) if message in self._messages:
                self._messages[message] = self._messages[message][:to]
            case _:
                pass

    def left(self, summary: RunSummary) -> str:
        """What has not been shown of the run's text, now that it has ended: what was added to it, or all of it."""
        texts = list(self._messages.values())
        if self.from_start:
            return closing_text(summary, texts)
        shown = "\n\n".join([text for text in texts if text])
        whole = texts and (summary.text in {texts[-1], shown} or summary.text.endswith(f"\n\n{shown}"))
        return "" if whole else summary.text
