"""Traces and metrics by OpenTelemetry, in its conventions for generative AI. Needs the extra `onward[otel]`.

    with trace_runtime(runtime):
        ...

puts an `invoke_agent` span around each run that begins in the block, with a `chat` span around each model call and an
`execute_tool` span around each tool's body. They are current where the work is done: spans of HTTP clients, of tools and
of sub-agents stand below them.
"""

from ._trace import trace_runtime

__all__ = ("trace_runtime",)
