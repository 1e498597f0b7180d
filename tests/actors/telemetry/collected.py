"""The real SDK of OpenTelemetry, with what it exports kept in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import attrs
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from actors import Runtime
from actors.telemetry import trace_runtime


@attrs.define(eq=False)
class Collected:
    """What was traced and measured."""

    exporter: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = attrs.field(factory=InMemoryMetricReader)
    tracers: TracerProvider = attrs.field(init=False)
    meters: MeterProvider = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    @contextlib.contextmanager
    def of(self, runtime: Runtime, **options: Any) -> Generator[None]:
        """Trace a runtime."""
        with trace_runtime(runtime, tracer_provider=self.tracers, meter_provider=self.meters, **options):
            yield

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended, in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def only(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def lineage(self, span: ReadableSpan) -> list[str]:
        """The names from a span up to its root."""
        by_id = {one.context.span_id: one for one in self.spans if one.context is not None}
        names = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return names

    def points(self) -> dict[str, list[tuple[dict[str, Any], int]]]:
        """Of each metric, its sets of attributes with how often they were measured."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], int]]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points: Any = metric.data.data_points
                    found[metric.name] = [(dict(point.attributes), point.count) for point in points]
        return found
