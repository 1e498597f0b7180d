"""A function's parameters, as a model may give them."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import attrs

from protocol.errors import SpecError

from ._docstring import argument_texts

__all__ = (
    "NO_DEFAULT",
    "Keywords",
    "Parameter",
    "docstring_of",
    "function_behind",
    "function_entered",
    "function_name",
    "read_keywords",
    "read_parameters",
)

NO_DEFAULT: Any = inspect.Parameter.empty
"""The default of a parameter that must be given."""

_PROPERTY = re.compile(r"[A-Za-z0-9_]{1,64}")  # what the strictest providers take as a property's name


@attrs.frozen
class Parameter:
    """One parameter of a tool's function."""

    name: str
    type: Any
    """The evaluated annotation; `msgspec.Meta` constraints in it are kept."""
    description: str
    default: Any

    @property
    def required(self) -> bool:
        """Whether the model must give it."""
        return self.default is NO_DEFAULT


def read_parameters(fn: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters that a call gives by name, those fixed by `functools.partial` left out.

    Raises `SpecError`, naming function and parameter, for what cannot be given by name or has no known type.
    """
    where = function_name(fn)
    target = function_behind(fn)
    texts = argument_texts(docstring_of(fn))
    fixed = _fixed_keywords(fn)
    return tuple([
        _read(parameter, where=where, target=target, text=texts.get(parameter.name, ""))
        for parameter in _signature(fn).parameters.values()
        if parameter.name not in fixed
    ])


@attrs.frozen
class Keywords:
    """The keywords that a function can be called with."""

    named: frozenset[str]
    needed: frozenset[str]
    """Those of `named` that have no default."""
    any_other: bool
    """Whether it takes other names, too."""
    fixed: frozenset[str]
    """What a partial gives, so that nobody else may."""

    def takes(self, name: str) -> bool:
        """Whether a call may give `name`."""
        return name not in self.fixed and (self.any_other or name in self.named)


def read_keywords(fn: Callable[..., Any]) -> Keywords:
    """The keywords of `fn`, whose parameters a foreign schema describes. Raises `SpecError` if they are not known."""
    parameters = _signature(fn).parameters.values()
    fixed = frozenset(_fixed_keywords(fn))
    named = [p for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY} and p.name not in fixed]
    return Keywords(
        named=frozenset([p.name for p in named]),
        needed=frozenset([p.name for p in named if p.default is NO_DEFAULT]),
        any_other=any(p.kind is p.VAR_KEYWORD for p in parameters),
        fixed=fixed,
    )


def function_name(fn: Callable[..., Any]) -> str:
    """The name of the function behind `fn`, or of the class of a callable object."""
    fn = _without_partials(fn)
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__


def function_entered(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What a call enters first: behind partials and callable objects, before what a decorator wraps."""
    fn = _without_partials(fn)
    return fn if inspect.isroutine(fn) else type(fn).__call__


def docstring_of(fn: Callable[..., Any]) -> str | None:
    """The docstring of the function behind `fn`; of its class, for a callable object whose `__call__` has none."""
    target = function_behind(fn)
    fn = _without_partials(fn)
    if inspect.isroutine(inspect.unwrap(fn)):
        return inspect.getdoc(target)
    return target.__doc__ or type(fn).__doc__


def function_behind(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written: behind partials, decorators, methods and callable objects."""
    fn = function_entered(inspect.unwrap(_without_partials(fn)))
    written: Callable[..., Any] = inspect.unwrap(getattr(fn, "__func__", fn))
    return written


def _without_partials(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return fn  # pyright: ignore[reportUnknownVariableType]


def _fixed_keywords(fn: Any) -> set[str]:
    """What partials give, so that the model does not."""
    fixed = set[str]()
    while isinstance(fn, functools.partial):
        fixed.update(fn.keywords)
        fn = fn.func  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return fixed


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError) as error:
        raise SpecError(
            f"tool {function_name(fn)!r}: its signature cannot be read ({error}); wrap it in a function of your own"
        ) from error


def _read(parameter: inspect.Parameter, *, where: str, target: Callable[..., Any], text: str) -> Parameter:
    name = parameter.name
    start = f"tool {where!r}: parameter {name!r}"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise SpecError(f"{start} is positional-only; a model gives arguments by name, so remove the '/'")
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        raise SpecError(f"{start} collects any arguments; name each one, or give the schema with parameters=")
    if parameter.annotation is parameter.empty:
        hint = "; make the tool of the bound method" if name in {"self", "cls"} else f"; write {name}: str, for example"
        raise SpecError(f"{start} has no type annotation{hint}")
    if not _PROPERTY.fullmatch(name) or name.startswith("__"):
        raise SpecError(
            f"{start} cannot be a property's name: providers take 1 to 64 of A-Z, a-z, 0-9 and _, "
            "and two leading underscores are Python's own"
        )
    kind = _evaluated(parameter.annotation, name, target=target, start=start)
    notes = [note for note in typing.get_args(kind)[1:] if isinstance(note, str)] if _is_annotated(kind) else []
    return Parameter(name, Any if kind is object else kind, " ".join(notes) or text, parameter.default)


def _evaluated(annotation: Any, name: str, *, target: Callable[..., Any], start: str) -> Any:
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    namespace: Mapping[str, Any] = getattr(target, "__globals__", {})
    try:
        hints = typing.get_type_hints(holder, dict(namespace), _closure(target), include_extras=True)
    except Exception as error:  # an annotation is code: whatever it raises, the tool's author must hear where
        raise SpecError(
            f"{start}: its annotation {annotation!r} cannot be evaluated ({type(error).__name__}: {error}); "
            "what it names must be importable at module level, and not only under TYPE_CHECKING"
        ) from error
    return hints[name]


def _closure(target: Callable[..., Any]) -> dict[str, Any]:
    """The enclosing function's variables that `target` uses: an annotation may name a class made there."""
    code: types.CodeType | None = getattr(target, "__code__", None)
    cells: tuple[types.CellType, ...] = getattr(target, "__closure__", None) or ()
    found: dict[str, Any] = {}
    for free, cell in zip(code.co_freevars if code else (), cells, strict=False):
        try:
            found[free] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    return found


def _is_annotated(kind: Any) -> bool:
    return typing.get_origin(kind) is Annotated
