"""Running an actor once, or again and again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors.kit import ActorCrashed, ActorGone, Mailbox, Reply, Restart, Restarts, run_once, supervise
from protocol.errors import SpecError

from .words import Crash, Double, Echo, End, Note, Word


async def test_the_error_leaves_as_it_is() -> None:
    """What the actor raised is what its owner sees: the same object, in no wrapping."""
    error = KeyError("broken")
    box: Mailbox[Word] = Mailbox("echo")
    box.port.tell(Crash(error))
    with pytest.raises(KeyError) as caught:
        await run_once(Echo(), box)

    assert error is caught.value
    assert box.statistics().closed


@pytest.mark.parametrize("supervised", [False, True])
async def test_a_return_is_the_end(supervised: bool) -> None:
    """An actor that returns has ended: it is not started again, and its mailbox is closed."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    box.port.tell(End())
    await (supervise(echo, box) if supervised else run_once(echo, box))

    assert 1 == echo.starts
    with pytest.raises(ActorGone):
        await box.port.ask(Double(1))


async def test_a_crash_fails_all_unanswered_asks(nursery: trio.Nursery) -> None:
    """Not only the ask in hand: every one that was received and not answered."""
    echo = Echo(hold=True)
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(supervise, echo, box)
    errors: list[str] = []

    async def ask(number: int) -> None:
        with pytest.raises(ActorCrashed) as caught:
            await box.port.ask(Double(number))
        errors.append(str(caught.value))

    async with trio.open_nursery() as askers:
        for number in range(3):
            askers.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        box.port.tell(Crash())

    assert ["echo crashed: ValueError"] * 3 == errors
    assert 0 == box.statistics().open_asks


async def test_the_next_incarnation_takes_the_next_message(nursery: trio.Nursery) -> None:
    """A crash costs the messages in hand; those that waited are handled, in order."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    for message in (Note("1"), Crash(), Note("2")):
        box.port.tell(message)
    nursery.start_soon(supervise, echo, box)
    answer = await box.port.ask(Double(2))

    assert 4 == answer
    assert 2 == echo.starts
    assert ["1", "2"] == [message.text for message in echo.heard if isinstance(message, Note)]


@pytest.mark.parametrize(("crashes", "survives"), [(3, True), (4, False)])
async def test_too_many_crashes_escalate(crashes: int, survives: bool, autojump_clock: trio.testing.MockClock) -> None:
    """Three crashes within five seconds are forgiven; the fourth leaves, as it is."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    for number in range(crashes):
        box.port.tell(Crash(KeyError(number)))
    box.port.tell(End())
    if survives:
        await supervise(echo, box)
    else:
        with pytest.raises(KeyError, match="3"):
            await supervise(echo, box)

    assert 4 == echo.starts
    assert box.statistics().closed


async def test_old_crashes_are_forgotten(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """An actor that crashes now and then lives on: only those within the time count."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(supervise, echo, box)
    for _ in range(20):
        box.port.tell(Crash())
        await trio.sleep(2)

    assert 21 == echo.starts
    assert 4 == await box.port.ask(Double(2))


@pytest.mark.parametrize(("limit", "starts"), [(0, 1), (1, 2), (5, 6)])
async def test_the_limit_is_ones_own(limit: int, starts: int, autojump_clock: trio.testing.MockClock) -> None:
    """`Restarts(limit=n)` forgives n crashes and starts the actor n times again."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo", capacity=10)
    for _ in range(10):
        box.port.tell(Crash())
    with pytest.raises(ValueError, match="broken"):
        await supervise(echo, box, restarts=Restarts(limit=limit))

    assert starts == echo.starts


@attrs.define
class Timed:
    """Crashes at once, and keeps when it was started."""

    starts: list[float] = attrs.field(factory=list)
    overlapping: int = 0
    _inside: int = 0

    async def run(self, mailbox: Mailbox[Word]) -> None:
        self.starts.append(trio.current_time())
        self._inside += 1
        self.overlapping = max(self.overlapping, self._inside)
        try:
            await trio.lowlevel.checkpoint()
            raise ValueError("broken")
        finally:
            self._inside -= 1


async def test_the_wait_doubles(autojump_clock: trio.testing.MockClock) -> None:
    """`backoff_seconds` before the first restart, twice as long before each one after it."""
    timed = Timed()
    with pytest.raises(ValueError, match="broken"):
        await supervise(timed, Mailbox("timed"), restarts=Restarts(limit=4, seconds=100, backoff_seconds=0.5))

    assert [0.0, 0.5, 1.5, 3.5, 7.5] == timed.starts
    assert 1 == timed.overlapping


async def test_the_wait_starts_over(autojump_clock: trio.testing.MockClock) -> None:
    """When the crashes are old, the next wait is the shortest again."""
    timed = Timed()
    with trio.move_on_after(13):
        await supervise(timed, Mailbox("timed"), restarts=Restarts(limit=2, seconds=3, backoff_seconds=4))

    assert [0.0, 4.0, 8.0, 12.0] == timed.starts


async def test_asks_wait_for_the_restart(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """Between two incarnations nobody is refused: the ask is answered when the actor is back."""
    box: Mailbox[Word] = Mailbox("echo")
    nursery.start_soon(lambda: supervise(Echo(), box, restarts=Restarts(backoff_seconds=2)))
    box.port.tell(Crash())
    await trio.sleep(1)
    answer = await box.port.ask(Double(2))

    assert 4 == answer
    assert 2.0 == trio.current_time()


async def test_cancelling_a_supervised_actor_is_no_crash(autojump_clock: trio.testing.MockClock) -> None:
    """A cancel ends it for good, while it works and while it waits to be started again."""
    for told in (Note("1"), Crash()):
        echo = Echo()
        box: Mailbox[Word] = Mailbox("echo")
        box.port.tell(told)
        with trio.move_on_after(1):
            await supervise(echo, box, restarts=Restarts(backoff_seconds=60))

        assert 1 == echo.starts
        assert box.statistics().closed


async def test_an_interrupt_is_not_forgiven() -> None:
    """What is no `Exception` is nobody's to swallow; who waits is answered all the same."""
    box: Mailbox[Word] = Mailbox("echo")

    class Interrupted:
        async def run(self, mailbox: Mailbox[Word]) -> None:
            async for _ in mailbox:
                raise KeyboardInterrupt

    replies: list[str] = []
    box.port.request(Double(1), lambda reply: replies.append("answered"))
    with pytest.raises(KeyboardInterrupt):
        await supervise(Interrupted(), box)

    assert ["answered"] == replies
    assert box.statistics().closed


async def test_the_askers_see_why_it_crashed(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    """`ActorCrashed` is raised from the error: what it says is for programs, and stands in no text."""
    cause = KeyError("secret")
    box: Mailbox[Word] = Mailbox("echo")
    replies: list[Reply[int]] = []
    box.port.request(Double(1), replies.append)
    box.port.tell(Crash(cause))
    with pytest.raises(KeyError):
        await supervise(Echo(hold=True), box, restarts=Restarts(limit=0))
    with pytest.raises(ActorCrashed) as early:
        replies[0].result()
    with pytest.raises(ActorCrashed) as late:
        await box.port.ask(Double(2))

    assert cause is early.value.__cause__ is late.value.__cause__
    assert {"echo crashed: KeyError"} == {str(early.value), str(late.value)}


@pytest.mark.parametrize(
    ("restarts", "waits"),
    [
        (Restarts(limit=9, seconds=900, backoff_seconds=1, max_backoff_seconds=5), [1.0, 2.0, 4.0, 5.0, 5.0]),
        (Restarts(limit=9, seconds=900, backoff_seconds=8, jitter=0.5, draw=lambda: 0.5), [6.0, 12.0, 24.0]),
        (Restarts(limit=9, seconds=900, backoff_seconds=8, jitter=1, draw=lambda: 0.25), [6.0, 12.0]),
        (Restarts(limit=9999, backoff_seconds=1), [1.0, 2.0]),
    ],
    ids=["bounded", "half of it random", "all of it random", "many"],
)
async def test_waits_are_bounded_and_spread(
    restarts: Restarts, waits: list[float], autojump_clock: trio.testing.MockClock
) -> None:
    """Doubled up to `max_backoff_seconds`, less a random part of at most `jitter`."""
    timed = Timed()
    with trio.move_on_after(sum(waits) + 0.5):
        await supervise(timed, Mailbox("timed"), restarts=restarts)
    starts = timed.starts[: len(waits) + 1]

    assert waits == [later - sooner for sooner, later in pairwise(starts)]
    assert 60.0 == Restarts(backoff_seconds=1).wait_seconds(5000)


async def test_each_restart_is_told(caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock) -> None:
    """To `on_restart`, before the wait, and to the log with its traceback; an `on_restart` that fails changes nothing."""
    told: list[tuple[float, Restart]] = []
    error = ValueError("broken")

    def note(restart: Restart) -> None:
        told.append((trio.current_time(), restart))
        raise RuntimeError("mine")

    box: Mailbox[Word] = Mailbox("echo")
    box.port.tell(Crash(error))
    box.port.tell(Crash(error))
    box.port.tell(End())
    await supervise(Echo(), box, restarts=Restarts(backoff_seconds=2, on_restart=note))

    assert [(0.0, Restart("echo", error, 1, 2.0)), (2.0, Restart("echo", error, 2, 4.0))] == told
    assert [
        "actor crashed, and may start again actor=echo wait_seconds=2.0",
        "on_restart failed actor=echo",
        "actor crashed, and may start again actor=echo wait_seconds=4.0",
        "on_restart failed actor=echo",
    ] == [record.message for record in caplog.records]
    assert error is caplog.records[0].exc_info[1]  # type: ignore[index]


async def test_an_actor_can_be_over_alone(caplog: pytest.LogCaptureFixture) -> None:
    """With `escalates=False` one crash too many ends the actor and nobody else: it is logged, and asks are refused."""
    box: Mailbox[Word] = Mailbox("echo")
    box.port.tell(Crash(KeyError("x")))
    await supervise(Echo(), box, restarts=Restarts(limit=0, escalates=False))
    with pytest.raises(ActorCrashed, match="echo crashed: KeyError"):
        await box.port.ask(Double(1))

    assert ["actor crashed once more than is forgiven, and is over actor=echo"] == [
        one.message for one in caplog.records
    ]


@pytest.mark.parametrize(
    "given",
    [{"limit": -1}, {"seconds": -1}, {"backoff_seconds": float("nan")}, {"max_backoff_seconds": -2}, {"jitter": 1.5}],
    ids=str,
)
def test_numbers_that_cannot_be_right(given: dict[str, Any]) -> None:
    """A setting that makes no sense is refused where it is made, by its name."""
    with pytest.raises(SpecError, match=rf"Restarts\({next(iter(given))}=\)"):
        Restarts(**given)


@pytest.mark.parametrize("drain", [True, False])
async def test_a_stop_cuts_the_wait_for_a_restart(drain: bool, autojump_clock: trio.testing.MockClock) -> None:
    """An actor that is stopped before it is back comes back only for what waits in its mailbox."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    box.port.tell(Crash())
    replies: list[Reply[int]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: supervise(echo, box, restarts=Restarts(backoff_seconds=50)))
        await trio.sleep(1)
        box.port.request(Double(2), replies.append)
        box.stop(drain=drain)

    assert 1.0 == trio.current_time()
    assert (2 if drain else 1) == echo.starts
    if drain:
        assert 4 == replies[0].result()
    else:
        with pytest.raises(ActorGone, match="has been stopped"):
            replies[0].result()


async def test_a_crash_while_it_is_stopped(autojump_clock: trio.testing.MockClock) -> None:
    """What waits is handled all the same, by the next incarnation; with the last message it is over, crash or not."""
    echo = Echo()
    box: Mailbox[Word] = Mailbox("echo")
    for message in (Crash(), Note("1"), Crash()):
        box.port.tell(message)
    box.stop()
    await supervise(echo, box)

    assert [Note("1")] == [message for message in echo.heard if isinstance(message, Note)]
    assert 2 == echo.starts
