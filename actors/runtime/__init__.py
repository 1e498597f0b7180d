"""The runtime: hosts agents and users' own actors in one process, and stops them in order."""

from ._open import OnEvent, open_runtime
from ._runtime import Runtime
from ._statistics import RuntimeStatistics

__all__ = ("OnEvent", "Runtime", "RuntimeStatistics", "open_runtime")
