"""ModelError: a declaration that is not possible, or a value that does not fit its declaration."""

from __future__ import annotations

from collections.abc import Mapping

from tavola.errors import TavolaError
from tavola.values import Value


class ModelError(TavolaError):
    """An invalid declaration: the class, the part of it, and what to do."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place.rpartition("<locals>.")[2]  # the class, not the function it is declared in
        self.problem = problem
        super().__init__(f"{self.place}: {problem}")


class QueryRefused(ModelError):
    """A query that its access pattern does not allow, such as one that skips a part of the sort key."""


class ValueNotStorable(ModelError):
    """A value, or a type of values, that DynamoDB cannot hold without loss."""

    code = "not-storable"


class ItemUnreadable(ModelError):
    """A stored item that cannot be read as its entity, with the item's key if it is known."""

    def __init__(
        self,
        place: str,
        problem: str,
        table: str | None = None,
        key: Mapping[str, Value] | None = None,
        *,
        hidden: bool = False,
    ) -> None:
        self.table = table
        self.key = key  # as DynamoDB has keys
        self.reason = problem
        which = "" if key is None else f" (in {table}, {'.key says which' if hidden else _show_key(key)})"
        super().__init__(place, problem + which)

    def at(self, table: str, key: Mapping[str, Value], *, hidden: bool = False) -> ItemUnreadable:
        """Return the same error for a certain item; a `hidden` key is not part of the message."""
        return ItemUnreadable(self.place, self.reason, table, key, hidden=hidden)


def _show_key(key: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={next(iter(value.values()))!r}" for name, value in key.items())


class DocumentRefused(ModelError):
    """A design's document that cannot be read; its place is a JSON path."""
