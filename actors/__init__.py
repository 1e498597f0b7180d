"""Onward: hosts LLM agents in one trio process, bounded, steerable, and asked before they go on."""

from protocol.approval import ApprovalRequest, ApprovalResponse, approve, deny, edit
from protocol.errors import FailRun, StopRun, ToolError
from protocol.finalization import FinalizationContext
from protocol.gate import ContinuationRequest, ContinuationResponse
from protocol.limits import Limits
from protocol.model import ForceTool
from protocol.prune import prune_messages, unanswered_calls
from protocol.requests import DecisionReply
from protocol.result import RunResult
from protocol.stop import StopState, has_tool_call, is_loop_finished, is_step_count, max_steps

from .agent import (
    Agent,
    AgentSpec,
    Background,
    Budget,
    CallConfig,
    LimitsWarning,
    Loop,
    PendingTool,
    Run,
    StepOverrides,
    StepState,
    always,
    append_exchange,
    ask_agent,
    ask_model,
    background_agent,
    evaluate_stop,
    execute_tools,
    generate_step,
    handoff,
    never,
    remote,
    should_continue,
    start_agent,
    sub_agent,
    up_to,
    within,
)
from .eventlog import EventsLost
from .generate import generate, stream
from .runtime import Runtime, open_runtime
from .tools import Tool, external_tool, files, tool

__all__ = (
    "Agent",
    "AgentSpec",
    "ApprovalRequest",
    "ApprovalResponse",
    "Background",
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
    "Loop",
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
    "append_exchange",
    "approve",
    "ask_agent",
    "ask_model",
    "background_agent",
    "deny",
    "edit",
    "evaluate_stop",
    "execute_tools",
    "external_tool",
    "files",
    "generate",
    "generate_step",
    "handoff",
    "has_tool_call",
    "is_loop_finished",
    "is_step_count",
    "max_steps",
    "never",
    "open_runtime",
    "prune_messages",
    "remote",
    "should_continue",
    "start_agent",
    "stream",
    "sub_agent",
    "tool",
    "unanswered_calls",
    "up_to",
    "within",
)
