"""The tasks of the process as they are now: who has started whom, what each is called, and where it waits.

Names, files, lines and functions are shown, and no value of anything. It is synchronous and touches nothing, so that it can
be called from a signal handler: also where the loop hangs.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import trio

from protocol.text import cut_middle

__all__ = ("format_task_tree",)

_TRIO = f"{Path(trio.__file__).parent}{os.sep}"
_LONGEST_NAME = 100
_MOST_FRAMES = 100
_SHOWN_PARTS = 3
"""Of a file's path: enough to find it."""


def format_task_tree(*, max_lines: int = 2000, max_siblings: int = 100, running: FrameType | None = None) -> str:
    """The tasks of the trio run in this thread, one a line, those of a nursery below the task that opened it.

    Behind a name stands where the task waits: its own innermost line, and what of trio it waits in. Of more than
    `max_siblings` tasks in one nursery, and beyond `max_lines`, the rest are counted. `running` is a frame that runs now,
    as a signal handler is given it: what it says of a loop that hangs stands on top.

    Raises `RuntimeError` outside of `trio.run()`.
    """
    root = trio.lowlevel.current_root_task()
    if root is None:
        raise RuntimeError("no trio runs in this thread")
    count = sum(1 for _ in _tasks(root))
    lines = [f"{count} tasks"]
    if running is not None:
        lines.append(f"running now: {_place(running, running.f_lineno)}")
    for number, line in enumerate(_lines(root, max_siblings)):
        if number >= max_lines:
            lines.append("... and more")
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def _tasks(root: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """All tasks, in no order."""
    left = [root]
    while left:
        task = left.pop()
        yield task
        for nursery in task.child_nurseries:
            left += nursery.child_tasks


def _lines(root: trio.lowlevel.Task, max_siblings: int) -> Iterator[str]:
    left: list[tuple[str, trio.lowlevel.Task | str]] = [("", root)]
    while left:
        indent, task = left.pop()
        if isinstance(task, str):
            yield f"{indent}{task}"
            continue
        yield f"{indent}{_name(task)}  {_where(task)}".rstrip()
        below: list[tuple[str, trio.lowlevel.Task | str]] = []
        for nursery in task.child_nurseries:
            children = sorted(nursery.child_tasks, key=_name)
            below += [(f"{indent}  ", child) for child in children[:max_siblings]]
            if len(children) > max_siblings:
                below.append((f"{indent}  ", f"... and {len(children) - max_siblings} more"))
        left += reversed(below)


def _name(task: trio.lowlevel.Task) -> str:
    return cut_middle("".join([char if char.isprintable() else "?" for char in task.name]), _LONGEST_NAME)


def _where(task: trio.lowlevel.Task) -> str:
    """The innermost line that is not trio's own, and what it called of trio."""
    own = inside = ""
    for frame, line in itertools.islice(task.iter_await_frames(), _MOST_FRAMES):
        if not frame.f_code.co_filename.startswith(_TRIO):
            own, inside = _place(frame, line), ""
        elif not inside:
            inside = f"in {frame.f_code.co_qualname}"
    return f"{own} {inside}".strip()


def _place(frame: FrameType, line: int) -> str:
    path = "/".join(Path(frame.f_code.co_filename).parts[-_SHOWN_PARTS:])
    return f"{path}:{line} {frame.f_code.co_qualname}"
