"""Onward: hosts LLM agents in one trio process, bounded, steerable, and asked before they go on."""

from protocol.finalization import FinalizationContext
from protocol.gate import ContinuationRequest, ContinuationResponse, DecisionReply
from protocol.limits import Limits
from protocol.result import RunResult
from protocol.stop import StopState, has_tool_call, is_loop_finished, is_step_count, max_steps

from .agent import Agent, AgentSpec, LimitsWarning, Run, always, never, remote, up_to, within
from .eventlog import EventsLost
from .runtime import Runtime, open_runtime
from .tools import Tool, files, tool

__all__ = (
    "Agent",
    "AgentSpec",
    "ContinuationRequest",
    "ContinuationResponse",
    "DecisionReply",
    "EventsLost",
    "FinalizationContext",
    "Limits",
    "LimitsWarning",
    "Run",
    "RunResult",
    "Runtime",
    "StopState",
    "Tool",
    "always",
    "files",
    "has_tool_call",
    "is_loop_finished",
    "is_step_count",
    "max_steps",
    "never",
    "open_runtime",
    "remote",
    "tool",
    "up_to",
    "within",
)
