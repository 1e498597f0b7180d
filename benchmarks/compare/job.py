"""What is to be done in one process, and what came of it. Needs the standard library alone."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ("Done", "Job")


class Job(NamedTuple):
    """Runs of one kind."""

    iterations: int
    width: int = 1
    """Tool calls in each iteration."""
    agents: int = 1
    """All at once."""
    times: int = 1
    """One after the other, in the same process."""
    base_url: str = ""
    """Of a model server; without one the model is a fake in the process."""

    @property
    def kind(self) -> str:
        """What a driver must be able to do for it."""
        return "http" if self.base_url else "many" if self.agents > 1 else "runs"

    @property
    def total(self) -> int:
        """The iterations of all runs together; of a model server, the calls."""
        return (self.iterations + bool(self.base_url)) * self.agents * self.times

    @property
    def small(self) -> Job:
        """The same, as short as it can be: loads what is loaded on first use. A model server says itself how long it is."""
        return self if self.base_url else self._replace(iterations=2, agents=min(self.agents, 2), times=1)


class Done(NamedTuple):
    """What one process tells."""

    wall: float
    """Seconds for all `times`."""
    cpu: float
    peak_mb: float
    """Resident memory at its highest, above that of the process after all imports."""

    def encode(self) -> str:
        """One line of JSON."""
        return json.dumps(self._asdict())

    @classmethod
    def decode(cls, line: str) -> Done:
        """The same again. Raises `ValueError` or `TypeError` for a line of something else."""
        told: dict[str, Any] = json.loads(line)
        return cls(**told)
