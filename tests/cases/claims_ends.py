"""What must hold of the cases about what is done when a run ends, beyond their checks."""

from __future__ import annotations

from protocol.events import RunFinished, Warned

from .claims import answered, claim
from .runner import run_case

BOUND_SECONDS = 60
"""`callback_timeout_seconds`, which the case does not set."""


@claim(
    "TRI-06",
    "the stored session has a's result and the terminal event: final bookkeeping runs shielded with a bounded timeout",
)
def the_end_is_stored_in_a_cancelled_scope() -> None:
    """What is cancelled is what stands around the run; a store that hangs holds nobody for longer than the bound."""
    (came,) = run_case("TRI-06")
    (stored,) = came.kept.stored
    (hangs,) = run_case("TRI-06", "remote", ("hooks.on_run_end", "await forever"))

    assert ((), ()) == (came.played, hangs.played)  # the caller's own block was cut
    assert [("a", "interrupted")] == answered(stored.messages) == answered(came.messages)
    assert ("x", "cancel") == (stored.text, stored.stopped_by)
    assert stored.messages == came.messages
    for cut in (came, hangs):
        assert ["run_cancelled"] == [end.type for end in cut.ends]
        assert cut.ends[-1] is cut.stream[-1]
    assert stored.summary() == came.ends[-1].summary
    assert came.times["run_ended"] == came.times["tool_started:a"]
    assert BOUND_SECONDS == hangs.times["run_ended"] - hangs.times["tool_started:a"]


@claim(
    "TRI-10",
    "p's result contains 'answer ready' (possibly marked late) and the 100/10 tokens are counted in the shared budget",
)
def a_child_that_has_answered_is_not_cut() -> None:
    (came,) = run_case("TRI-10")
    (end,) = came.results["p"]
    (stored,) = came.kept.stored
    (child,) = [event for event in came.stream if isinstance(event, RunFinished) and event.agent_path]
    used = came.statistics[0].account.usage

    assert ("ok", "answer ready") == (end.status, end.text)
    assert ("answer ready", True) == (stored.text, child.summary.answered)
    assert 4.999 + 1 == round(came.times["tool_finished:p"] - came.times["tool_started:p"], 6)
    assert (100, 10, 110) == (used.uncached_input_tokens, used.output_tokens, used.total_tokens)
    assert [] == [event for event in came.stream if isinstance(event, Warned)]
