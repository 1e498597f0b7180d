"""What property tests draw: values of the vocabulary, as bad as a model or a file may make them."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from protocol.turns import (
    AssistantMessage,
    Ending,
    Finish,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    Turn,
    UserMessage,
)
from protocol.usage import NO_USAGE, UNKNOWN_USAGE, Usage

any_text = st.text(st.characters(exclude_categories=()), max_size=12)
"""Text with anything in it, lone surrogates too."""

call_ids = st.sampled_from(["", "a", "b", "c", "a-2", "\ud800"])
tool_names = st.sampled_from(["add", "look", "\udfff", "größe"])

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
"""What `json.dumps` takes: with NaN, infinities, huge integers and lone surrogates."""

raw_arguments = st.one_of(
    st.sampled_from(["", "  ", "null", "{}", "[]", "3", '{"a": 1}', '{"a": 1', '{"a": NaN}', '{"a": "\\ud800"}']),
    st.dictionaries(any_text, json_values, max_size=3).map(lambda value: _dumps(value)),
    any_text,
)

counts = st.none() | st.integers(0, 10**6)
usages = st.one_of(
    st.sampled_from([NO_USAGE, UNKNOWN_USAGE, Usage(0, 0, 0, 0, 0, True)]),
    st.builds(Usage, counts, counts, counts, counts, counts, st.booleans()),
)

calls = st.builds(ToolCall, call_ids, tool_names, raw_arguments, st.none() | any_text, st.none() | st.just("v1"))
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, any_text),
    st.builds(ReasoningPart, any_text, st.none() | st.just("signed")),
    calls,
    st.builds(OpaquePart, st.just("openai-chat"), st.just("{}"), st.none() | call_ids),
)
turns = st.builds(
    Turn,
    st.lists(parts, max_size=6).map(tuple),
    st.none() | st.sampled_from(get_args(Finish)),
    st.none() | st.sampled_from(["stop", "weird"]),
    usages,
    st.sampled_from(get_args(Ending)),
)

results = st.builds(ToolResult, call_ids, tool_names, st.sampled_from(get_args(ToolStatus)), any_text, st.booleans())
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, any_text),
    st.builds(AssistantMessage, st.lists(parts, max_size=5).map(tuple), st.booleans()),
    st.builds(ToolMessage, st.lists(results, max_size=4).map(tuple)),
)
conversations = st.lists(messages, max_size=8)


def _dumps(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def is_clean(text: str) -> bool:
    """Whether a text encodes as UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def texts_in(value: Any) -> list[str]:
    """Every text in a value of plain data, keys too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (*texts_in(key), *texts_in(item))]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in texts_in(item)]
    return []
