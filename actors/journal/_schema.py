"""What stands in the file, version by version."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

__all__ = ("APPLICATION_ID", "SCHEMA", "create", "migrate")

APPLICATION_ID = 0x4F4E5752
"""Marks the file as a journal of ours ("ONWR")."""
SCHEMA = 2
"""The version of the tables and of what stands in them. A file of an older one is migrated when it is opened; one of a newer one is refused."""

_TABLES = """
CREATE TABLE log (
    position INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    merged INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL,
    events BLOB NOT NULL,
    facts BLOB NOT NULL
);
CREATE INDEX log_of_agent ON log (agent, position);
CREATE INDEX log_of_wholes ON log (agent, position) WHERE whole;
"""


def _as_it_is(_database: sqlite3.Connection) -> None:
    """2 says more in the same tables: clients' commands, and how agents were made. 1 would not keep it."""


_MIGRATIONS: dict[int, Callable[[sqlite3.Connection], object]] = {1: _as_it_is}
"""By the version that it makes a file of the next one from."""
_PAGE_BYTES = 16384


def create(database: sqlite3.Connection) -> None:
    """Make the tables, of the newest version."""
    database.execute(f"PRAGMA page_size={_PAGE_BYTES}")
    database.execute("PRAGMA auto_vacuum=INCREMENTAL")
    database.execute("PRAGMA journal_mode=WAL")
    database.executescript(
        f"BEGIN; {_TABLES} PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA}; COMMIT;"
    )


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version up to date, one version after the other."""
    for old in range(version, SCHEMA):
        database.execute("BEGIN IMMEDIATE")
        _MIGRATIONS[old](database)
        database.execute(f"PRAGMA user_version={old + 1}")
        database.execute("COMMIT")
