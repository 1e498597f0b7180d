"""Agents and their runs: the driver and the four services of each."""

from ._agent import Agent
from ._agent_statistics import AgentStatistics
from ._budgets import Budget, BudgetBook
from ._compactors import summarise, trim
from ._context import RunContext, current_run
from ._core import RunCore
from ._ground import Ground
from ._handoff import handoff
from ._helper import ask_model
from ._hooks import CallConfig, CompactState, PendingTool, StepOverrides, StepState
from ._manual import Loop, append_exchange, evaluate_stop, execute_tools, generate_step, should_continue
from ._models import ModelUse
from ._opening import as_fork
from ._places import Places
from ._policies import Approval, Continuation, Remote, always, never, remote, up_to, within
from ._probe import CallProbe, Probe, ProbedRun, RunProbe, ToolProbe, Watch
from ._run import Run, RunStatistics
from ._shared import RuntimeLimits, Shared
from ._spec import AgentSpec
from ._spec_warnings import LimitsWarning
from ._starting import Starting
from ._steer import steer
from ._step_watch import StepWatch, watching
from ._subagents import Background, ask_agent, background_agent, start_agent, sub_agent
from ._submit import submit
from ._threads import ThreadStatistics

__all__ = (
    "Agent",
    "AgentSpec",
    "AgentStatistics",
    "Approval",
    "Background",
    "Budget",
    "BudgetBook",
    "CallConfig",
    "CallProbe",
    "CompactState",
    "Continuation",
    "Ground",
    "LimitsWarning",
    "Loop",
    "ModelUse",
    "PendingTool",
    "Places",
    "Probe",
    "ProbedRun",
    "Remote",
    "Run",
    "RunContext",
    "RunCore",
    "RunProbe",
    "RunStatistics",
    "RuntimeLimits",
    "Shared",
    "Starting",
    "StepOverrides",
    "StepState",
    "StepWatch",
    "ThreadStatistics",
    "ToolProbe",
    "Watch",
    "always",
    "append_exchange",
    "as_fork",
    "ask_agent",
    "ask_model",
    "background_agent",
    "current_run",
    "evaluate_stop",
    "execute_tools",
    "generate_step",
    "handoff",
    "never",
    "remote",
    "should_continue",
    "start_agent",
    "steer",
    "sub_agent",
    "submit",
    "summarise",
    "trim",
    "up_to",
    "watching",
    "within",
)
