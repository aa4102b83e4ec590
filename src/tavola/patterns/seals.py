"""Seals: whether items still are what was written, by digests that are kept elsewhere.

    order.receipt_seal = stored_digest(receipt)          in a record that is sealed itself
    …
    (seen,) = Seals(db).look([Receipt.Key(number=7)])
    seen is not None and seen.digest == order.receipt_seal

A digest is of all attributes as they are stored, also of those that this program does not know, but for the keys. The
keys of indexes follow from the fields: an item that has others is found where it should not be, and `astray` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tavola.client import get_stored
from tavola.model import PrimaryKey, shape_of
from tavola.patterns.audit import elsewhere, seal_in
from tavola.patterns.recipe import D_co, Recipe, Turns, ask, verb


@dataclass(frozen=True, slots=True)
class Seen:
    """An item as it stands."""

    digest: str  # `stored_digest` of the entity that was written, if nobody touched it
    astray: tuple[str, ...]  # attributes of index keys that are not what its fields say


class Seals(Recipe[D_co], Generic[D_co]):
    """A look at items as they stand in a client's tables."""

    @verb
    def look(self, keys: Sequence[PrimaryKey[Any]]) -> Turns[list[Seen | None]]:
        """Return what stands under keys, in their order; None where nothing does."""
        items = yield from ask(lambda db: db.run(get_stored(db.context, keys)))
        return [_seen(key, item) for key, item in zip(keys, items, strict=True)]


def _seen(key: PrimaryKey[Any], item: dict[str, Any] | None) -> Seen | None:
    if item is None:
        return None
    shape = shape_of(type(key).__compiled__().owner)
    return Seen(seal_in(shape, item, frozenset(), None), tuple(elsewhere(shape, item)))
