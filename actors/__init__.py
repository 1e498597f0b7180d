"""Onward: hosts LLM agents in one trio process, bounded, steerable, and asked before they go on."""

from protocol.approval import ApprovalRequest, ApprovalResponse, approve, deny, edit
from protocol.errors import FailRun, StopRun, ToolError
from protocol.finalization import FinalizationContext
from protocol.gate import ContinuationRequest, ContinuationResponse
from protocol.limits import Limits
from protocol.model import ForceTool
from protocol.requests import DecisionReply
from protocol.result import RunResult
from protocol.stop import StopState, has_tool_call, is_loop_finished, is_step_count, max_steps

from .agent import (
    Agent,
    AgentSpec,
    Budget,
    CallConfig,
    LimitsWarning,
    PendingTool,
    Run,
    StepOverrides,
    StepState,
    always,
    handoff,
    never,
    remote,
    up_to,
    within,
)
from .eventlog import EventsLost
from .runtime import Runtime, open_runtime
from .tools import Tool, external_tool, files, tool

__all__ = (
    "Agent",
    "AgentSpec",
    "ApprovalRequest",
    "ApprovalResponse",
    "Budget",
    "CallConfig",
    "ContinuationRequest",
    "ContinuationResponse",
    "DecisionReply",
    "EventsLost",
    "FailRun",
    "FinalizationContext",
    "ForceTool",
    "Limits",
    "LimitsWarning",
    "PendingTool",
    "Run",
    "RunResult",
    "Runtime",
    "StepOverrides",
    "StepState",
    "StopRun",
    "StopState",
    "Tool",
    "ToolError",
    "always",
    "approve",
    "deny",
    "edit",
    "external_tool",
    "files",
    "handoff",
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
