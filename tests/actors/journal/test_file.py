"""The journal's file: what it is made of, who may have it, and what is said of one that cannot be used."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
import trio

from actors.journal import KnownAgent, SQLiteJournal
from actors.journal._schema import APPLICATION_ID, SCHEMA
from actors.journal._sqlite import SQLiteStore
from protocol.codec import encode
from protocol.errors import JournalError, SpecError
from protocol.events import AgentSpawned, ContentDelta
from protocol.records import AgentFacts, Record


def record(agent: str, first: int, *texts: str, whole: bool = False, name: str = "auditor") -> Record:
    events = [encode(ContentDelta(run="r1", message="m1", text=text)) for text in texts]
    facts = encode(AgentFacts(name=name, epoch="e1") if whole else AgentFacts())
    return Record(agent, first, len(texts), b"\n".join(events), facts, whole)


def store_at(path: Path, **options: float) -> SQLiteStore:
    settings = {"keep_seconds": 3600.0, "whole_seconds": -1.0, "max_bytes": 1 << 30} | options
    store = SQLiteStore(
        path,
        keep_seconds=settings["keep_seconds"],
        whole_seconds=settings["whole_seconds"],
        max_bytes=int(settings["max_bytes"]),
    )
    store.open()
    return store


async def open_it(path: Path) -> tuple[KnownAgent, ...]:
    journal = SQLiteJournal(path)
    async with journal.opened():
        return journal.agents()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """By agent, in order, and after the file was closed."""
    store = store_at(tmp_path / "a.db")
    store.commit([record("a1", 1, "x", whole=True), record("a2", 1, "y", whole=True, name="other")])
    store.commit([record("a1", 2, "z", "w")])
    store.close()
    again = SQLiteStore(tmp_path / "a.db", read_only=True)
    known = again.open()
    records = again.read("a1")
    events = again.read_events("a1", 10_000)
    again.close()

    assert (KnownAgent("a1", "auditor", False), KnownAgent("a2", "other", False)) == known
    assert [(1, 1, True), (2, 2, False)] == [(one.first, one.count, one.whole) for one in records]
    assert (1, 3) == (events.first, len(events.events))


def test_more_rows_than_a_statement_takes(tmp_path: Path) -> None:
    """A commit of any size is one commit."""
    store = store_at(tmp_path / "a.db")
    store.commit([record(f"a{number}", 1, "x", whole=True) for number in range(4500)])
    store.close()
    again = SQLiteStore(tmp_path / "a.db", read_only=True)

    assert 4500 == len(again.open())
    again.close()


def test_it_is_its_owners_alone(tmp_path: Path) -> None:
    """Conversations are nobody else's business."""
    store_at(tmp_path / "a.db").close()

    assert 0o600 == stat.S_IMODE((tmp_path / "a.db").stat().st_mode)


async def test_a_second_one_is_kept_out(tmp_path: Path) -> None:
    """Two processes with one journal would write over each other; the lock goes with its holder."""
    journal = SQLiteJournal(tmp_path / "a.db")
    async with journal.opened():
        with pytest.raises(JournalError, match="in use by another process"):
            await open_it(tmp_path / "a.db")

    assert () == await open_it(tmp_path / "a.db")


async def test_it_is_opened_once(tmp_path: Path) -> None:
    """Each runtime needs a journal of its own: one that was closed holds what is not true any more."""
    journal = SQLiteJournal(tmp_path / "a.db")
    async with journal.opened():
        pass
    with pytest.raises(JournalError, match="opened before"):
        async with journal.opened():
            pass


def make_foreign(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE mine (a)")
    database.commit()
    database.close()


def make_newer(path: Path) -> None:
    store_at(path).close()
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version={SCHEMA + 1}")
    database.close()


def make_text(path: Path) -> None:
    path.write_text("my notes\n" * 1000)


def make_damaged(path: Path) -> None:
    store = store_at(path)
    for number in range(200):
        store.commit([record("a1", 1 + number, "x" * 1000, whole=not number)])
    store.close()
    data = bytearray(path.read_bytes())
    data[40_000:60_000] = b"\xff" * 20_000
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (make_foreign, "no journal of Onward"),
        (make_newer, "newer version of Onward"),
        (make_text, "is no journal"),
        (make_damaged, "is damaged"),
    ],
)
async def test_what_is_no_sound_journal_is_refused(tmp_path: Path, make: object, told: str) -> None:
    """The text says what is wrong, and the file is as it was."""
    assert callable(make)
    path = tmp_path / "a.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=told) as caught:
        await open_it(path)

    assert str(path) in str(caught.value)
    assert before == path.read_bytes()


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is said what to look at."""
    with pytest.raises(JournalError, match="does the folder exist"):
        await open_it(tmp_path / "nowhere" / "a.db")


async def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only place is told from a damaged file."""
    store_at(tmp_path / "a.db").close()
    database = sqlite3.connect(tmp_path / "a.db")
    database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    connect = sqlite3.connect

    def read_only(address: object, **options: object) -> sqlite3.Connection:
        return connect(str(address).replace("mode=rw", "mode=ro"), **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(JournalError, match="may this user write"):
        await open_it(tmp_path / "a.db")


def test_a_full_disk_says_so_and_keeps_what_is_there(tmp_path: Path) -> None:
    """A commit for which there is no room writes nothing; the ones before it stand."""
    store = store_at(tmp_path / "a.db")
    store.commit([record("a1", 1, "x", whole=True)])
    store._db.execute("PRAGMA max_page_count=8")
    with pytest.raises(JournalError, match="the disk is full; what was acknowledged is kept"):
        store.commit([record("a1", 2, "y" * 1_000_000)])
    kept = store.read("a1")
    store.close()

    assert [1] == [one.first for one in kept]


def test_deltas_of_old_are_merged(tmp_path: Path) -> None:
    """Before the last whole record, the pieces of a message become one that says how many it stands for."""
    store = store_at(tmp_path / "a.db")
    store.commit([record("a1", 1, "x", "y", "z", whole=True)])
    store.commit([record("a1", 4, "u", "v", whole=True)])
    store.tidy()
    first, second = (one.events for one in store.all_of("a1"))
    newest = store.read_events("a1", 10_000)
    store.close()

    assert encode(ContentDelta(run="r1", message="m1", text="xyz", n=3)) == first
    assert 2 == len(second.split(b"\n"))
    assert (4, 2) == (newest.first, len(newest.events)), "a merge never spans a place where a reader may go on"


def test_deltas_of_late_stay_as_they_are(tmp_path: Path) -> None:
    """A client that was away for a while finds the place where it was, whatever whole records have come since."""
    store = store_at(tmp_path / "a.db", whole_seconds=60)
    store.commit([record("a1", 1, "x", "y", "z", whole=True)])
    store.commit([record("a1", 4, "u", "v", whole=True)])
    store.tidy()
    newest = store.read_events("a1", 10_000)
    store.close()

    assert (1, 5) == (newest.first, len(newest.events))


def test_of_a_budget_the_last_record_is_kept(tmp_path: Path) -> None:
    """It is found by its name, is no agent, and those before it go at once."""
    store = store_at(tmp_path / "a.db")
    for facts in (b"1", b"2"):
        store.commit([
            Record("budget/team", 1, 0, b"", facts, True),
            Record("budget0", 1, 0, b"", encode(AgentFacts()), True),
        ])
    store.tidy()
    found = store.budgets(), [one.id for one in store._known()], len(store.all_of("budget/team"))
    others = len(store.all_of("budget0"))
    store.close()

    assert ({"team": b"2"}, ["budget0"], 1, 2) == (*found, others)


def test_a_file_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    """It holds what it held, and an older version refuses it from then on."""
    store = store_at(tmp_path / "a.db")
    store.commit([record("a1", 1, "x", whole=True)])
    store._db.execute("PRAGMA user_version=1")
    store.close()
    again = store_at(tmp_path / "a.db")
    version = again._db.execute("PRAGMA user_version").fetchone()[0]
    kept = len(again.all_of("a1"))
    again.close()

    assert (2, 1) == (version, kept)


def test_what_is_old_goes_and_what_is_needed_stays(tmp_path: Path) -> None:
    """Records before the last whole one go after `keep_seconds`; those that bring the agent back never do."""
    store = store_at(tmp_path / "a.db", keep_seconds=-1)
    store.commit([record("a1", 1, "x", whole=True)])
    store.commit([record("a1", 2, "y")])
    store.commit([record("a1", 3, "z", whole=True)])
    store.commit([record("a1", 4, "w")])
    store.tidy()
    left = store.all_of("a1")
    store.close()

    assert [3, 4] == [one.first for one in left]


def test_agents_that_were_stopped_go_too(tmp_path: Path) -> None:
    """They are not brought back: after `keep_seconds` nothing is left of them, and others are as they were."""
    store = store_at(tmp_path / "a.db", keep_seconds=-1)
    retired = Record("a1", 2, 0, b"", encode(AgentFacts(name="auditor", retired=True)), True)
    store.commit([record("a1", 1, "x", whole=True), record("a2", 1, "y", whole=True)])
    store.commit([retired])
    store.tidy()
    known = store._known()
    store.close()

    assert ["a2"] == [one.id for one in known]


def test_much_goes_in_slices(tmp_path: Path) -> None:
    """Commits do not wait for all of it: it is said that there is more."""
    store = store_at(tmp_path / "a.db", keep_seconds=-1)
    for number in range(451):
        store.commit([record("a1", 1 + number, "x", whole=number in {0, 450})])
    more = [store.tidy() for _ in range(4)]
    left = store.all_of("a1")
    store.close()

    assert [True, True, False, False] == more
    assert [451] == [one.first for one in left]


def test_a_file_that_is_too_big_shrinks(tmp_path: Path) -> None:
    """Above `max_bytes` the oldest go at once, and the file gets smaller."""
    path = tmp_path / "a.db"
    store = store_at(path, max_bytes=200_000)
    for number in range(60):
        store.commit([record("a1", 1 + number, "x" * 20_000, whole=number in {0, 55})])
    store.tidy()
    left = [one.first for one in store.all_of("a1")]
    store.close()

    assert 56 <= left[0]
    assert path.stat().st_size < 600_000


@pytest.mark.parametrize("options", [{"durability": "maybe"}, {"path": " "}])
def test_settings_that_cannot_be_right(options: dict[str, str]) -> None:
    """They are refused when they are made."""
    with pytest.raises(SpecError):
        SQLiteJournal(**({"path": "a.db"} | options))  # type: ignore[arg-type]


async def test_power_loss_waits_for_the_disk(tmp_path: Path) -> None:
    """`durability="power"` is SQLite's FULL; the default is NORMAL."""
    found: list[int] = []
    for durability in ("process", "power"):
        journal = SQLiteJournal(tmp_path / f"{durability}.db", durability=durability)
        async with journal.opened():
            assert isinstance(journal._opened, SQLiteStore)
            found.append(journal._opened._db.execute("PRAGMA synchronous").fetchone()[0])

    assert [1, 2] == found


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    """Tools can tell it from any other database."""
    store_at(tmp_path / "a.db").close()
    database = sqlite3.connect(tmp_path / "a.db")
    found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    database.close()

    assert [APPLICATION_ID, SCHEMA] == found


async def test_agents_of_a_closed_journal(tmp_path: Path) -> None:
    """What is known is what was in it when it was opened."""
    store = store_at(tmp_path / "a.db")
    store.commit([Record("a1", 1, 1, encode(AgentSpawned(agent="a1", name="n")), encode(AgentFacts(name="n")), True)])
    store.close()
    with trio.fail_after(60):
        known = await open_it(tmp_path / "a.db")

    assert (KnownAgent("a1", "n", False),) == known
