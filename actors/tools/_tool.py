"""A tool: a function, what a model is told of it, and how a call's arguments reach it."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, overload

import attrs

from protocol.errors import SpecError
from protocol.model import ToolDefinition
from protocol.text import clean

from ._binders import foreign_binder, signature_binder
from ._bound import Binder, Bound
from ._docstring import first_paragraph
from ._foreign import check_function, read_schema
from ._schema import schema_of
from ._signature import Keywords, docstring_of, function_behind, function_entered, function_name, read_parameters

__all__ = ("NeedsApproval", "Tool", "as_tool", "external_tool", "tool")

NeedsApproval: TypeAlias = bool | Callable[[dict[str, Any]], bool | Awaitable[bool]]
"""Whether a call must be allowed before it runs: always, never, or as a function of its JSON arguments says."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _check_name(_tool: Tool, _field: attrs.Attribute[str], name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(f"a tool's name is 1 to 64 of A-Z, a-z, 0-9, _ and -; it is {name!r}: give another with name=")


def _check_description(tool_: Tool, _field: attrs.Attribute[str], text: Any) -> None:
    if not isinstance(text, str):
        raise SpecError(f"tool {tool_.name!r}: description must be a text for the model; it is {text!r}")


def _cleaned(text: Any) -> Any:
    return clean(text) if isinstance(text, str) else text


def _check_timeout(tool_: Tool, _field: attrs.Attribute[float | None], seconds: Any) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise SpecError(
            f"tool {tool_.name!r}: timeout_seconds must be a number of seconds above 0, or None for the agent's own; "
            f"it is {seconds!r}"
        )


def _check_approval(tool_: Tool, _field: attrs.Attribute[Any], value: Any) -> None:
    if not isinstance(value, bool) and not callable(value):
        raise SpecError(
            f"tool {tool_.name!r}: needs_approval must be True, False or a function of the arguments; it is {value!r}"
        )


def _check_ends_run(tool_: Tool, _field: attrs.Attribute[Any], value: Any) -> None:
    if not isinstance(value, bool):
        raise SpecError(f"tool {tool_.name!r}: ends_run must be True or False; it is {value!r}")


def _foreign_binder(tool_: Tool) -> Binder:
    schema = read_schema(tool_.parameters, where=tool_.name)
    if tool_.fn is None:
        return foreign_binder(schema, Keywords(frozenset(), frozenset(), any_other=True, fixed=frozenset()))
    return foreign_binder(schema, check_function(tool_.fn, schema, where=tool_.name))


def _definition(tool_: Tool) -> ToolDefinition:
    return ToolDefinition(tool_.name, tool_.description, tool_.parameters)


@attrs.frozen(eq=False)
class Tool:
    """A function that a model may call. Made by `tool`; made by hand, `parameters` is taken as with `tool(parameters=)`.

    Raises `SpecError` for a bad name, schema or timeout.
    """

    name: str = attrs.field(validator=_check_name)
    """1 to 64 of letters, digits, `_` and `-`, as all providers take it."""
    description: str = attrs.field(repr=False, converter=_cleaned, validator=_check_description)
    """What it does and when to use it, for the model."""
    parameters: Mapping[str, Any] = attrs.field(repr=False)
    """A JSON Schema whose type is `object`. Do not change it."""
    fn: Callable[..., Any] | None
    """What runs: called with keyword arguments; `None`: the caller of the run gives the result."""
    in_thread: bool = attrs.field(kw_only=True)
    """Whether `fn` blocks, so that it must run in a worker thread; else it is an async function."""
    timeout_seconds: float | None = attrs.field(default=None, kw_only=True, validator=_check_timeout)
    """How long one call may take; `None`: as the agent says."""
    needs_approval: NeedsApproval = attrs.field(default=False, kw_only=True, repr=False, validator=_check_approval)
    """Whether somebody must allow a call before it runs; or a function that says so of the call's JSON arguments."""
    ends_run: bool = attrs.field(default=False, kw_only=True, repr=False, validator=_check_ends_run)
    """The run ends once a call of this tool has succeeded, after the results of its turn are stored."""
    target: Callable[[], Any] | None = attrs.field(default=None, kw_only=True, repr=False)
    """Gives the agent that a call hands the run over to: see `handoff`."""
    _binder: Binder = attrs.field(
        default=attrs.Factory(_foreign_binder, takes_self=True), kw_only=True, repr=False, alias="binder"
    )
    definition: ToolDefinition = attrs.field(
        default=attrs.Factory(_definition, takes_self=True), init=False, repr=False
    )
    """What a model is told."""

    @property
    def external(self) -> bool:
        """Whether it has no body: the run pauses until its caller gives the result."""
        return self.fn is None

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the function with bound arguments."""
        if self.fn is None:
            raise TypeError(f"tool {self.name} has no body")
        return self.fn(**arguments)

    def bind(self, arguments: dict[str, Any]) -> Bound:
        """Validate decoded JSON arguments, and make keyword arguments for `fn` of them.

        `arguments` is left as it is. Raises `ArgumentsInvalid`, and nothing else; its text is for the model.
        """
        return self._binder(self.name, arguments)


@overload
def tool(
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout_seconds: float | None = None,
    needs_approval: NeedsApproval = False,
    ends_run: bool = False,
) -> Tool: ...


@overload
def tool(
    fn: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout_seconds: float | None = None,
    needs_approval: NeedsApproval = False,
    ends_run: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout_seconds: float | None = None,
    needs_approval: NeedsApproval = False,
    ends_run: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `tool(fn)`, `@tool`, or `@tool(name=..., timeout_seconds=...)`.

    `fn` is any function, sync (it will run in a thread) or async, a bound method, a `functools.partial` (what it fixes
    is hidden from the model) or an object that can be called. Name and description (the docstring's first paragraph)
    are the function's own unless given. The schema is read from the signature, with descriptions from the docstring's
    `Args:` section or from `Annotated[T, "text"]`; types may be str, int, float, bool, None, list, tuple, set, dict,
    Literal, Enum, datetime, date, UUID, Decimal, Path, attrs classes, dataclasses, TypedDict and unions of them.

    `parameters` gives a JSON Schema instead. Of such a schema, types, required and unknown properties, items, `enum`,
    `const`, unions and local references are checked before a call; ranges, patterns and formats are not, and the values
    reach `fn` as JSON has them.

    Raises `SpecError`, naming function and parameter, for what a model could not be told or could not give.
    """
    if fn is None:
        return lambda fn: tool(
            fn,
            name=name,
            description=description,
            parameters=parameters,
            timeout_seconds=timeout_seconds,
            needs_approval=needs_approval,
            ends_run=ends_run,
        )
    if not callable(fn) or isinstance(fn, type):  # pyright: ignore[reportUnnecessaryComparison]
        raise SpecError(f"a tool is made of a function, a method or an object that can be called; this is {fn!r}")
    where = name or function_name(fn)
    target = function_behind(fn)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise SpecError(f"tool {where!r}: {target.__qualname__} is a generator function; return the whole result")
    if description is None:
        description = first_paragraph(docstring_of(fn))
    binder: Binder
    if parameters is None:
        taken = read_parameters(fn)
        schema = schema_of(taken, where=where)
        binder = signature_binder(taken, schema)
    else:
        schema = read_schema(parameters, where=where)
        binder = foreign_binder(schema, check_function(fn, schema, where=where))
    return Tool(
        where,
        description,
        schema,
        fn,
        in_thread=not inspect.iscoroutinefunction(function_entered(fn)),
        timeout_seconds=timeout_seconds,
        needs_approval=needs_approval,
        ends_run=ends_run,
        binder=binder,
    )


def external_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    *,
    needs_approval: NeedsApproval = False,
    ends_run: bool = False,
    target: Callable[[], Any] | None = None,
) -> Tool:
    """A tool without a body: the run pauses at its calls, and goes on when `run.submit()` has given their results.

    `parameters` is a JSON Schema whose type is `object`; arguments are checked as with `tool(parameters=)`. Raises
    `SpecError`.
    """
    return Tool(
        name,
        description,
        read_schema(parameters, where=name),
        None,
        in_thread=False,
        needs_approval=needs_approval,
        ends_run=ends_run,
        target=target,
    )


def as_tool(value: Any) -> Tool:
    """A `Tool` as it is, and a function as a tool. Raises `SpecError` for anything else."""
    if isinstance(value, Tool):
        return value
    fn: Callable[..., Any] = value
    return tool(fn)
