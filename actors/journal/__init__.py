"""The journal: what is acknowledged is on disk first. Without one, its calls do nothing."""

from ._disk import DiskJournal, Store
from ._file import SQLiteJournal
from ._journal import DiskStatistics, Journal, KnownAgent, MemoryJournal, Source
from ._reader import JournalReader, StoredEvent, read_journal

__all__ = (
    "DiskJournal",
    "DiskStatistics",
    "Journal",
    "JournalReader",
    "KnownAgent",
    "MemoryJournal",
    "SQLiteJournal",
    "Source",
    "Store",
    "StoredEvent",
    "read_journal",
)
