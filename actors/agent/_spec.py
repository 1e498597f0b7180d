"""An agent's settings: checked when they are made, so that a run cannot stumble over them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

import attrs

from protocol.errors import SpecError
from protocol.finalization import Instruction
from protocol.limits import Limits, at_least_one
from protocol.model import Model
from protocol.stop import DEFAULT_MAX_STEPS, StopCondition, max_steps
from protocol.text import clean

from ..tools import Tool, as_tool
from ._policies import Continuation, Remote

__all__ = ("AgentSpec", "LimitsWarning", "stop_conditions")

logger = logging.getLogger("onward")


class LimitsWarning(UserWarning):
    """Limits that cannot work together as they read: the text says why."""


def _tools(tools: Any) -> tuple[Tool, ...]:
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise SpecError(f"tools must be a sequence of tools or functions; it is {tools!r}")
    return tuple(as_tool(tool) for tool in cast("Iterable[object]", tools))


def _system(text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise SpecError(f"system must be a text or None; it is {text!r}")
    return clean(text)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _seconds(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if not (isinstance(value, (int, float)) and _is_number(value) and value > 0):
        raise SpecError(f"{field.name} must be a number above 0; it is {value!r}")


def _seconds_or_none(instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        _seconds(instance, field, value)


def _number_or_none(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not _is_number(value):
        raise SpecError(f"{field.name} must be a number or None; it is {value!r}")


def _a_bool(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise SpecError(f"{field.name} must be True or False; it is {value!r}")


def _positive(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 1:
        raise SpecError(f"{field.name} must be an integer >= 1; it is {value!r}")


def _not_negative(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 0:
        raise SpecError(f"{field.name} must be an integer >= 0; it is {value!r}")


def _on_timeout(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if value not in {"decline", "approve"}:
        raise SpecError(f"{field.name} must be 'decline' or 'approve'; it is {value!r}")


def _an_instruction(_instance: object, field: attrs.Attribute[Any], value: object) -> None:
    if not (value is None or isinstance(value, str) or callable(value)):
        raise SpecError(
            f"{field.name} must be None (off), '' (the built-in text), a text, or a function; it is {value!r}"
        )


@attrs.frozen(kw_only=True)
class AgentSpec:
    """What an agent is. Raises `SpecError` (a `ValueError`) for a setting that cannot be right.

    Limits hold for each run. `None` is no limit, everywhere.
    """

    model: Model
    name: str = "agent"
    system: str | None = attrs.field(default=None, converter=_system)
    """The system prompt."""
    tools: Sequence[Any] = attrs.field(default=(), converter=_tools)
    """Tools, or plain functions to make tools of."""

    max_tool_iterations: int | None = attrs.field(default=None, validator=at_least_one)
    """Rounds of tool calls before the gate, the final call, or the end."""
    max_llm_calls: int | None = attrs.field(default=None, validator=at_least_one)
    """Model calls of a run and all that it starts: never one more."""
    max_steps: int | None = attrs.field(default=None, validator=at_least_one)
    """Shorthand for `stop_when=[max_steps(n)]`."""
    stop_when: Sequence[StopCondition] | None = None
    """Conditions asked after every step; unset, and without any limit, 20 steps are the bound."""

    continuation: Continuation | None = None
    """Who is asked at a full window: a function, a policy, or `remote()`."""
    continuation_timeout_seconds: float | None = attrs.field(default=600.0, validator=_seconds_or_none)
    continuation_on_timeout: Literal["decline", "approve"] = attrs.field(default="decline", validator=_on_timeout)
    max_grant: int | None = attrs.field(default=None, validator=at_least_one)
    """The most that one decision may grant; `None`: the limit's own value."""

    tool_iteration_limit_finalization: Instruction | None = attrs.field(default=None, validator=_an_instruction)
    """A final call when the window is full: `None` off, `""` on with the built-in instruction, a text or function."""
    llm_call_limit_finalization: Instruction | None = attrs.field(default=None, validator=_an_instruction)
    """The last allowed model call is the final one: values as above."""
    finalization_retry: bool = attrs.field(default=False, validator=_a_bool)
    """A final call that brings no text is made once more, if the ledger grants it."""

    max_reasks: int = attrs.field(default=1, validator=_not_negative)
    """How often in a row an empty, malformed or cut turn is asked for again."""
    max_parallel_tools: int | None = attrs.field(default=None, validator=at_least_one)
    """Calls of one turn that run at the same time; 1: in order."""
    tool_timeout_seconds: float | None = attrs.field(default=None, validator=_seconds_or_none)
    """For tools that set none of their own."""
    max_tool_output_chars: int = attrs.field(default=100_000, validator=_positive)
    callback_timeout_seconds: float = attrs.field(default=60.0, validator=_seconds)
    """For stop conditions and instruction functions that are async."""
    cancel_grace_seconds: float = attrs.field(default=5.0, validator=_seconds)
    """How long a cancelled run waits for tools that ignore it before it ends without them."""

    temperature: float | None = attrs.field(default=None, validator=_number_or_none)
    max_tokens: int | None = attrs.field(default=None, validator=at_least_one)
    """The cap on a reply's output tokens."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SpecError(f"name must be a text that is not empty; it is {self.name!r}")
        if not callable(getattr(self.model, "turn", None)):
            raise SpecError(f"model must be a model, such as OpenAIChat('...') or Planner(); it is {self.model!r}")
        if self.continuation is not None and not (callable(self.continuation) or isinstance(self.continuation, Remote)):
            raise SpecError(f"continuation must be a function, a policy or remote(); it is {self.continuation!r}")
        names = [tool.name for tool in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SpecError(f"tools: {', '.join(twice)} is there more than once; every tool needs a name of its own")
        if self.stop_when is not None:
            _check_conditions(self.stop_when)
            if self.max_steps is not None:
                warnings.warn(
                    "max_steps is ignored because stop_when is set: put max_steps(n) into stop_when",
                    DeprecationWarning,
                    stacklevel=3,
                )
        self._warn_of_limits()

    def limits(self) -> Limits:
        """The limits of one run."""
        return Limits(max_tool_iterations=self.max_tool_iterations, max_llm_calls=self.max_llm_calls)

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
            changes["max_tool_iterations"] = limits.max_tool_iterations
            changes["max_llm_calls"] = limits.max_llm_calls
        if stop_when is not None:
            changes["stop_when"] = stop_when
            changes["max_steps"] = None
        if continuation is not None:
            changes["continuation"] = continuation
        return attrs.evolve(self, **changes) if changes else self

    def _warn_of_limits(self) -> None:
        rounds, calls = self.max_tool_iterations, self.max_llm_calls
        if calls is None:
            return
        texts: list[str] = []
        if self.llm_call_limit_finalization is not None and calls == 1:
            texts.append(
                "llm_call_limit_finalization with max_llm_calls=1: the only call is the final one, without tools"
            )
        if rounds is not None and self.tool_iteration_limit_finalization is not None and calls <= rounds:
            texts.append(
                f"tool_iteration_limit_finalization needs a model call after round {rounds}, but max_llm_calls={calls}"
                f" is used up by then: set max_llm_calls to {rounds + 1} or more"
            )
        if rounds is not None and self.continuation is not None and calls <= rounds + 1:
            texts.append(
                f"the gate cannot be asked: after {rounds} rounds and the call that fills the window,"
                f" max_llm_calls={calls} leaves no call to go on with: set it to {rounds + 2} or more"
            )
        for text in texts:
            warnings.warn(text, LimitsWarning, stacklevel=4)


def _check_conditions(conditions: object) -> None:
    if not isinstance(conditions, Sequence) or isinstance(conditions, str):
        raise SpecError(f"stop_when must be a sequence of conditions; it is {conditions!r}")
    if not conditions:
        raise SpecError("stop_when=[] has no condition: to run until the model is done, say [is_loop_finished()]")
    for condition in cast("Sequence[object]", conditions):
        if not callable(condition):
            raise SpecError(f"stop_when: {condition!r} is no condition: it must be callable with a StopState")


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
            logger.warning("the default of %d steps cut run of agent %s: set max_steps", DEFAULT_MAX_STEPS, spec.name)
        return verdict

    return (default_max_steps,)
