"""The journal: what is acknowledged is on disk first. Three calls; in memory they do nothing."""

from ._journal import Journal, MemoryJournal

__all__ = ("Journal", "MemoryJournal")
