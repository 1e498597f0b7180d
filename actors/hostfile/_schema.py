"""The JSON Schema of a host file, from the same tables that it is read by: for editors."""

from __future__ import annotations

from typing import Any

from ._host_tables import HOST
from ._kinds import Schema

__all__ = ("host_file_schema",)


def host_file_schema() -> dict[str, Any]:
    """The schema, of draft 2020-12."""
    tables: dict[str, Schema] = {}
    HOST.schema(tables)
    host = tables.pop(HOST.title)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Onward host file",
        **host,
        "$defs": dict(sorted(tables.items())),
    }
