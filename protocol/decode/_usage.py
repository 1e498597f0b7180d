"""The usage of several hops as one, in the provider's own form.

Every hop is billed for itself, so tokens and counts are added. What is not known to be an amount is not: an integer
with another name may be a level or an id. It stands in the usage of its hop alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..untyped import items, mapping

__all__ = ("merge_usage",)

_INITIAL = "initial_input_tokens"


def merge_usage(usages: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The usages of the hops, in order, as one; `None` if no hop told any. Nothing that is given is changed.

    `initial_input_tokens` is the first hop's; a later one must not pass for it, so an unknown one is there as `None`.
    """
    told = [usage for usage in usages if usage]
    if not told:
        return None
    if len(usages) == 1:
        return dict(told[0])
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for usage in told for name in usage):
        values = [usage[name] for usage in told if usage.get(name) is not None]
        if name != _INITIAL and values:
            _merge_field(merged, name, values)
    first = usages[0] or {_INITIAL: None}
    merged[_INITIAL] = first[_INITIAL] if _INITIAL in first else first.get("total_input_tokens")
    return merged


def _merge_field(merged: dict[str, Any], name: str, values: list[Any]) -> None:
    lists = [items(value) for value in values if isinstance(value, list)]
    counts = [count for value in values if (count := _integer(value)) is not None]
    others = [value for value in values if not isinstance(value, list) and _integer(value) is None]
    if lists and name.endswith("_by_modality"):
        merged[name] = _merge_entries(lists, "modality", "tokens")
    elif lists and name == "grounding_tool_count":
        merged[name] = _merge_entries(lists, "type", "count")
    elif lists:
        merged[name] = lists[-1]
    elif counts and _is_amount(name):
        merged[name] = sum(counts)
    elif others:
        merged[name] = others[-1]


def _is_amount(name: str) -> bool:
    return name.endswith(("_tokens", "_count"))


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _merge_entries(lists: Sequence[list[Any]], key: str, amount: str) -> list[Any]:
    """Entries with one key are one entry; whatever has no key is kept as it is."""
    entries: list[Any] = []
    places: dict[str, int] = {}
    for entry in [entry for entries_of_hop in lists for entry in entries_of_hop]:
        name = mapping(entry).get(key)
        if not isinstance(name, str):
            entries.append(entry)
        elif name not in places:
            places[name] = len(entries)
            entries.append(dict(entry))
        else:
            known = entries[places[name]]
            added = _integer(entry.get(amount))
            if added is not None:
                known[amount] = (_integer(known.get(amount)) or 0) + added
    return entries
