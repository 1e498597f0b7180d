"""A typed ask through a mailbox, against the least that asks at all: a message with an event in it."""

from __future__ import annotations

import attrs
import trio

from actors.kit import Ask, Mailbox, run_once
from benchmarks.harness.measure import Sample, goal, options, report, take_turns, timed

FLOOR = "floor: event slot"


class _Slot:
    __slots__ = ("answered", "number", "value")

    def __init__(self, number: int) -> None:
        self.number = number
        self.value = 0
        self.answered = trio.Event()


async def _ask_by_slot(count: int) -> None:
    send, receive = trio.open_memory_channel[_Slot](8)

    async def echo() -> None:
        async for slot in receive:
            slot.value = slot.number
            slot.answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo)
        for number in range(count):
            slot = _Slot(number)
            send.send_nowait(slot)
            await slot.answered.wait()
            assert slot.value == number
        nursery.cancel_scope.cancel("done")


@attrs.frozen(eq=False)
class _Echo(Ask[int]):
    number: int


class _Echoer:
    async def run(self, mailbox: Mailbox[_Echo], /) -> None:
        async for message in mailbox:
            message.reply.set(message.number)


async def _ask_typed(count: int) -> None:
    mailbox = Mailbox[_Echo]("echo")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_once, _Echoer(), mailbox)
        for number in range(count):
            assert await mailbox.port.ask(_Echo(number)) == number
        nursery.cancel_scope.cancel("done")


def main() -> None:
    opts = options(__doc__, rounds=25)
    count = 1000 if opts.quick else 5000

    def slot() -> Sample:
        return timed(lambda: trio.run(_ask_by_slot, count))

    def typed() -> Sample:
        return timed(lambda: trio.run(_ask_typed, count))

    series = take_turns({FLOOR: slot, "ours: typed ask": typed}, opts.rounds)
    ratio = series["ours: typed ask"].ratio_to(series[FLOOR])
    report(
        "ask",
        opts,
        [goal(f"ratio to {FLOOR}", ratio["cpu"], at_most=1.25)],
        us_per_ask={name: one.per(count, unit=1e-6) for name, one in series.items()},
        ratio_to_event_slot=ratio,
    )


if __name__ == "__main__":
    main()
