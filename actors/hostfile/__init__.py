"""Host files: agents, and all that they share, in TOML."""

from __future__ import annotations

from ._faults import Fault, HostFileError, told
from ._gateway import GatewaySettings, access_of, address_of, tls_context
from ._read import HostFile, read_host_file
from ._schema import host_file_schema
from ._tools import near_folder

__all__ = (
    "Fault",
    "GatewaySettings",
    "HostFile",
    "HostFileError",
    "access_of",
    "address_of",
    "host_file_schema",
    "near_folder",
    "read_host_file",
    "tls_context",
    "told",
)
