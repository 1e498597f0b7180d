"""SIGUSR1: which tasks there are, and where each waits."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Generator
from types import FrameType

from ..kit import format_task_tree
from ._now import write_now

__all__ = ("tree_on_signal",)


@contextlib.contextmanager
def tree_on_signal(descriptor: int) -> Generator[None]:
    """Inside the block, in the main thread and in `trio.run()`, write the tree of tasks there whenever SIGUSR1 comes.

    A handler of the system's own, and no task: it tells also of a loop that hangs.
    """

    def show(_number: int, frame: FrameType | None) -> None:
        try:
            tree = format_task_tree(running=frame)
        except Exception as error:  # noqa: BLE001  it would be raised wherever the program is just now
            tree = f"the tasks cannot be shown: {type(error).__name__}\n"
        write_now(descriptor, tree)

    before = signal.signal(signal.SIGUSR1, show)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)
