"""The comparison: it runs with Onward alone, and does not let wrong work pass. Nobody else is installed here."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import attrs
import pytest

from benchmarks.compare.__main__ import compare
from benchmarks.compare.environments import Environment, prepare, quiet
from benchmarks.compare.job import Done, Job
from benchmarks.compare.peers import ONWARD, PEERS, ROOT, SUBJECTS, Subject
from benchmarks.compare.rounds import run_job
from benchmarks.compare.table import in_readme, in_results
from benchmarks.compare.worker import checked
from benchmarks.harness.http_server import reply
from benchmarks.harness.work import ANSWER, DELTAS, REPLY_TEXT, add

HERE = Environment(Path(sys.prefix))


@pytest.mark.slow
@pytest.mark.peer
def test_onward_alone() -> None:
    """All measurements are made and told, in this environment and with small numbers; the ratios to itself are 1."""
    told = compare((ONWARD,), {ONWARD.name: HERE}, quick=True, rounds=1)
    told |= {
        "quick": True,
        "rounds": 1,
        "machine": {"date": "D", "python": "P", "system": "S", "cpus": 1, "loop_ms": 1},
    }
    names = {name for entry in told["measurements"].values() for name in entry["measured"]}
    ratios = [entry["times_onward"][ONWARD.name] for entry in told["measurements"].values()]
    one = {"cpu": 1.0, "low": 1.0, "high": 1.0, "wall": 1.0}
    told = json.loads(json.dumps(told))

    assert {ONWARD.name} == names
    assert [1.0, one] == [each for each in (1.0, one) if each in ratios]
    assert [] == [each for each in ratios if each not in (1.0, one)]
    assert "| us per iteration, one tool call | **" in in_results(told)
    assert "| iterations/s, 5 agents at once | **" in in_readme(told)


@pytest.mark.slow
@pytest.mark.peer
def test_who_cannot_do_it_is_named() -> None:
    """The error says who failed, at what, and what the process said."""
    nobody = Subject(name="nobody", module="nobody", requires=())

    with pytest.raises(RuntimeError, match=r"(?s)nobody cannot do Job\(iterations=1.*No module named .*nobody"):
        run_job(nobody, HERE, Job(1))


@attrs.define
class Cheat:
    """Does not quite do what it is told."""

    calls: int = 2
    answer: str = ANSWER
    heard: int = DELTAS * 3

    async def run(self, iterations: int, width: int) -> str:
        for _ in range(self.calls):
            await add(1, 2)
        return self.answer

    async def many(self, agents: int, iterations: int) -> list[str]:
        await self.run(iterations, 1)
        return [ANSWER] * (agents - 1) + [self.answer]

    async def stream(self, turns: int) -> tuple[str, int]:
        await self.run(turns, 1)
        return self.answer, self.heard


ONE = Job(2)
MANY = Job(1, agents=2)
HTTP = Job(2, base_url="http://nowhere")


@pytest.mark.parametrize("job", [ONE, MANY, HTTP], ids=lambda job: job.kind)
async def test_honest_work_passes(job: Job) -> None:
    """So many calls, the right answers, all the text: that is all there is to it."""
    await checked(Cheat(answer=REPLY_TEXT if job is HTTP else ANSWER), job)


@pytest.mark.parametrize(
    ("cheat", "job", "said"),
    [
        (Cheat(calls=1), ONE, "1 tool calls were made"),
        (Cheat(calls=1), MANY, "1 tool calls were made"),
        (Cheat(answer=REPLY_TEXT, calls=3), HTTP, "3 tool calls were made"),
        (Cheat(answer="4"), ONE, "wrong answers: .'4'"),
        (Cheat(answer="4"), MANY, "wrong answers: .'3', '4'"),
        (Cheat(answer="word "), HTTP, "wrong answers"),
        (Cheat(answer=REPLY_TEXT, heard=149), HTTP, "149 pieces of text were heard"),
    ],
)
async def test_wrong_work_does_not_pass(cheat: Cheat, job: Job, said: str) -> None:
    """A tool that did not run, an answer that does not hold its result, text that was not streamed: none is measured."""
    with pytest.raises(AssertionError, match=said):
        await checked(cheat, job)


def test_the_model_server_ends_a_run() -> None:
    """It calls the tool until it has seen so many results, answers then, and takes no wrong result."""

    def asked(*results: object) -> bytes:
        return json.dumps({"messages": [{"role": "tool", "content": each} for each in results]}).encode()

    told = partial(reply, turns=2)
    sent = [b"".join(told(asked(*["3"] * count))) for count in range(3)]

    assert [b"call_0" in sent[0], b"call_1" in sent[1], b"tool_calls" in sent[2]] == [True, True, False]
    assert [DELTAS] * 3 == [each.count(b'"word "') for each in sent]
    assert [] == told(asked("3", "4"))
    assert told(asked([{"type": "text", "text": "3"}])) == told(asked("3"))


def test_what_a_process_tells_comes_back() -> None:
    """One line of JSON, and the same again."""
    done = Done(1.5, 0.5, 3.25)

    assert done == Done.decode(done.encode())
    assert (42, 21, 1) == (HTTP._replace(times=14).total, Job(7, times=3).total, Job(1).total)
    assert ("runs", "many", "http") == (ONE.kind, MANY.kind, HTTP.kind)


def test_all_are_pinned() -> None:
    """Whoever repeats it compares with the same; of Onward it is the checkout."""
    pinned = [require for peer in PEERS for require in peer.requires]

    assert [] == [require for require in pinned if "==" not in require]
    assert (str(ROOT),) == ONWARD.requires
    assert len(SUBJECTS) == len({subject.name for subject in SUBJECTS})


def test_an_environment_that_is_there_is_kept(tmp_path: Path) -> None:
    """A second comparison installs nothing of others again."""
    [peer, *_] = PEERS
    kept = tmp_path / peer.environment
    kept.mkdir()
    (kept / "requirements.txt").write_text("\n".join((sys.version, *peer.requires)))
    (kept / "mine").touch()
    found = prepare([peer], tmp_path)

    assert {peer.name: Environment(kept)} == found
    assert (kept / "mine").exists()


def test_measured_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, no path of this Python and no telemetry reach them."""
    for name in ("PYTHONPATH", "HTTPS_PROXY", "http_proxy", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "x")
    env = quiet()

    assert [] == [name for name, value in env.items() if value == "x"]
    assert ("false", "1") == (env["AGNO_TELEMETRY"], env["OPENAI_AGENTS_DISABLE_TRACING"])


def test_size_is_that_of_what_is_installed() -> None:
    """Distributions without pip, and their files in MB."""
    names = {one.name.lower() for one in HERE.installed()}

    assert {"trio", "httpx"} <= names
    assert names.isdisjoint({"pip", "setuptools"})
