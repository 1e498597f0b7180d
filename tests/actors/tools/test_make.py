"""Making tools of functions."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import attrs
import pytest

from actors.tools import Tool, as_tool, tool
from protocol.errors import SpecError
from protocol.model import ToolDefinition
from tests.support.unmeasured import unmeasured


def add(a: int, b: int = 2) -> int:
    """Add two numbers,
    as one does.

    Not for the model.

    Args:
        a: the first number,
            on two lines.
        b (int, optional): the second: any.

    Returns:
        int: the sum.
    """  # noqa: D205
    return a + b


async def fetch(url: str) -> str:
    """Fetch."""
    return url


class Shop:
    """A shop."""

    def price(self, item: str) -> int:
        """The price."""
        return len(item)

    def __call__(self, item: str) -> int:
        """Buy it."""
        return len(item)


class Silent:
    """Says nothing."""

    async def __call__(self, item: str) -> int:
        return len(item)


def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


def missing(a: int, b) -> None: ...  # type: ignore[no-untyped-def]
def positional(a: int, /) -> None: ...
def many(*numbers: int) -> None: ...
def options(**settings: str) -> None: ...
def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def strange(a: range) -> None: ...
def ambiguous(a: str | bytes) -> None: ...
def foreign_name(größe: int) -> None: ...  # noqa: PLC2401
def private(__a: int) -> None: ...  # noqa: PYI063
def numbers() -> Iterator[int]:
    yield 1


def test_a_function_gives_name_description_and_schema() -> None:
    """Name, first paragraph, parameters with their texts and defaults are what a model is told."""
    made = tool(add)

    assert made.definition == ToolDefinition(
        "add",
        "Add two numbers, as one does.",
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first number, on two lines."},
                "b": {"type": "integer", "description": "the second: any.", "default": 2},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    )
    assert (made.fn, made.in_thread, made.timeout_seconds) == (add, True, None)


def test_the_decorator_takes_what_overrides_the_function() -> None:
    """`@tool(...)` sets name, description and timeout."""

    @tool(name="plus", description="Sum.", timeout_seconds=2.5)
    def add(a: int) -> int:
        """Add."""
        return a

    assert (add.name, add.description, add.timeout_seconds) == ("plus", "Sum.", 2.5)


def test_an_annotation_speaks_before_the_docstring() -> None:
    """The text in `Annotated` is nearer to the parameter than the docstring, and wins."""

    @tool
    def f(a: Annotated[int, "here"], b: int) -> None:
        """F.

        Args:
            a: there
            b: only there
        """

    assert [node["description"] for node in f.parameters["properties"].values()] == ["here", "only there"]


@pytest.mark.parametrize(
    ("fn", "name", "description", "in_thread", "parameters"),
    [
        (fetch, "fetch", "Fetch.", False, ["url"]),
        (functools.partial(fetch, "x"), "fetch", "Fetch.", False, []),
        (functools.partial(add, 1), "add", "Add two numbers, as one does.", True, ["b"]),
        (functools.partial(functools.partial(add, b=1), a=2), "add", "Add two numbers, as one does.", True, []),
        (Shop().price, "price", "The price.", True, ["item"]),
        (functools.partial(Shop().price), "price", "The price.", True, ["item"]),
        (Shop(), "Shop", "Buy it.", True, ["item"]),
        (Silent(), "Silent", "Says nothing.", False, ["item"]),
        (logged(add), "add", "Add two numbers, as one does.", True, ["a", "b"]),
        (functools.cache(add), "add", "Add two numbers, as one does.", True, ["a", "b"]),
        (staticmethod(add), "add", "Add two numbers, as one does.", True, ["a", "b"]),
    ],
)
def test_all_that_can_be_called_makes_a_tool(
    fn: Callable[..., Any], name: str, description: str, in_thread: bool, parameters: list[str]
) -> None:
    """Partials (what they fix is hidden), methods, callable objects and decorated functions are functions too."""
    made = tool(fn)

    assert (name, description, in_thread) == (made.name, made.description, made.in_thread)
    assert parameters == list(made.parameters["properties"])


def test_what_a_partial_fixes_cannot_be_given() -> None:
    """A model does not override what the developer fixed."""
    made = tool(functools.partial(add, b=5))

    assert made.call(made.bind({"a": 1}).arguments) == 6
    with pytest.raises(Exception, match="b: unknown property"):
        made.bind({"a": 1, "b": 2})


def test_a_class_made_in_a_function_can_be_named() -> None:
    """An annotation may name what the enclosing function defines, if the tool's function uses it too."""

    @attrs.frozen
    class Point:
        x: int

    @tool
    def move(to: Point) -> Any:
        return Point(to.x + 1)

    assert move.call(move.bind({"to": {"x": 1}}).arguments) == Point(2)


def test_a_class_that_is_not_made_yet_cannot_be_named() -> None:
    """The error says which name is missing."""

    def f(a: Later) -> Any:
        return Later

    with pytest.raises(SpecError, match="parameter 'a': its annotation 'Later' cannot be evaluated"):
        tool(f)

    class Later: ...


def test_a_return_annotation_need_not_be_known() -> None:
    """What the function returns is not the model's business: its annotation is not evaluated."""

    def f(a: int) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        return a

    assert list(tool(f).parameters["properties"]) == ["a"]


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (missing, "tool 'missing': parameter 'b' has no type annotation; write b: str, for example"),
        (Shop.price, "tool 'price': parameter 'self' has no type annotation; make the tool of the bound method"),
        (positional, "tool 'positional': parameter 'a' is positional-only"),
        (many, "tool 'many': parameter 'numbers' collects any arguments"),
        (options, "tool 'options': parameter 'settings' collects any arguments"),
        (unknown, "tool 'unknown': parameter 'a': its annotation 'Nowhere' cannot be evaluated (NameError"),
        (strange, "tool 'strange': parameter 'a' of type range cannot be given by a model: JSON has no form"),
        (ambiguous, "tool 'ambiguous': parameter 'a' of type str | bytes cannot be given by a model: Type unions"),
        (foreign_name, "tool 'foreign_name': parameter 'größe' cannot be a property's name"),
        (private, "tool 'private': parameter '__a' cannot be a property's name"),
        (numbers, "tool 'numbers': numbers is a generator function; return the whole result"),
        (lambda: None, "a tool's name is 1 to 64 of A-Z, a-z, 0-9, _ and -; it is '<lambda>': give another with name="),
        (Shop, "a tool is made of a function, a method or an object that can be called; this is <class"),
        (3, "a tool is made of a function, a method or an object that can be called; this is 3"),
        (dict.fromkeys, "tool 'fromkeys': parameter 'iterable' is positional-only"),
        (type.__call__, "tool '__call__': parameter 'self' is positional-only"),
        (min, "tool 'min': its signature cannot be read"),
    ],
)
def test_what_cannot_be_a_tool_says_why(fn: Any, said: str) -> None:
    """A `SpecError` names function and parameter, and what would be right."""
    with pytest.raises(SpecError) as caught:
        tool(fn)

    assert str(caught.value)[: len(said)] == said


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "é", "a\n"])
def test_a_name_that_a_provider_refuses_is_refused(name: str) -> None:
    """Names are 1 to 64 of letters, digits, `_` and `-`."""
    with pytest.raises(SpecError, match="1 to 64"):
        Tool(name, "", {"type": "object"}, print, in_thread=True)


@pytest.mark.parametrize("seconds", [0, -1, True, float("nan"), float("inf"), "5"])
def test_a_timeout_is_a_number_of_seconds(seconds: Any) -> None:
    """A timeout that would never or always strike is refused."""
    with pytest.raises(SpecError, match="'add': timeout_seconds must be a number of seconds above 0"):
        tool(add, timeout_seconds=seconds)


def test_as_tool_takes_tools_and_functions() -> None:
    """A tool stays the same object."""
    made = tool(add)

    assert as_tool(made) is made
    assert as_tool(add).name == "add"
    with pytest.raises(SpecError, match="this is 'add'"):
        as_tool("add")


def test_a_tool_can_be_renamed() -> None:
    """`attrs.evolve` gives a tool whose definition and errors use the new name."""
    made = attrs.evolve(tool(add), name="plus")

    assert (made.definition.name, made.bind({"a": 1}).arguments) == ("plus", {"a": 1})
    with pytest.raises(Exception, match="Tool 'plus' was not run"):
        made.bind({})


def test_a_tool_shows_little() -> None:
    """A repr in a log is one line, without the schema."""
    shown = repr(attrs.evolve(tool(add), fn=print))

    assert shown == "Tool(name='add', fn=<built-in function print>, in_thread=True, timeout_seconds=None)"


@pytest.mark.slow
@pytest.mark.peer
def test_the_import_is_light() -> None:
    """`import actors.tools` brings neither HTTP nor a database along."""
    script = "import actors.tools, sys; print([m for m in ('httpx', 'sqlite3') if m in sys.modules])"
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=unmeasured())

    assert (ran.stdout, ran.stderr) == ("[]\n", "")
