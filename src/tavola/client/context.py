"""Context: what every operation of one client shares, none of it I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tavola.client.retries import Patience
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.model import Table

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Context:
    """Whose tables, what time it is, where chance comes from, and the secret that signs cursors."""

    names: Mapping[str, str] = field(default_factory=dict)  # a table's own name: the name it has here
    prefix: str = ""
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY
    secret: bytes = b""  # none given: one by chance, and cursors hold in this process alone
    patience: Patience = field(default_factory=Patience)
    region: str | None = None  # whose prices an explanation tells

    def __post_init__(self) -> None:
        if not self.secret:
            object.__setattr__(self, "secret", SYSTEM_ENTROPY.bytes(_SECRET_BYTES))

    def name_of(self, table: type[Table]) -> str:
        """Return what a table is called where this client asks."""
        told = table.settings.name
        return self.names.get(told) or self.prefix + told

    def chance(self, bound: int) -> int:
        """Return any number below a bound."""
        return int.from_bytes(self.entropy.bytes(8), "big") % bound
