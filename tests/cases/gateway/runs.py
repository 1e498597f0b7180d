"""The six runs of a case that tells of them in words alone."""

from __future__ import annotations

from typing import Any

_CALL: dict[str, Any] = {"calls": [["c1", "t", {}]]}

RUNS: dict[str, dict[str, Any]] = {
    "model request fails in the middle of a stream": {
        "turns": [{"text": "Half of an answer", "deltas": 4, "then": "the connection broke"}],
    },
    "tool raises a fatal error": {
        "tools": {"t": "raise ValueError('broken')"},
        "config": {"on_tool_failure": "abort run"},
        "turns": [_CALL, {"text": "never"}],
    },
    "cancel while streaming": {
        "turns": [{"text": "one two three four", "deltas": 4}],
        "actions": [{"when": "streaming", "do": "cancel run"}],
    },
    "budget stop": {
        "tools": {"t": "return 1"},
        "config": {"max_tokens_total": 100},
        "turns": [_CALL | {"usage": {"in": 90, "out": 20}}, {"text": "never"}],
    },
    "prepare-step raises": {"hooks": {"prepare_step": "raises"}, "turns": [{"text": "never"}]},
    "normal end": {"turns": [{"text": "done"}]},
}
"""A run's words, and the program that they mean."""
