"""Agents and their runs: the driver and the four services of each."""

from ._agent import Agent, AgentStatistics
from ._context import RunContext, current_run
from ._policies import Continuation, Remote, always, never, remote, up_to, within
from ._run import Run, RunStatistics
from ._spec import AgentSpec, LimitsWarning
from ._threads import ThreadStatistics, ToolThreads

__all__ = (
    "Agent",
    "AgentSpec",
    "AgentStatistics",
    "Continuation",
    "LimitsWarning",
    "Remote",
    "Run",
    "RunContext",
    "RunStatistics",
    "ThreadStatistics",
    "ToolThreads",
    "always",
    "current_run",
    "never",
    "remote",
    "up_to",
    "within",
)
