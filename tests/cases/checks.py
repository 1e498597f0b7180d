"""The words of a case's `check`."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.events import TERMINAL_EVENTS, ToolFinished

from .came import Came

RESULTS = {"error": "error", "timed_out": "error", "interrupted": "cancelled", "ok": "ok"}


def result_word(event: ToolFinished) -> str:
    """A call's result in the words of the cases."""
    return RESULTS.get(event.status, "not_run")


def check(came: Came, word: str, expected: Any) -> bool:
    """Whether one word of a case's `check` holds."""
    match word:
        case "llm_calls":
            counted = sum(end.summary.counters.llm_calls for end in came.ends)
            return bool(len(came.asked) == expected == counted)
        case "llm_calls_one_of":
            return len(came.asked) in expected
        case "llm_calls_max":
            return bool(len(came.asked) <= expected)
        case "tool_runs":
            return came.tool_runs == {name: runs for name, runs in expected.items() if runs}
        case "result":
            return {id: [result_word(end) for end in came.results[id]] for id in expected} == {
                id: [word] for id, word in expected.items()
            }
        case "final_text":
            return bool(came.last.result.text == expected)
        case "final_contains":
            return all(part in came.last.result.text for part in expected)
        case "outcome":
            return bool(came.outcome == expected)
        case "terminal_events":
            runs = [event.run for event in came.stream if isinstance(event, TERMINAL_EVENTS)]
            return bool(runs) and all(runs.count(played.run) == expected for played in came.played)
        case "strict_ok":
            return bool((not came.faults and not came.served.faults) == expected)
        case "http_requests":
            return bool(len(came.served.bodies) == expected)
        case "usage":
            usage = came.last.result.usage
            read = {"in": usage.input_tokens, "out": usage.output_tokens, "cached": usage.cache_read_tokens}
            return bool({name: read[name] for name in expected} == expected)
        case "cost":
            return bool(came.last.result.cost == pytest.approx(expected))
        case _:
            raise AssertionError(f"no check is known for {word}")
