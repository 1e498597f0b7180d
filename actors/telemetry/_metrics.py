"""The instruments of the conventions."""

from __future__ import annotations

from typing import final

from opentelemetry.metrics import Histogram, Meter

from . import _names as names

__all__ = ("Meters",)


@final
class Meters:
    """What is measured."""

    def __init__(self, meter: Meter) -> None:
        self.tokens: Histogram = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )
        self.call_seconds = _seconds(meter, "gen_ai.client.operation.duration", "Model calls.", names.CALL_BUCKETS)
        self.run_seconds = _seconds(meter, "gen_ai.invoke_agent.duration", "Runs of agents.", names.AGENT_BUCKETS)
        self.tool_seconds = _seconds(meter, "gen_ai.execute_tool.duration", "Bodies of tools.", names.CALL_BUCKETS)


def _seconds(meter: Meter, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(name, unit="s", description=text, explicit_bucket_boundaries_advisory=buckets)
