"""What `/metrics` says: the state of a runtime and its gateway in the text format of Prometheus.

Numbers alone: no name of an agent, a tool, a model or a person, so the number of series is bounded, and whoever may look at
them learns of no agent that he may not see.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import trio

if TYPE_CHECKING:
    from trio_websocket import CloseReason

    from ..runtime import RuntimeStatistics
    from ._server import Gateway
    from ._session import Leave

__all__ = ("CONTENT_TYPE", "Exposition", "closed_by", "metrics_page")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels: TypeAlias = Mapping[str, str]
_CODES = frozenset({1000, 1001, 1005, 1006})
"""Codes of clients that are told apart: what else a client says is its own affair, and no new series."""


@final
class Exposition:
    """Collects metrics, and writes them as text."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self,
        name: str,
        kind: Literal["counter", "gauge"],
        text: str,
        samples: float | Iterable[tuple[Labels, float]],
    ) -> None:
        """Add a metric: one number, or one for each set of labels."""
        found: Iterable[tuple[Labels, float]] = [({}, samples)] if isinstance(samples, (int, float)) else samples
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        self._lines += [f"{name}{_shown(labels)} {value!r}" for labels, value in found]

    def text(self) -> str:
        """All of it."""
        return "".join([f"{line}\n" for line in self._lines])


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def metrics_page(gateway: Gateway) -> str:
    """The page, as of now."""
    began = time.perf_counter()
    await trio.lowlevel.checkpoint()
    pass_seconds = time.perf_counter() - began
    page = Exposition()
    _add_runtime(page, gateway.runtime.statistics())
    _add_gateway(page, gateway)
    page.add(
        "onward_scheduler_pass_seconds",
        "gauge",
        "How long all other tasks that could run took, once, when this was asked for.",
        pass_seconds,
    )
    return page.text()


def _add_runtime(page: Exposition, now: RuntimeStatistics) -> None:
    page.add("onward_agents", "gauge", "Agents, by what they do.", _by("state", now.states))
    page.add("onward_queued_runs", "gauge", "Runs that wait for their agent.", now.queued_runs)
    page.add("onward_open_requests", "gauge", "Questions that wait for a decision.", now.open_requests)
    ended = [({"end": end, "stopped_by": by}, count) for (end, by), count in sorted(now.runs_ended.items())]
    page.add("onward_runs_total", "counter", "Runs that have ended, and who stopped them.", ended)
    page.add(
        "onward_model_calls_total",
        "counter",
        "Model calls that brought a turn, and those that were refused, broken or cut.",
        _by("outcome", now.model_calls),
    )
    page.add("onward_tool_calls_total", "counter", "Tool calls, by their result.", _by("status", now.tool_calls))
    usage = now.account.usage
    tokens = {
        "uncached_input": usage.uncached_input_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "output": usage.output_tokens,
    }
    known = {kind: count for kind, count in tokens.items() if count is not None}
    page.add("onward_tokens_total", "counter", "Tokens that models have reported.", _by("type", known))
    if now.account.cost is not None:
        page.add("onward_cost_dollars_total", "counter", "What the model calls have cost.", now.account.cost)
    threads = now.tool_threads
    states = {"running": threads.running, "waiting": threads.waiting, "abandoned": threads.abandoned}
    page.add("onward_tool_threads", "gauge", "Calls of synchronous tools, by their thread.", _by("state", states))
    if (journal := now.journal) is not None:
        page.add("onward_journal_commits_total", "counter", "Commits of the journal.", journal.commits)
        page.add("onward_journal_records_total", "counter", "Records that were committed.", journal.records)
        page.add("onward_journal_forming_bytes", "gauge", "What is to be written next.", journal.forming_bytes)
        page.add("onward_journal_waiting_tasks", "gauge", "Tasks that wait for the disk.", journal.waiting)
        page.add(
            "onward_journal_lag_seconds",
            "gauge",
            "How long the oldest of what is not durable yet has waited.",
            journal.lag_seconds,
        )


def _add_gateway(page: Exposition, gateway: Gateway) -> None:
    connections = gateway.connections.values()
    page.add("onward_gateway_connections", "gauge", "WebSockets that are open.", len(connections))
    lags = [connection.session.lag for connection in connections]
    page.add(
        "onward_gateway_lagging_clients",
        "gauge",
        "Clients that have half of what may wait for them, or more, still to read.",
        sum(1 for lag in lags if lag >= 0.5),
    )
    closed = [({"by": by, "code": code}, count) for (by, code), count in sorted(gateway.closed.items())]
    page.add("onward_gateway_closed_total", "counter", "WebSockets that were closed, by whom, and why.", closed)
    by_status = [({"status": str(status)}, count) for status, count in sorted(gateway.answered.items())]
    page.add("onward_gateway_http_responses_total", "counter", "Answers over plain HTTP, by status.", by_status)


def _by(label: str, counts: Mapping[str, int]) -> list[tuple[Labels, float]]:
    return [({label: value}, count) for value, count in sorted(counts.items())]


def closed_by(left: Leave | None, closed: CloseReason | None) -> tuple[str, str]:
    """Who closed a connection, and with which code, as it is counted."""
    if left is not None:
        return "server", str(left.code)
    return "client", str(closed.code) if closed is not None and closed.code in _CODES else "other"
