"""Mock state: which engine responds inside `mock()`.

`mocking` redirects botocore's clients to it. Tavola's own backends look here, so that a mock applies to them too, also without
botocore.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.arns import Scope

Execute = Callable[[str, bytes, Scope], bytes]
"""Executes an operation by name, with its JSON body and scope, and returns the JSON response: `Engine.execute`."""


@dataclass(frozen=True, slots=True, eq=False)
class MockTarget:
    """What responds while a mock is active, and the default scope of requests."""

    execute: Execute
    scope: Scope
    region: str | None = None  # of clients that are created without a region
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY


ACTIVE_MOCKS: list[MockTarget] = []
"""The active mocks of this process, the innermost last; only `mocking` changes it."""


def current_mock() -> MockTarget | None:
    """Return the innermost active mock, None outside of every mock."""
    innermost = ACTIVE_MOCKS[-1:]  # one step, so that a thread that leaves a mock cannot interfere
    return innermost[0] if innermost else None
