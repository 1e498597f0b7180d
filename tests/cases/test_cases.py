"""Each case: every word of its `check`, and every `assert` line, with the gate answered in both ways."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from . import claims_continuation, claims_limit, claims_order
from .claims import CLAIMS
from .program import CASES
from .runner import Gate, check, run_case

GATES: tuple[Gate, ...] = get_args(Gate)
CHECKS = [(id, word) for id, case in CASES.items() for word in case["expected"]["check"]]
LINES = [(id, line) for id, case in CASES.items() for line in case["expected"]["assert"]]
LIMITS = {"LIM-01", "LIM-03", "LIM-04", "LIM-06", "LIM-12", "LIM-15", "LIM-18"}
CONTINUATIONS = {"CON-01", "CON-04", "CON-05", "CON-07", "CON-08", "CON-10", "CON-12"}
ORDERS = {"DNG-01", "DNG-04", "ORD-01", "ORD-06"}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("id", "word"), CHECKS)
def test_check(id: str, word: str, gate: Gate) -> None:
    """What came of the case is what its check says."""
    expected: Any = CASES[id]["expected"]["check"][word]

    for came in run_case(id, gate):
        assert check(came, word, expected), (word, expected, came.last.result, came.tool_runs)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("id", "line"), LINES)
def test_line(id: str, line: str, gate: Gate) -> None:
    """What the case's line says holds."""
    CLAIMS[id, line](gate)


def test_all_cases_are_here() -> None:
    """Each case that this level of the runtime must pass is in the data, and has something to check."""
    assert LIMITS | CONTINUATIONS | ORDERS == set(CASES)
    assert all(case["expected"]["check"] or case["expected"]["assert"] for case in CASES.values())


def test_every_line_has_its_code_and_no_code_is_without_its_line() -> None:
    """A line that is added, dropped or reworded in the data is noticed."""
    assert set(LINES) == set(CLAIMS)
    assert {"tests.cases.claims_limit", "tests.cases.claims_continuation", "tests.cases.claims_order"} == {
        module.__name__ for module in (claims_limit, claims_continuation, claims_order)
    }


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
        "result": {came.prompts[0].tool_calls[0].id: "ok"},
    }

    assert dict.fromkeys(wrong, False) == {word: check(came, word, value) for word, value in wrong.items()}
    assert {word for _, word in CHECKS} <= set(wrong)
