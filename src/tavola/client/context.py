"""Context: what every operation of one client shares, none of it I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tavola.client.retries import RetryPolicy
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.model import ModelError, Table, declared_tables, require_table

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Context:
    """Whose tables, what time it is, where chance comes from, and the secret that signs cursors."""

    names: Mapping[Any, str] = field(
        default_factory=dict
    )  # a table, its class's name or its own: the name it has here
    prefix: str = ""
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY
    secret: bytes = b""  # none given: one by chance, and cursors hold in this process alone
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    region: str | None = None  # whose prices an explanation tells
    _found: dict[type[Table], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key, name in self.names.items():
            if not name:
                raise ModelError("table_names", f"{_word(key)} is called {name!r}; give the name of a table")
        secret: Any = self.secret
        if not isinstance(secret, bytes):
            raise ModelError("cursor_secret", 'it signs cursors, and is bytes: cursor_secret=b"…"')
        if not self.secret:
            object.__setattr__(self, "secret", SYSTEM_ENTROPY.bytes(_SECRET_BYTES))

    def name_of(self, table: type[Table]) -> str:
        """Return what a table is called where this client asks."""
        found = self._found.get(table)
        if found is None:
            found = self._found[table] = self._name(require_table(table))
        return found

    def _name(self, table: type[Table]) -> str:
        """Return what a table is called here; refuse names that are meant for no table, or for two."""
        declared = declared_tables() if self.names else []
        for key in self.names:
            meant = {each.settings.name for each in declared if _means(key, each)}
            if not meant:
                known = ", ".join(sorted({_both(each) for each in declared}))
                raise ModelError(
                    "table_names",
                    f"{_word(key)} is no table that is declared; there are {known or 'none'} (import the modules that "
                    "declare them before the first call)",
                )
            if len(meant) > 1:
                raise ModelError(
                    "table_names",
                    f"{_word(key)} could be {' or '.join(sorted(meant))}; give the class itself",
                )
        told = {name for key, name in self.names.items() if _means(key, table)}
        if len(told) > 1:
            raise ModelError(
                "table_names", f"{_both(table)} is called {' and '.join(sorted(told))}; give one"
            )
        return next(iter(told), self.prefix + table.settings.name)

    def chance(self, bound: int) -> int:
        """Return any number below a bound."""
        return int.from_bytes(self.entropy.bytes(8), "big") % bound


def _means(key: Any, table: type[Table]) -> bool:
    if isinstance(key, type):
        return (key.__module__, key.__qualname__) == (table.__module__, table.__qualname__)
    return key in (table.__name__, table.settings.name)


def _word(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else repr(key)


def _both(table: type[Table]) -> str:
    name, own = table.__name__, table.settings.name
    return name if name == own else f"{name} ({own!r})"
