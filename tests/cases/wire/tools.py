"""Tools that only the cases with a server tell of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..tools import BEHAVIOURS, Workshop


@BEHAVIOURS.says(r"return args\.q")
def _returns_its_query(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(q: str) -> str:
        work.enter(name, q=q)
        return q

    return body


@BEHAVIOURS.says(r"store content")
def _stores_content(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(path: str, content: str) -> None:
        work.enter(name, path=path, content=content)
        work.written.append((path, content))

    return body
