"""The end of a run, and the life of an agent."""

from __future__ import annotations

from ..result import RunSummary
from ._base import ErrorInfo, Event, RunEvent

__all__ = (
    "TERMINAL_EVENTS",
    "AgentFailed",
    "AgentSpawned",
    "AgentStopped",
    "AgentWarned",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
)


class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run came to an end: an answer, a condition or a limit."""

    summary: RunSummary


class RunFailed(RunEvent, frozen=True, kw_only=True):
    """The run failed; `summary` is what it had come to."""

    error: ErrorInfo
    summary: RunSummary


class RunCancelled(RunEvent, frozen=True, kw_only=True):
    """The run was cancelled; `summary` is what it had come to."""

    reason: str
    summary: RunSummary


TERMINAL_EVENTS = (RunFinished, RunFailed, RunCancelled)
"""Exactly one of these ends a run's events."""


class AgentSpawned(Event, frozen=True, kw_only=True):
    """The agent has been made and takes runs."""

    agent: str
    name: str


class AgentFailed(Event, frozen=True, kw_only=True):
    """The agent's host crashed."""

    agent: str
    error: ErrorInfo


class AgentStopped(Event, frozen=True, kw_only=True):
    """The agent takes no more runs."""

    agent: str
    reason: str


class AgentWarned(Event, frozen=True, kw_only=True, tag="agent_warning"):
    """Something about the agent that a person should know and that changes nothing."""

    agent: str
    code: str
    text: str
