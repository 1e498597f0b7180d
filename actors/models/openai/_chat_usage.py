"""Chat Completions: tokens, as servers report them, in classes that do not overlap. No I/O."""

from __future__ import annotations

from typing import Any

from protocol.usage import Usage

from ..wire import mapping, number

__all__ = ("UsageTally",)


class UsageTally:
    """What a reply has reported. Reports are running totals: the last number of each kind counts, null is none."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def feed(self, usage: dict[str, Any]) -> None:
        """Take a report."""
        prompt = mapping(usage.get("prompt_tokens_details"))
        completion = mapping(usage.get("completion_tokens_details"))
        reported = {
            "prompt": usage.get("prompt_tokens"),
            "output": usage.get("completion_tokens"),
            "read": prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
            "write": prompt.get("cache_write_tokens"),
            "reasoning": completion.get("reasoning_tokens"),
        }
        for name, value in reported.items():
            count = number(value)
            if count is not None:
                self._counts[name] = count

    def usage(self) -> Usage:
        """The usage; `prompt_tokens` holds cached input too."""
        counts = self._counts
        prompt, output = counts.get("prompt"), counts.get("output")
        read, write = counts.get("read"), counts.get("write")
        return Usage(
            None if prompt is None else max(0, prompt - (read or 0) - (write or 0)),
            read,
            write,
            output,
            counts.get("reasoning"),
            complete=prompt is not None and output is not None,
        )
