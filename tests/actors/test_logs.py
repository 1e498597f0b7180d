"""Log lines: where they go, what stands in them, and what never does."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
import structlog
import trio

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, open_runtime, tool
from actors.logs import FIELDS, add_ids, bound, get_logger
from actors.models.scripted import Scripted, call, reply
from tests.house.source import ROOT

SECRET = "the-secret-word"


def test_a_logger_is_named_by_its_module() -> None:
    """Below `onward`, without the underscores, so that a host can choose by part."""
    assert "onward.gateway.front" == get_logger("actors.gateway._front")._logger.name


def test_a_line_is_its_event_and_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    """As text for any formatter, and as values for one that knows of them; the ids of the task stand in both."""
    with caplog.at_level(logging.INFO, "onward"), bound(run="run-1", agent="a-1"), bound(agent=None):
        get_logger("actors.x").info("it happened", code=3, by="one\n two", name="n")
    (record,) = caplog.records

    assert "it happened code=3 by='one\\n two' name=n run=run-1" == record.getMessage()
    assert {"event": "it happened", "code": 3, "by": "one\n two", "name": "n", "run": "run-1"} == getattr(
        record, FIELDS
    )
    assert ("onward.x", logging.INFO) == (record.name, record.levelno)


def test_what_a_host_binds_is_there_too(caplog: pytest.LogCaptureFixture) -> None:
    """`structlog.contextvars` of the host's own."""
    with caplog.at_level(logging.INFO, "onward"), structlog.contextvars.bound_contextvars(tenant="t-1"):
        get_logger("actors.x").info("it happened")

    assert ["it happened tenant=t-1"] == [record.getMessage() for record in caplog.records]


def test_a_long_value_is_cut_in_the_text(caplog: pytest.LogCaptureFixture) -> None:
    """A line is a line."""
    with caplog.at_level(logging.INFO, "onward"):
        get_logger("actors.x").info("it happened", what="x" * 100_000)

    assert len(caplog.records[0].getMessage()) < 1000


def test_an_exception_comes_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    """Inside an `except`, or given."""
    logger = get_logger("actors.x")
    try:
        raise ValueError("no")
    except ValueError as error:
        logger.exception("one")
        fault = error
    logger.error("two", exc_info=fault)
    found = [record.exc_info for record in caplog.records]

    assert [ValueError, ValueError] == [info[0] for info in found if info is not None]


@pytest.mark.slow
def test_the_library_configures_nothing_and_loads_nothing() -> None:
    """Importing it leaves the host's logging and structlog alone; structlog comes with the first line that is wanted."""
    program = (
        "import sys, logging; from actors.logs import get_logger; import actors.gateway;"
        "get_logger('actors.x').info('unwanted'); print('structlog' in sys.modules, logging.getLogger().handlers);"
        "get_logger('actors.x').warning('wanted', n=1); import structlog; print(structlog.is_configured())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ("False []\nFalse\n", "wanted n=1\n") == (done.stdout, done.stderr)


async def test_a_run_says_when_it_starts_and_ends_and_nothing_of_what_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Two lines with ids and numbers; no prompt, no reply, no argument, no line for a piece of a reply."""

    async def look(what: str) -> str:
        await trio.lowlevel.checkpoint()
        return f"{what} {SECRET}"

    model = Scripted([reply(SECRET, call("look", {"what": SECRET})), SECRET])
    with caplog.at_level(logging.DEBUG, "onward"):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(AgentSpec(name="ann", model=model, tools=[tool(look)]))
            async with agent.run(SECRET) as run:
                await run.result()
    lines = [getattr(record, FIELDS) for record in caplog.records]
    ids = {"agent": agent.id, "agent_name": "ann", "run": run.id}

    assert [{"event": "run started", **ids}, "run ended"] == [lines[0], lines[1]["event"]]
    assert ids.items() <= lines[1].items()
    assert ("model", 2, 1) == (lines[1]["stopped_by"], lines[1]["llm_calls"], lines[1]["tool_calls"])
    assert SECRET not in caplog.text


async def test_a_question_is_logged_by_its_id(caplog: pytest.LogCaptureFixture) -> None:
    """When it opens and when it closes; what its provider logs itself has the ids too, through the processor."""
    own: list[dict[str, object]] = []

    async def decide(_request: ContinuationRequest) -> ContinuationResponse:
        own.append(dict(add_ids(None, "info", {"event": "deciding"})))
        return ContinuationResponse("decline", message=SECRET)

    async def look() -> None:
        await trio.lowlevel.checkpoint()

    model = Scripted([reply("", call("look")), reply("", call("look")), "done"])
    spec = AgentSpec(name="ann", model=model, tools=[tool(look)], max_tool_iterations=1, continuation=decide)
    with caplog.at_level(logging.INFO, "onward"):
        async with open_runtime() as runtime:
            agent = await runtime.spawn(spec)
            async with agent.run("go") as run:
                await run.result()
    lines = [getattr(record, FIELDS) for record in caplog.records]
    asked = [(line["event"], line["request"], line["run"]) for line in lines if "request" in line]
    request = own[0]["request"]

    assert [("request open", request, run.id), ("request closed", request, run.id)] == asked
    assert [{"event": "deciding", "agent": agent.id, "agent_name": "ann", "run": run.id, "request": request}] == own
    assert SECRET not in caplog.text
