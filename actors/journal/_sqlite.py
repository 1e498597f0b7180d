"""The store in SQLite: one table, one statement for each commit.

A statement for each row would let go of the interpreter's lock once a row, and wait for it each time: with a busy
scheduler that is tens of milliseconds for a hundred rows. One statement with many rows waits once.

A second process is kept out by a lock on a file beside the database, which the system lets go of when its holder dies
however it dies. Readers that only look (`onward journal`) take no lock and read what has been committed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from protocol.codec import decode
from protocol.errors import JournalError
from protocol.records import BUDGET_PREFIX, Made, Record, StoredEvents

from ._compact import merged
from ._journal import KnownAgent
from ._schema import APPLICATION_ID, SCHEMA, create, migrate

__all__ = ("SQLiteStore",)

_COLUMNS = "agent, first, count, events, facts, whole"
_ROW = "(?, ?, ?, ?, ?, ?, ?)"
_MOST_ROWS = 4000
"""In one statement: seven values each, and SQLite takes 32 766."""
_WAL_PAGES = 2000
"""Before the write-ahead log (32 MB then) is put into the file: with the default of 4096 bytes and 1000 pages a record costs
three times as much, and four times on the clock."""
_FULL_BATCH = 200
"""Records that are merged, or let go of, at a time: commits wait meanwhile."""


class SQLiteStore:
    """Implements `Store`. `read_only` opens a file to look at it, while another process may be writing."""

    def __init__(
        self,
        path: Path,
        *,
        for_power: bool = False,
        keep_seconds: float = 0.0,
        whole_seconds: float = 3600.0,
        max_bytes: int = 0,
        read_only: bool = False,
    ) -> None:
        self._path = path
        self._for_power = for_power
        self._keep_seconds = keep_seconds
        self._whole_seconds = whole_seconds
        """How long deltas are not merged: a client may come back to the middle of them, after a restart too."""
        self._max_bytes = max_bytes
        self._read_only = read_only
        self._database: sqlite3.Connection | None = None
        self._lock: sqlite3.Connection | None = None
        self._statements: dict[int, str] = {}
        self._files: dict[Path, int] = {}
        """Which files are being written, by path: their numbers on the disk."""

    # ------------------------------------------------------------ opening

    def open(self) -> tuple[KnownAgent, ...]:
        """Open or make the file, and check that it is what it should be; the agents it holds."""
        with contextlib.ExitStack() as undo, self._errors():
            undo.callback(self.close)
            if self._read_only:
                if not self._path.is_file():
                    raise JournalError(f"there is no journal {self._path}")
            else:
                self._take_lock()
                self._make_file()
            self._database = self._connect()
            self._check()
            known = self._known()
            self._files = {self._path: self._path.stat().st_ino}
            undo.pop_all()
        return known

    def close(self) -> None:
        """Close it."""
        for connection in (self._database, self._lock):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._database = self._lock = None

    def _take_lock(self) -> None:
        beside = self._path.with_name(self._path.name + "-lock")
        try:
            self._lock = sqlite3.connect(beside, timeout=0, isolation_level=None, check_same_thread=False)
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise JournalError(
                    f"the journal {self._path} is in use by another process: end it, or use another file"
                ) from error
            raise

    def _make_file(self) -> None:
        """Make the file, for its owner alone: conversations are nobody else's business."""
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self._read_only else "rw"
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, cached_statements=64)

    def _check(self) -> None:
        """Refuse what is no journal, is damaged or too new; bring an older one up to date."""
        database = self._db
        application, version, tables = database.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application == 0 and tables == 0 and not self._read_only:
            create(database)
            version = SCHEMA
        elif application != APPLICATION_ID:
            raise JournalError(f"{self._path} is a database, but no journal of Onward: give another path")
        if version > SCHEMA:
            raise JournalError(
                f"the journal {self._path} was made by a newer version of Onward (its schema is {version}, this one"
                f" knows {SCHEMA}): use that version"
            )
        faults = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if faults != "ok":
            raise JournalError(f"the journal {self._path} is damaged: {faults}; restore it from a copy")
        if self._read_only:
            return
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
        database.execute(f"PRAGMA synchronous={'FULL' if self._for_power else 'NORMAL'}")
        migrate(database, version)

    def _known(self) -> tuple[KnownAgent, ...]:
        """By the last whole record of each agent, in the order in which they were made."""
        rows = self._db.execute(
            "SELECT agent, json_extract(CAST(facts AS TEXT), '$.name'),"
            " coalesce(json_extract(CAST(facts AS TEXT), '$.retired'), 0), json_extract(CAST(facts AS TEXT), '$.made'),"
            " (SELECT min(position) FROM log AS before WHERE before.agent = log.agent) AS made"
            " FROM log WHERE position IN (SELECT max(position) FROM log WHERE whole GROUP BY agent) ORDER BY made"
        )
        return tuple([
            KnownAgent(agent, name or "", bool(retired), None if made is None else decode(made, Made))
            for agent, name, retired, made, _ in rows
            if not agent.startswith(BUDGET_PREFIX)
        ])

    def budgets(self) -> dict[str, bytes]:
        """By the names of budgets, the facts of their last records."""
        with self._errors():
            rows = self._db.execute(
                f"SELECT agent, facts FROM log WHERE position IN (SELECT max(position) FROM log WHERE {_BUDGET}"  # noqa: S608
                " GROUP BY agent)"
            )
            return {agent.removeprefix(BUDGET_PREFIX): facts for agent, facts in rows}

    # ------------------------------------------------------------ writing

    def commit(self, records: Sequence[Record]) -> None:
        """Write them all, or none."""
        now = time.time()
        with self._errors():
            database = self._db
            self._check_place()
            if len(records) <= _MOST_ROWS:
                self._insert(database, records, now)
                return
            database.execute("BEGIN IMMEDIATE")
            try:
                for start in range(0, len(records), _MOST_ROWS):
                    self._insert(database, records[start : start + _MOST_ROWS], now)
                database.execute("COMMIT")
            except sqlite3.Error:
                database.execute("ROLLBACK")
                raise

    def _check_place(self) -> None:
        """Refuse to write what nobody will find: SQLite goes on with a file that has been removed."""
        if len(self._files) == 1:  # the first commit makes the other one
            with contextlib.suppress(FileNotFoundError):
                beside = self._path.with_name(f"{self._path.name}-wal")
                self._files[beside] = beside.stat().st_ino
        for path, number in self._files.items():
            try:
                is_same = path.stat().st_ino == number
            except FileNotFoundError:
                is_same = False
            if not is_same:
                raise JournalError(
                    f"{path} has been removed or replaced while it was in use: what was acknowledged went with it; leave"
                    " the files of a journal where they are"
                )

    def _insert(self, database: sqlite3.Connection, records: Sequence[Record], now: float) -> None:
        count = len(records)
        statement = self._statements.get(count)
        if statement is None:
            rows = ",".join([_ROW] * count)
            statement = f"INSERT INTO log (agent, first, count, events, facts, whole, at) VALUES {rows}"  # noqa: S608
            if count <= 64:
                self._statements[count] = statement
        values: list[Any] = []
        for one in records:
            values += (one.agent, one.first, one.count, one.events, one.facts, one.whole, now)
        database.execute(statement, values)

    # ------------------------------------------------------------ reading

    def read(self, agent: str) -> list[Record]:
        """The last whole record of an agent and those behind it."""
        return self._select(
            "agent = ? AND position >= (SELECT max(position) FROM log WHERE agent = ? AND whole)", agent, agent
        )

    def read_all(self, run: str) -> tuple[str, list[Record]]:
        """All records of the agent that a run belongs to."""
        with self._errors():
            found = self._db.execute(
                "SELECT agent FROM log WHERE instr(events, ?) LIMIT 1", (f'"run":"{run}"'.encode(),)
            ).fetchone()
        return (found[0], self.all_of(found[0])) if found is not None else ("", [])

    def all_of(self, agent: str) -> list[Record]:
        """All records of an agent, from the first whole one that is there."""
        return self._select(
            "agent = ? AND position >= (SELECT min(position) FROM log WHERE agent = ? AND whole)", agent, agent
        )

    def lines_of(self, agent: str) -> Iterator[tuple[int, float, list[bytes]]]:
        """Its events by record: the number of the first one, when they were written, and their lines."""
        with self._errors():
            rows = self._db.execute(
                "SELECT first, at, events FROM log WHERE agent = ? AND count > 0 ORDER BY position", (agent,)
            )
            for first, at, events in rows:
                yield first, at, events.split(b"\n")

    def read_events(self, agent: str, max_bytes: int) -> StoredEvents:
        """The newest events of an agent, of that size at most; those whose deltas have been merged are not among them."""
        found: list[list[bytes]] = []
        first, size = 0, 0
        with self._errors():
            rows = self._db.execute(
                "SELECT first, count, events, merged FROM log WHERE agent = ? ORDER BY position DESC", (agent,)
            )
            for start, count, events, is_merged in rows:
                if is_merged or (size and size + len(events) > max_bytes):
                    break
                if not first:
                    first = start + count
                if not count:
                    continue
                if start + count != first:
                    break
                found.append(events.split(b"\n"))
                first, size = start, size + len(events)
        return StoredEvents(first or 1, [event for part in reversed(found) for event in part])

    def _select(self, where: str, *values: Any) -> list[Record]:
        with self._errors():
            rows = self._db.execute(
                f"SELECT {_COLUMNS} FROM log WHERE {where} ORDER BY position",  # noqa: S608  our own words
                values,
            )
            return [Record(a, first, n, events, facts, bool(whole)) for a, first, n, events, facts, whole in rows]

    # ------------------------------------------------------------ tidying up

    def tidy(self) -> bool:
        """Merge the deltas of what lies before an agent's last whole record, and let go of what is too old, or too much.

        A slice of it at a time, as commits wait meanwhile; returns whether there is more.
        """
        with self._errors():
            database = self._db
            oldest = time.time() - self._keep_seconds
            done = (
                self._merge(database),
                self._drop(f"{_BEFORE_WHOLE} AND at < ?", oldest),
                self._drop(_RETIRED, oldest),
                self._drop(f"{_BEFORE_WHOLE} AND {_BUDGET} AND at < ?", time.time()),
            )
            while self._bytes_used(database) > self._max_bytes and self._drop(
                f"{_BEFORE_WHOLE} OR {_RETIRED}", time.time()
            ):
                pass
            if any(done):
                database.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page
            return _FULL_BATCH in done

    def _merge(self, database: sqlite3.Connection) -> int:
        rows = database.execute(
            f"SELECT position, events FROM log WHERE NOT merged AND at < ? AND {_BEFORE_WHOLE}"  # noqa: S608
            " ORDER BY position LIMIT ?",
            (time.time() - self._whole_seconds, _FULL_BATCH),
        ).fetchall()
        if rows:
            database.execute("BEGIN IMMEDIATE")
            for position, events in rows:
                database.execute("UPDATE log SET merged = 1, events = ? WHERE position = ?", (merged(events), position))
            database.execute("COMMIT")
        return len(rows)

    def _drop(self, which: str, before: float) -> int:
        """Let go of the oldest records of those; how many they were."""
        return self._db.execute(
            f"DELETE FROM log WHERE position IN (SELECT position FROM log WHERE {which} ORDER BY position LIMIT ?)",  # noqa: S608
            (before, _FULL_BATCH),
        ).rowcount

    def _bytes_used(self, database: sqlite3.Connection) -> int:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    # ------------------------------------------------------------ faults

    @property
    def _db(self) -> sqlite3.Connection:
        if self._database is None:
            raise JournalError(f"the journal {self._path} is not open")
        return self._database

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        """Say what is wrong in the words of whoever has to mend it."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise JournalError(f"the journal {self._path} {_fault_of(error)}") from error
        except OSError as error:
            raise JournalError(f"the journal {self._path} cannot be made: {error.strerror or error}") from error


_BUDGET = f"(agent >= '{BUDGET_PREFIX}' AND agent < '{BUDGET_PREFIX[:-1]}0')"
"""Records of budgets: `0` is what follows `/`."""
_BEFORE_WHOLE = (
    "position < (SELECT max(later.position) FROM log AS later WHERE later.agent = log.agent AND later.whole)"
)
"""Records that are not needed to bring their agent back."""
_RETIRED = (
    "agent IN (SELECT gone.agent FROM log AS gone WHERE gone.whole AND gone.at < ?"
    " AND json_extract(CAST(gone.facts AS TEXT), '$.retired'))"
)
"""All records of agents that are not brought back, and were stopped before some time."""


def _fault_of(error: sqlite3.DatabaseError) -> str:
    said = str(error)
    if "not a database" in said:
        return "is no journal: the file is something else; give another path"
    if "malformed" in said:
        return f"is damaged ({said}): restore it from a copy"
    if "full" in said:
        return "cannot be written: the disk is full; what was acknowledged is kept"
    if "I/O" in said:
        return (
            f"cannot be written or read ({said}): is there room, and is the disk sound? What was acknowledged is kept"
        )
    if "readonly" in said or "unable to open" in said:
        return f"cannot be written ({said}): may this user write to the file and its folder, and does the folder exist?"
    return f"cannot be used: {said}"
