"""Reading docstrings."""

from __future__ import annotations

import pytest

from actors.tools import tool


@pytest.mark.parametrize(
    ("docstring", "paragraph", "texts"),
    [
        (None, "", {}),
        ("", "", {}),
        ("One.", "One.", {}),
        ("\n    One\n    two.\n\n    Three.\n    ", "One two.", {}),
        ("Args:\n    a: x", "", {"a": "x"}),
        ("One.\nArgs:\n    a: x\n    b: y", "One.", {"a": "x", "b": "y"}),
        ("One.\n\nArguments:\n  a (str): x\n  b (dict[str, (int)]): y", "One.", {"a": "x", "b": "y"}),
        ("One.\n\nArgs:\n    a: x\n\n    b: y\n\nReturns:\n    c: z", "One.", {"a": "x", "b": "y"}),
        ("One.\n\nArgs:\n    a: x:\n        y: z\n    b:\n        late", "One.", {"a": "x: y: z", "b": "late"}),
        ("One.\n\nArgs:\n    *a: x\n    **b: y", "One.", {"a": "x", "b": "y"}),
        ("One.\n\nArgs:\n    no entry\n    a: x", "One.", {"a": "x"}),
        ("One.\n\nArgs:\n    a: x\n    goes on here", "One.", {"a": "x goes on here"}),
    ],
)
def test_a_docstring_describes_tool_and_parameters(
    docstring: str | None, paragraph: str, texts: dict[str, str]
) -> None:
    """The first paragraph and the entries of `Args:` come on one line each."""

    def f(a: str = "", b: str = "") -> None: ...

    f.__doc__ = docstring
    made = tool(f)
    described = {name: node["description"] for name, node in made.parameters["properties"].items() if len(node) > 2}

    assert paragraph == made.description
    assert texts == described
