"""Stages: who answers inside `mock()`, for those that ask without botocore.

botocore's own clients are led to a stage by `mocking`; Tavola's backends look here, so that a mock holds for
them too, and so that they can be used where botocore is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.arns import Scope

Execute = Callable[[str, bytes, Scope], bytes]
"""An operation's name, its JSON and whose tables are meant, to the JSON of the answer: `Engine.execute`."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Who answers while a mock is on, and for whom where a request does not say."""

    execute: Execute
    scope: Scope
    region: str | None = None  # the one that clients get which were not given one by the code itself
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY


STAGES: list[Stage] = []
"""The stages of this process, the innermost last; `mocking` alone changes it."""


def current_stage() -> Stage | None:
    """Return who answers now; None outside of every mock."""
    stages = STAGES[-1:]  # one step, so that a thread that leaves cannot come between
    return stages[0] if stages else None
