"""Turning tracing on. OpenTelemetry is imported here, when that is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

from protocol.errors import SpecError

from ..runtime import Runtime

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ("trace_runtime",)


@contextlib.contextmanager
def trace_runtime(
    runtime: Runtime,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    capture_content: bool = False,
) -> Generator[None]:
    """Inside the block, trace and measure the runs that begin; those that go on at its end are traced to theirs.

    The providers are OpenTelemetry's own: the global ones unless given. Nothing of what was said stands in a span, but for
    `capture_content`: prompts, replies, and arguments and results of tools, in bounds. Use it only where whoever reads the
    traces may read that.

    Raises `SpecError` if the runtime is probed already, or OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        raise SpecError("tracing needs OpenTelemetry: pip install 'onward[otel]'") from None
    from ._spans import Tracing

    tracer = trace.get_tracer("onward", tracer_provider=tracer_provider)
    meter = metrics.get_meter("onward", meter_provider=meter_provider)
    with runtime.probe(Tracing(tracer, meter, capture_content=capture_content)):
        yield
