"""Agents and their runs: the driver and the four services of each."""

from ._agent import Agent, AgentStatistics
from ._budgets import Budget
from ._context import RunContext, current_run
from ._handoff import handoff
from ._hooks import CallConfig, PendingTool, StepOverrides, StepState
from ._policies import Approval, Continuation, Remote, always, never, remote, up_to, within
from ._run import Run, RunStatistics
from ._spec import AgentSpec
from ._spec_warnings import LimitsWarning
from ._threads import ThreadStatistics, ToolThreads

__all__ = (
    "Agent",
    "AgentSpec",
    "AgentStatistics",
    "Approval",
    "Budget",
    "CallConfig",
    "Continuation",
    "LimitsWarning",
    "PendingTool",
    "Remote",
    "Run",
    "RunContext",
    "RunStatistics",
    "StepOverrides",
    "StepState",
    "ThreadStatistics",
    "ToolThreads",
    "always",
    "current_run",
    "handoff",
    "never",
    "remote",
    "up_to",
    "within",
)
