"""An agent's settings: checked when they are made, so that a run cannot stumble over them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import attrs

from protocol.errors import SpecError
from protocol.finalization import Instruction
from protocol.limits import LimitName, Limits, above_zero, at_least_one
from protocol.model import Model, ToolChoice
from protocol.prices import PriceTable
from protocol.stop import DEFAULT_MAX_STEPS, StopCondition, max_steps

from ..logs import get_logger
from . import _checks as checks
from ._budgets import Budget, check_prices
from ._hooks import (
    AroundTool,
    CheckAnswer,
    Compact,
    ContinueWhen,
    OnContextOverflow,
    OnRunEnd,
    OnStep,
    PrepareCall,
    PrepareStep,
)
from ._policies import Approval, Continuation
from ._spec_warnings import warn_of_limits

__all__ = ("AgentSpec", "stop_conditions")

logger = get_logger(__name__)


@attrs.frozen(kw_only=True)
class AgentSpec:
    """What an agent is. Raises `SpecError` (a `ValueError`) for a setting that cannot be right.

    Limits hold for each run. `None` is no limit, everywhere. Functions may be plain or async, unless it says otherwise.
    """

    model: Model
    name: str = "agent"
    system: str | None = attrs.field(default=None, converter=checks.system_text)
    """The system prompt."""
    tools: Sequence[Any] = attrs.field(default=(), converter=checks.tools_of)
    """Tools, or plain functions to make tools of."""

    max_tool_iterations: int | None = attrs.field(default=None, validator=at_least_one)
    """Rounds of tool calls before the gate, the final call, or the end."""
    max_llm_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Model calls of a run and all that it starts: never one more."""
    max_tool_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Tool bodies entered by a run and all that it starts."""
    max_total_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """Tokens of a run and all that it starts; a request that could exceed it is not sent."""
    max_cost: float | None = attrs.field(default=None, validator=above_zero)
    """US dollars; needs `prices`."""
    wall_clock_seconds: float | None = attrs.field(default=None, validator=above_zero)
    """Seconds of work; what is running then is cut. Waits for a decision or for the caller do not count."""
    max_steps: int | None = attrs.field(default=None, validator=at_least_one)
    """Shorthand for `stop_when=[max_steps(n)]`."""
    stop_when: Sequence[StopCondition] | None = None
    """Conditions asked after every step; unset, and without any limit, 20 steps are the bound."""
    budget: Budget | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(Budget))
    )
    """What all runs of this agent, and whoever else has the same object, draw on together."""
    prices: PriceTable | None = None
    """What models cost; `None`: costs are unknown."""

    continuation: Continuation | None = attrs.field(default=None, validator=checks.a_provider)
    """Who is asked at a full window: a function, a policy, or `remote()`."""
    gate_on: Collection[LimitName] = attrs.field(default=(), validator=checks.a_limit_set)
    """Further limits that `continuation` is asked about, before a run ends at them."""
    continuation_timeout_seconds: float | None = attrs.field(default=600.0, validator=checks.seconds_or_none)
    continuation_on_timeout: Literal["decline", "approve"] = attrs.field(
        default="decline", validator=checks.an_on_timeout
    )
    max_grant: int | None = attrs.field(default=None, validator=at_least_one)
    """The most that one decision of a client may grant; `None`: the limit's own value."""
    approval: Approval | None = attrs.field(default=None, validator=checks.a_provider)
    """Who is asked before a tool that needs approval runs: a function, or `remote()`."""
    approval_timeout_seconds: float | None = attrs.field(default=600.0, validator=checks.seconds_or_none)

    tool_iteration_limit_finalization: Instruction | None = attrs.field(default=None, validator=checks.an_instruction)
    """A final call when the window is full, or the tool calls are used up: `None` off, `""` on with the built-in
    instruction, a text or a function."""
    llm_call_limit_finalization: Instruction | None = attrs.field(default=None, validator=checks.an_instruction)
    """The last allowed model call is the final one: values as above."""
    budget_finalization: Instruction | None = attrs.field(default=None, validator=checks.an_instruction)
    """A final call before tokens, cost or time run out: values as above."""
    finalize_on_stop: Instruction | None = attrs.field(default=None, validator=checks.an_instruction)
    """A final call when a stop condition is met: values as above."""
    finalization_window_seconds: float = attrs.field(default=30.0, validator=checks.seconds)
    """The last seconds of `wall_clock_seconds`, half of it at most: a step boundary in them begins the final call."""
    finalization_retry: bool = attrs.field(default=False, validator=checks.a_bool)
    """A final call that brings no text is made once more, if the ledger grants it."""

    prepare_call: PrepareCall | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Changes one model call: asked before each, with its eight settings."""
    prepare_step: PrepareStep | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """The fuller hook; one of the two."""
    continue_when: ContinueWhen | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Asked on a natural end: a text is appended as a user message, and the run goes on."""
    check_answer: CheckAnswer | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Asked about every answer: a text is a complaint, and the model is asked again with it."""
    max_continues: int = attrs.field(default=3, validator=checks.not_negative)
    """How often these two may keep a run going."""
    around_tool: AroundTool | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Async; stands around every tool call that may run."""
    on_context_overflow: OnContextOverflow | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Asked for a shorter conversation when a request was refused for its length; once per step."""
    compact: Compact | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Asked for a shorter conversation, which takes the place of the stored one: `trim()`, `summarise()`, or a function. If
    it fails, a `warning` event says so and nothing is changed."""
    compact_at_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """The estimated size of a request above which it is asked, before the model call; `None`: four fifths of the model's
    context window, where that is known."""
    max_compactions: int = attrs.field(default=3, validator=checks.not_negative)
    """How often in one step it is asked because the server refused the request for its length."""
    on_step: OnStep | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Observes every finished step. What it raises is a `warning` event and changes nothing."""
    on_run_end: OnRunEnd | None = attrs.field(default=None, validator=checks.a_function_or_none)
    """Observes every result, on a cancel too: shielded, and bounded by `callback_timeout_seconds`."""

    max_reasks: int = attrs.field(default=1, validator=checks.not_negative)
    """How often in a row an empty, malformed or cut turn is asked for again."""
    automatic_continuation: bool | None = attrs.field(default=None, validator=checks.a_bool_or_none)
    """Whether a turn that a token limit cut goes on by itself. `None`: where the provider hands out a token for that or
    paused by itself, and where tool calls were cut by a cap that nobody set; `True`: any visible text; `False`: never."""
    max_hops: int = attrs.field(default=32, validator=checks.positive)
    """How often one turn is continued; each time is a model call of its own, unless the provider gave a token."""
    max_parallel_tools: int | None = attrs.field(default=None, validator=at_least_one)
    """Calls of one turn that run at the same time; 1: in order."""
    tool_timeout_seconds: float | None = attrs.field(default=None, validator=checks.seconds_or_none)
    """For tools that set none of their own. A tool whose agent waits for a decision stands still."""
    max_tool_output_chars: int = attrs.field(default=100_000, validator=checks.positive)
    callback_timeout_seconds: float = attrs.field(default=60.0, validator=checks.seconds)
    """For hooks, conditions and instruction functions that are async."""
    cancel_grace_seconds: float = attrs.field(default=5.0, validator=checks.seconds)
    """How long a cancelled run waits for tools that ignore it before it ends without them."""

    temperature: float | None = attrs.field(default=None, validator=checks.number_or_none)
    max_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """The cap on a reply's output tokens."""
    tool_choice: ToolChoice = attrs.field(default="auto", validator=checks.a_tool_choice)
    """`required` and `ForceTool(name)` hold until the model has obeyed."""
    provider_options: Mapping[str, Any] | None = attrs.field(default=None, validator=checks.options_or_none)
    """Further fields of the provider's own request."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SpecError(f"name must be a text that is not empty; it is {self.name!r}")
        if not callable(getattr(self.model, "turn", None)):
            raise SpecError(f"model must be a model, such as OpenAIChat('...') or Planner(); it is {self.model!r}")
        if self.prepare_call is not None and self.prepare_step is not None:
            raise SpecError("prepare_call and prepare_step are two forms of one hook: give one of them")
        checks.check_forced_tool(self.tool_choice, self.tools, hooked=bool(self.prepare_call or self.prepare_step))
        unasked = [tool.name for tool in self.tools if tool.needs_approval is not False]
        if unasked and self.approval is None:
            raise SpecError(
                f"tools: {', '.join(unasked)} needs approval, and nobody is there to give it: set approval= to a function"
                " or remote()"
            )
        if self.gate_on and self.continuation is None:
            raise SpecError("gate_on names limits to ask about, and nobody is there to ask: set continuation=")
        if self.compact_at_tokens is not None and self.compact is None:
            raise SpecError("compact_at_tokens says when, and nothing says how: set compact=, such as trim()")
        if self.stop_when is not None:
            checks.check_conditions(self.stop_when)
            if self.max_steps is not None:
                warnings.warn(
                    "max_steps is ignored because stop_when is set: put max_steps(n) into stop_when",
                    DeprecationWarning,
                    stacklevel=3,
                )
        check_prices(self.max_cost, self.prices, self.model.name)
        warn_of_limits(self)

    def agent_named(self, name: str | None) -> AgentSpec | None:
        """The agent of that name among those that this one may hand over to, however far; for a run that is taken up."""
        seen: set[int] = set()
        waiting: list[AgentSpec] = [self] if name is not None else []
        while waiting:
            spec = waiting.pop()
            if spec.name == name and spec is not self:
                return spec
            seen.add(id(spec))
            targets: list[AgentSpec] = [tool.target() for tool in spec.tools if tool.target is not None]
            waiting += [target for target in targets if id(target) not in seen]
        return None

    def limits(self) -> Limits:
        """The limits of one run."""
        return Limits(**{field.name: getattr(self, field.name) for field in attrs.fields(Limits)})

    def for_run(
        self,
        *,
        limits: Limits | None = None,
        stop_when: Sequence[StopCondition] | None = None,
        continuation: Continuation | None = None,
    ) -> AgentSpec:
        """The settings of one run: these, with what is given in place of the agent's own (R6)."""
        changes: dict[str, Any] = {}
        if limits is not None:
            if not isinstance(limits, Limits):
                raise SpecError(f"limits must be a Limits(...); it is {limits!r}")
            changes.update((field.name, getattr(limits, field.name)) for field in attrs.fields(Limits))
        if stop_when is not None:
            changes["stop_when"] = stop_when
        if continuation is not None:
            changes["continuation"] = continuation
        if changes and changes.get("stop_when", self.stop_when) is not None:
            changes["max_steps"] = None  # that it is ignored has been said
        return attrs.evolve(self, **changes) if changes else self


def stop_conditions(spec: AgentSpec) -> tuple[StopCondition, ...]:
    """The conditions of a run: those set, or the default bound where nothing bounds it (S5)."""
    if spec.stop_when is not None:
        return tuple(spec.stop_when)
    if spec.max_steps is not None:
        return (max_steps(spec.max_steps),)
    if spec.max_tool_iterations is not None or spec.max_llm_calls is not None:
        return ()
    bound = max_steps(DEFAULT_MAX_STEPS)

    def default_max_steps(state: Any) -> Any:
        verdict = bound(state)
        if verdict:
            logger.warning("the default bound cut a run: set max_steps", steps=DEFAULT_MAX_STEPS, agent_name=spec.name)
        return verdict

    return (default_max_steps,)
