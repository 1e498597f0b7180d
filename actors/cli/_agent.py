"""From settings to an agent: its model, its tools, and who answers at the limit."""

from __future__ import annotations

import os
import warnings
from typing import Any

from protocol.errors import SpecError
from protocol.model import Model

from ..agent import AgentSpec, always, never
from ..tools import files
from ._settings import AgentSettings
from ._usage import UsageError

__all__ = ("model_for", "spec_for")


def model_for(settings: AgentSettings) -> Model:
    """The model that was asked for. Raises `UsageError` if it cannot be set up."""
    if settings.is_rules:
        from ..models.planner import Planner

        return Planner()
    from ..models.named import named_model, split_name

    kind, _ = split_name(settings.model)
    key = _key(settings.api_key_env)
    if settings.base_url is None and key is None and not kind.is_local and kind.key_variable() is None:
        raise UsageError(
            f"--model {settings.model} needs a key in {' or '.join(kind.key_variables)}, or the address of a server of"
            " your own: --base-url http://127.0.0.1:8080/v1"
        )
    try:
        return named_model(settings.model, base_url=settings.base_url, api_key=key)
    except SpecError as error:
        flag = "--model" if settings.base_url is None else "--model and --base-url"
        raise UsageError(f"{flag}: {error}") from None


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--api-key-env {variable}: the environment variable {variable} is not set, or empty")
    return key


def spec_for(settings: AgentSettings, model: Model, ask: Any) -> tuple[AgentSpec, list[str]]:
    """The agent's settings, and what there is to warn of. `ask` answers at the limit for `--on-limit ask`."""
    providers = {"ask": ask, "approve": always(), "decline": never()}
    finalization = "" if settings.on_limit == "finalize" else None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            spec = AgentSpec(
                name=settings.name,
                model=model,
                system=settings.system,
                tools=() if settings.root is None else files(settings.root),
                max_tool_iterations=settings.max_tool_iterations,
                max_llm_calls=settings.max_llm_calls,
                max_tool_calls=settings.max_tool_calls,
                max_total_tokens=settings.max_total_tokens,
                wall_clock_seconds=settings.wall_clock_seconds,
                continuation=providers.get(settings.on_limit),
                tool_iteration_limit_finalization=finalization,
                llm_call_limit_finalization=finalization,
            )
    except SpecError as error:
        raise UsageError(str(error)) from None
    return spec, [str(warning.message) for warning in caught]
