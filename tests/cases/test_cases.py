"""Each case: every word of its `check`, and every `assert` line; where somebody is asked, answered in both ways."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

from .checks import check
from .claims import CLAIMS
from .program import CASES, REAL_TIME, Gate, asks_somebody
from .runner import run_case

for path in sorted(Path(__file__).parent.glob("claims_*.py")):
    importlib.import_module(f"{__package__}.{path.stem}")
for name in ("wire.tools", "gateway.deeds"):
    importlib.import_module(f"{__package__}.{name}")

GATES: tuple[Gate, ...] = get_args(Gate)
GATED = {id for id, case in CASES.items() if asks_somebody(case["input"])}
CHECKS = [(id, word) for id, case in CASES.items() for word in case["expected"]["check"]]
LINES = [(id, line) for id, case in CASES.items() for line in case["expected"]["assert"]]
SLOW = {*REAL_TIME, "TRI-08"}
ALL = {
    "limit": "LIM-01 LIM-03 LIM-04 LIM-06 LIM-07 LIM-09 LIM-10 LIM-12 LIM-14 LIM-15 LIM-18",
    "continuation": "CON-01 CON-03 CON-04 CON-05 CON-07 CON-08 CON-10 CON-11 CON-12",
    "step-hooks": "PRE-01 PRE-03 PRE-04",
    "dangling-calls": "DNG-01 DNG-03 DNG-04 DNG-06 DNG-07 DNG-09",
    "message-order": "ORD-01 ORD-02 ORD-04 ORD-06",
    "parallel-tools": "PAR-01 PAR-03 PAR-04 PAR-05 PAR-07 PAR-08 PAR-10",
    "call-ids": "IDS-01 IDS-03 IDS-04 IDS-06 IDS-07",
    "tool-args": "ARG-01 ARG-02 ARG-04 ARG-06 ARG-07 ARG-09 ARG-10",
    "truncation": "TRU-01 TRU-02 TRU-04 TRU-05 TRU-07 TRU-09 TRU-11",
    "finish-reason": "FIN-01 FIN-02 FIN-03 FIN-05 FIN-07 FIN-08 FIN-10 FIN-11 FIN-13 FIN-15 FIN-16",
    "sse-stream": "SSE-01 SSE-02 SSE-04 SSE-05 SSE-06 SSE-08 SSE-09 SSE-10 SSE-12 SSE-14 SSE-15",
    "tool-deltas": "DEL-01 DEL-02 DEL-04 DEL-05 DEL-07 DEL-09",
    "http-errors": "HTP-01 HTP-03 HTP-04 HTP-05 HTP-07 HTP-08 HTP-09 HTP-11 HTP-12 HTP-13 HTP-15",
    "approval": "APR-01 APR-02 APR-03 APR-05 APR-06 APR-08 APR-09 APR-11 APR-13 APR-14 APR-16 APR-18",
    "budget": "BUD-01 BUD-03 BUD-04 BUD-05 BUD-06 BUD-08 BUD-10 BUD-11 BUD-13 BUD-14",
    "tool-exec": "TEX-01 TEX-02 TEX-04 TEX-05 TEX-06 TEX-08 TEX-10 TEX-11 TEX-12 TEX-14 TEX-16 TEX-17",
    "trio-host": "TRI-01 TRI-03 TRI-04 TRI-06 TRI-07 TRI-08 TRI-10",
    "gateway": "GTW-01 GTW-03 GTW-04 GTW-05 GTW-07 GTW-09 GTW-10 GTW-12 GTW-13 GTW-14 GTW-16 GTW-17 GTW-19",
    "provider-shape": "PRV-01 PRV-02 PRV-04 PRV-05",
}
"""The cases that the runtime is held against; the list grows with it."""


def with_gates(told: Iterable[tuple[str, str]]) -> list[Any]:
    """Each with every way to answer, if somebody is asked in the case."""
    return [
        param(id, what, gate, *([gate] if id in GATED else []))
        for id, what in told
        for gate in (GATES if id in GATED else GATES[:1])
    ]


def param(id: str, what: str, gate: Gate, *suffix: str) -> Any:
    """Named by the word of the check, or by the line's code."""
    code = CLAIMS.get((id, what))
    name = "-".join([id, what if code is None else code.__name__, *suffix])
    return pytest.param(id, what, gate, id=name, marks=[pytest.mark.slow] if id in SLOW else [])


@pytest.mark.parametrize(("id", "word", "gate"), with_gates(CHECKS))
def test_check(id: str, word: str, gate: Gate) -> None:
    """What came of the case is what its check says."""
    expected: Any = CASES[id]["expected"]["check"][word]

    for came in run_case(id, gate):
        assert check(came, word, expected), (word, expected, came.ends, came.tool_runs, came.faults)


@pytest.mark.parametrize(("id", "line", "gate"), with_gates(LINES))
def test_line(id: str, line: str, gate: Gate) -> None:
    """What the case's line says holds."""
    if id in GATED:
        CLAIMS[id, line](gate)
    else:
        CLAIMS[id, line]()


def test_all_cases_are_here() -> None:
    """Each case that this level of the runtime must pass is in the data, and has something to check."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for id, case in CASES.items():
        found[case["category"]].append(id)

    assert {category: ids.split() for category, ids in ALL.items()} == found
    assert all(case["expected"]["check"] or case["expected"]["assert"] for case in CASES.values())


def test_every_line_has_its_code_and_no_code_is_without_its_line() -> None:
    """A line that is added, dropped or reworded in the data is noticed."""
    assert set(LINES) == set(CLAIMS)


def test_a_check_can_fail() -> None:
    """Each word tells a case's outcome from another one."""
    (came,) = run_case("CON-08")
    wrong: dict[str, Any] = {
        "llm_calls": 9,
        "llm_calls_one_of": [9],
        "llm_calls_max": 1,
        "tool_runs": {"t": 9},
        "final_text": "x",
        "final_contains": ["x"],
        "outcome": "error",
        "strict_ok": False,
        "terminal_events": 2,
        "http_requests": 9,
        "usage": {"in": 9},
        "cost": 9.0,
        "result": {came.prompts[0].tool_calls[0].id: "ok"},
    }

    assert dict.fromkeys(wrong, False) == {word: check(came, word, value) for word, value in wrong.items()}
    assert {word for _, word in CHECKS} <= set(wrong)
