"""Context: settings that all operations of one client share."""

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
    """Table names, clock, entropy, retry policy, and the secret that signs cursors."""

    # Deployed table names. A key is the table class, its class name, or the name that the model gives the table.
    names: Mapping[Any, str] = field(default_factory=dict)
    prefix: str = ""
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY
    secret: bytes = b""  # default: a random one, so cursors are valid in this process only
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    region: str | None = None  # selects the prices of explanations
    _resolved: dict[type[Table], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key, name in self.names.items():
            if not name:
                raise ModelError(
                    "table_names",
                    f"{_describe_key(key)} is mapped to {name!r}; use the name of a deployed table",
                )
        secret: Any = self.secret
        if not isinstance(secret, bytes):
            raise ModelError("cursor_secret", 'it must be bytes: cursor_secret=b"…"')
        if not self.secret:
            object.__setattr__(self, "secret", SYSTEM_ENTROPY.bytes(_SECRET_BYTES))

    def name_of(self, table: type[Table]) -> str:
        """Return the deployed name of a table."""
        name = self._resolved.get(table)
        if name is None:
            name = self._resolved[table] = self._resolve_name(require_table(table))
        return name

    def _resolve_name(self, table: type[Table]) -> str:
        """Return the deployed name of a table; refuse `names` that refer to no table, or to two."""
        declared = declared_tables() if self.names else []
        for key in self.names:
            tables = {
                declared_table.settings.name for declared_table in declared if _refers_to(key, declared_table)
            }
            if not tables:
                declared_names = ", ".join(
                    sorted({_both_names(declared_table) for declared_table in declared})
                )
                raise ModelError(
                    "table_names",
                    f"{_describe_key(key)} is not a declared table; declared are {declared_names or 'none'} (import the modules that "
                    "declare tables before the first call)",
                )
            if len(tables) > 1:
                raise ModelError(
                    "table_names",
                    f"{_describe_key(key)} could be {' or '.join(sorted(tables))}; use the table class as the key",
                )
        names = {name for key, name in self.names.items() if _refers_to(key, table)}
        if len(names) > 1:
            raise ModelError(
                "table_names",
                f"{_both_names(table)} is mapped to {' and '.join(sorted(names))}; map it to one name",
            )
        return next(iter(names), self.prefix + table.settings.name)

    def chance(self, bound: int) -> int:
        """Return a random number below a bound."""
        return int.from_bytes(self.entropy.bytes(8), "big") % bound


def _refers_to(key: Any, table: type[Table]) -> bool:
    if isinstance(key, type):
        return (key.__module__, key.__qualname__) == (table.__module__, table.__qualname__)
    return key in (table.__name__, table.settings.name)


def _describe_key(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else repr(key)


def _both_names(table: type[Table]) -> str:
    name, table_name = table.__name__, table.settings.name
    return name if name == table_name else f"{name} ({table_name!r})"
