"""The journal in one SQLite file, as users make it. The database itself is imported when it is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from protocol.errors import SpecError

from ._disk import DiskJournal, Store

__all__ = ("SQLiteJournal",)


class SQLiteJournal(DiskJournal):
    """A journal in one SQLite file, which is made if it is not there; `open_runtime(journal="onward.db")` makes one.

    What is acknowledged survives the death of the process (`durability="process"`), or the loss of power too
    (`"power"`: each commit waits for the disk itself). `keep_seconds` is how long events and past steps of agents can be
    looked at after newer ones have come (a week); `max_bytes` bounds the file: above it, the oldest of them go at once.
    What brings agents back is always kept. `max_buffer_bytes` is how much may wait for the disk: beyond it the journal fails,
    as for a full disk, rather than forget.

    Raises `SpecError` for a setting that cannot be right. Opening it raises `JournalError`: for a file that is no journal, is
    damaged, was made by a newer version, cannot be written, or is in use by another process.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["process", "power"] = "process",
        keep_seconds: float = 7 * 24 * 3600.0,
        max_bytes: int = 1024 * 1024 * 1024,
        max_buffer_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        if durability not in {"process", "power"}:
            raise SpecError(f"durability must be 'process' or 'power'; it is {durability!r}")
        if not str(path).strip():
            raise SpecError("the journal needs the path of a file, such as 'onward.db'")
        self.path = Path(path)
        """Where the file is."""
        self._settings = durability == "power", keep_seconds, max_bytes
        super().__init__(self._make, max_buffer_bytes=max_buffer_bytes)

    def _make(self) -> Store:
        from ._sqlite import SQLiteStore

        for_power, keep_seconds, max_bytes = self._settings
        return SQLiteStore(self.path, for_power=for_power, keep_seconds=keep_seconds, max_bytes=max_bytes)

    def __repr__(self) -> str:
        return f"<SQLiteJournal {self.path}>"
