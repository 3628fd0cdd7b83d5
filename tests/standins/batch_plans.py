"""How the jobs of a stand-in's batch API go: what is decided for each, and what is done to its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.standins.loopback import Act

Edit = Callable[[list[bytes]], list[bytes]]


@dataclass(frozen=True)
class Plan:
    """One job: for how many ``looks`` it goes on, how it ends, and what is left of its results.

    ``ends`` is succeeded, failed, expired or cancelled; with ``answered`` only so many requests get an answer.
    """

    looks: int = 1
    ends: str = "succeeded"
    message: str = ""
    answered: int | None = None
    late: int = 0
    """For how many looks a job that has succeeded does not say where its results are."""
    edit: Edit | None = None


@dataclass
class StandInJob:
    """A job as the service keeps it."""

    id: str
    name: str
    model: str
    source: str
    lines: list[dict[str, Any]]
    plan: Plan
    looks: int = 0
    state: str = "queued"
    output: str = ""
    errors: str = ""
    failed: int = 0
    succeeded: int = 0
    acts: list[Act] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        return self.looks <= self.plan.looks + 1 + self.plan.late and self.plan.late > 0

    def step(self) -> bool:
        """One look; True when it ends by it."""
        self.looks += 1
        if self.state in ("queued", "running"):
            self.state = "running"
            if self.looks > self.plan.looks:
                self.state = self.plan.ends
                return True
        return False


def edited(plan: Plan, lines: list[dict[str, Any]]) -> bytes:
    """Lines of results as a file, after what the plan does to them."""
    raw = [json.dumps(line).encode() + b"\n" for line in lines]
    return b"".join(plan.edit(raw) if plan.edit else raw)
