"""What hooks and conditions are shown cannot be changed, and does not change (H4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors import CallConfig, StepState, StopState
from protocol.errors import ContextOverflow
from protocol.turns import AssistantMessage, TextPart, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_until
from tests.support.specs import agent

OVERFLOW = ContextOverflow("too long", status=400)


def mutations(messages: Any, steps: Any, tools: Any, view: Any) -> list[Callable[[], object]]:
    return [
        lambda: messages.append(UserMessage("x")),
        lambda: messages.__setitem__(0, UserMessage("x")),
        lambda: messages.clear(),
        lambda: setattr(messages[0], "text", "x"),
        lambda: steps.append(None),
        lambda: steps.__delitem__(0),
        lambda: setattr(steps[0], "text", "x"),
        lambda: tools.append(None),
        lambda: setattr(tools[0], "name", "x"),
        lambda: setattr(view, "messages", []),
    ]


def try_all(tries: list[Callable[[], object]]) -> int:
    """How many of the attempts to change a view went through."""
    through = 0
    for attempt in tries:
        try:
            attempt()
        except (AttributeError, TypeError):
            continue
        through += 1
    return through


def test_views_cannot_be_changed() -> None:
    """H4: hooks and conditions get immutable views: messages, steps, tools and the view itself."""
    through: dict[str, int] = {}

    def call_hook(config: CallConfig) -> CallConfig:
        if config.step_number:
            through["prepare_call"] = try_all(mutations(config.messages, (config,), config.tools, config))
        return config

    def step_hook(state: StepState) -> None:
        if state.step_number:
            through["prepare_step"] = try_all(mutations(state.messages, state.steps, state.tools, state))

    def condition(state: StopState) -> None:
        through["condition"] = try_all(mutations(state.messages, state.steps, (state,), state)[:7])

    def keep_on(state: StopState) -> None:
        through["continue_when"] = try_all(mutations(state.messages, state.steps, (state,), state)[:7])

    def run(**options: Any) -> Played:
        spec = agent(calls_until(2), Bench().tool(), stop_when=[condition], continue_when=keep_on, **options)
        return play(spec)

    def overflow(messages: Any) -> list[Any]:
        through["on_context_overflow"] = try_all(mutations(messages, (messages,), (), messages)[:4])
        return list(messages)

    played = [run(prepare_call=call_hook), run(prepare_step=step_hook)]
    play(agent([OVERFLOW, "done"], on_context_overflow=overflow))

    assert {
        "prepare_call": 0,
        "prepare_step": 0,
        "condition": 0,
        "continue_when": 0,
        "on_context_overflow": 0,
    } == through
    assert played[0].messages == played[1].messages
    assert AssistantMessage((TextPart("done"),)) == played[0].messages[-1]


def test_views_do_not_grow() -> None:
    """H4: what a hook was shown stays what it was, however the run goes on."""
    states: list[StepState] = []

    def hook(state: StepState) -> None:
        states.append(state)

    play(agent(calls_until(2), Bench().tool(), prepare_step=hook))

    assert [(1, 0), (3, 1), (5, 2)] == [(len(state.messages), len(state.steps)) for state in states]
    assert [(1, 0), (3, 1), (5, 2)] == [(len(list(state.messages)), len(list(state.steps))) for state in states]
