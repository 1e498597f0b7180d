"""Log lines of a server: what is written, in which form, and that nobody waits for it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import attrs
import pytest
import structlog

from actors.cli._arguments import parse
from actors.cli._logging import logs_to
from actors.cli._logging_options import Logging
from actors.cli._serve_arguments import ServeArguments
from actors.cli._usage import UsageError
from actors.logs import FIELDS, bound, get_logger

SECRET = "the-secret-word"


@attrs.define(eq=False)
class Pipe:
    reader: int
    writer: int

    def lines(self) -> list[str]:
        """What has been written up to now."""
        found = b""
        while True:
            try:
                piece = os.read(self.reader, 65_536)
            except BlockingIOError:
                return found.decode().splitlines()
            found += piece

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def pipe() -> Generator[Pipe]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield Pipe(reader, writer)
    os.close(reader)
    os.close(writer)


def given(*argv: str) -> Logging:
    found = parse(["serve", *argv])
    assert isinstance(found, ServeArguments)
    return found.logging


def test_options() -> None:
    """What happened is logged, in the form for whoever reads, unless told otherwise."""
    assert Logging(level="info", format="auto") == given()
    assert Logging(level="error", format="json") == given("--log-level", "error", "--log-format", "json")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--log-level", "warn"), "--log-level 'warn' is unknown (did you mean warning?); there are: debug, info"),
        (("--log-format", "xml"), "--log-format 'xml' is unknown; there are: auto, human, json"),
    ],
)
def test_options_that_are_none(argv: tuple[str, ...], text: str) -> None:
    """What there is, and what is near."""
    with pytest.raises(UsageError) as refused:
        given(*argv)

    assert str(refused.value).startswith(text)


def test_json_elsewhere_than_on_a_terminal(pipe: Pipe) -> None:
    """One object a line: time, level, logger, event, fields and ids."""
    with logs_to(pipe.writer, Logging()), bound(run="run-1"):
        get_logger("actors.x").info("it happened", code=3, by="one\ntwo")
    (line,) = pipe.objects()

    assert line.pop("timestamp").endswith("Z")
    assert {
        "event": "it happened",
        "code": 3,
        "by": "one\ntwo",
        "run": "run-1",
        "level": "info",
        "logger": "onward.x",
    } == line


def test_lines_for_people(pipe: Pipe) -> None:
    """Readable, without colours where there is no terminal; what came from elsewhere cannot drive one."""
    with logs_to(pipe.writer, Logging(format="human")):
        get_logger("actors.x").info("it happened", who="evil\x1b[2J")
    (line,) = pipe.lines()

    assert "info" in line
    assert "it happened" in line
    assert "who=evil\\x1b[2J" in line
    assert "\x1b" not in line


def test_tools_that_use_structlog_or_logging_are_heard_too(pipe: Pipe) -> None:
    """In the same form, with the ids of the run that they work for."""
    with logs_to(pipe.writer, Logging()), bound(run="run-1"), structlog.contextvars.bound_contextvars(tenant="t"):
        structlog.get_logger("mine").warning("of a tool", n=1)
        logging.getLogger("other").warning("of %s", "another")
    first, second = pipe.objects()

    assert ("of a tool", 1, "run-1", "t", "mine") == tuple(
        first[key] for key in ("event", "n", "run", "tenant", "logger")
    )
    assert ("of another", "run-1", "other") == tuple(second[key] for key in ("event", "run", "logger"))


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_level_is_the_house_s_own(level: Any, pipe: Pipe) -> None:
    """Others are heard from `warning` on: below, they may tell addresses, headers and bodies."""
    levels = ["debug", "info", "warning", "error"]
    with logs_to(pipe.writer, Logging(level=level)):
        for name in ("onward.x", "httpx"):
            for one in levels:
                logging.getLogger(name).log(logging.getLevelNamesMapping()[one.upper()], one)
    found = [(line["logger"], line["level"]) for line in pipe.objects()]
    own, others = levels[levels.index(level) :], levels[max(2, levels.index(level)) :]

    assert [*[("onward.x", one) for one in own], *[("httpx", one) for one in others]] == found


@pytest.mark.parametrize("form", ["json", "human"])
def test_a_traceback_shows_no_values(form: Any, pipe: Pipe) -> None:
    """Where it was raised and what, but no variable of any frame."""

    def fails(secret: str) -> None:
        raise ValueError(f"a secret of {len(secret)} letters")

    with logs_to(pipe.writer, Logging(format=form)):
        try:
            fails("".join(reversed("drow-terces-eht")))
        except ValueError:
            get_logger("actors.x").exception("it failed")
    text = "\n".join(pipe.lines())

    assert "in fails" in text
    assert "ValueError: a secret of 15 letters" in text
    assert SECRET not in text


def test_what_cannot_be_shown_ends_nothing(pipe: Pipe) -> None:
    """A value that fails when it is looked at: the line says so."""

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with logs_to(pipe.writer, Logging()):
        logging.getLogger("other").warning("one", extra={FIELDS: {"x": Broken()}})
        logging.getLogger("other").warning("two")
    first, second = pipe.lines()

    assert "a log line of other cannot be shown" == first
    assert "two" == json.loads(second)["event"]


def test_a_reader_that_pauses_holds_up_nobody(pipe: Pipe) -> None:
    """What does not fit is dropped, and counted when there is room again."""
    logger = get_logger("actors.x")
    with logs_to(pipe.writer, Logging()):
        for _ in range(300):
            logger.info("it happened", what="x" * 1000)
        before = pipe.lines()
        logger.info("again")
        note, last = pipe.lines()

    assert 10 < len(before) < 300
    assert f"{300 - len(before)} log lines were lost: nobody read them" == note
    assert "again" == json.loads(last)["event"]


def test_a_reader_that_has_gone_ends_nothing(pipe: Pipe) -> None:
    """No log is no reason to end a server."""
    with logs_to(pipe.writer, Logging()):
        spare = os.dup(pipe.reader)
        os.close(pipe.reader)
        os.close(spare)
        get_logger("actors.x").info("it happened")
        pipe.reader = os.open(os.devnull, os.O_RDONLY)

    assert logging.getLogger("onward").level == logging.NOTSET


def test_a_file_takes_all(tmp_path: Path) -> None:
    """Where stderr is a file."""
    with (tmp_path / "log").open("wb") as file, logs_to(file.fileno(), Logging()):
        for number in range(500):
            get_logger("actors.x").info("it happened", n=number)
    lines = (tmp_path / "log").read_text().splitlines()

    assert list(range(500)) == [json.loads(line)["n"] for line in lines]


def test_all_is_as_before_behind_the_block(pipe: Pipe) -> None:
    """Handlers, levels and structlog's own settings."""
    root = logging.getLogger()
    before = list(root.handlers), root.level, logging.getLogger("onward").level
    with logs_to(pipe.writer, Logging()):
        pass

    assert before == (list(root.handlers), root.level, logging.getLogger("onward").level)
    assert not structlog.is_configured()
