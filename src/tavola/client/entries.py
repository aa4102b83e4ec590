"""Entries: what a query finds, as entities.

An item of the table, or of an index that holds everything, is its entity. An index that holds less has entries, of
which a view is made; where an entry does not tell enough (the query fetches whole items, whether the item has expired
is not in it, or which schema it is of, or that is an older one), the item itself is fetched. An index runs behind its
table, so an item that is no longer where the entry was is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.expiry import expired, expires
from tavola.client.marshalling import VERSION, entity_of, is_kind, version_of, view_from, view_of
from tavola.client.requests import table_key
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import ConditionNode
from tavola.model import Entity, ItemUnreadable, KeyShape, Shape
from tavola.values import Item


class Entries:
    """Makes entities of one kind of what is found by one key."""

    def __init__(
        self,
        context: Context,
        owner: Shape,
        key: KeyShape,
        result: type[Entity],
        *,
        hydrate: bool = False,
        filter_: ConditionNode | None = None,
        accepts: Callable[[Entity], bool] | None = None,
        unreadable: Callable[[ItemUnreadable], object] | None = None,
    ) -> None:
        self._context = context
        self._owner = owner
        self._table = owner.home
        self._key = key
        self._result = result
        self._filter = filter_
        self._accepts = accepts
        self._unreadable = unreadable
        index = key.index
        self._whole = index is None or index.projection == "ALL"
        self._fetched = hydrate or hides_expiry(owner, key)
        self._versioned = owner.version > 1 and not self._whole
        if self._versioned and index is not None and not index.holds(VERSION):
            self._fetched = True

    def made(self, items: Sequence[Item]) -> Program[list[Any | None]]:
        """Return the entities of items, in their order; None for those of another kind, expired, gone or unreadable."""
        owner, table = self._owner, self._table
        now_s = self._context.clock.now()
        made: list[Any | None] = [None] * len(items)
        fetched: list[int] = []
        for at, item in enumerate(items):
            if not is_kind(owner, table, item) or expired(table, item, now_s):
                continue
            try:
                if self._whole and self._result is owner.entity:
                    made[at] = self._accepted(entity_of(self._result, item))
                elif self._fetched or (self._versioned and version_of(owner, item) != owner.version):
                    fetched.append(at)
                elif self._whole and owner.version != 1 and version_of(owner, item) != owner.version:
                    made[at] = self._seen(entity_of(owner.entity, item))
                else:
                    made[at] = self._accepted(view_of(self._result, item, self._key, owner))
            except ItemUnreadable as error:
                self._pass_over(error)
        if fetched:
            keys = [table_key(table, items[at]) for at in fetched]
            found = yield from get_items(self._context, table, keys, False)
            for at, item_there in zip(fetched, found, strict=True):
                if item_there is None or not self._stands(items[at], item_there):
                    continue
                try:
                    made[at] = self._seen(entity_of(owner.entity, item_there))
                except ItemUnreadable as error:
                    self._pass_over(error)
        return made

    def _pass_over(self, error: ItemUnreadable) -> None:
        """Tell of an item that does not fit to who asked for that; otherwise it is in the way of all."""
        if self._unreadable is None:
            raise error
        self._unreadable(error)

    def _seen(self, entity: Entity) -> Entity | None:
        """Return a whole entity as the query gives it."""
        accepted = self._accepted(entity)
        if accepted is None or self._result is self._owner.entity:
            return accepted
        return view_from(self._result, accepted)

    def _accepted(self, entity: Entity) -> Entity | None:
        return entity if self._accepts is None or self._accepts(entity) else None

    def _stands(self, entry: Item, item: Item) -> bool:
        """Return whether an item still answers the question by which its entry was found."""
        names = () if self._key.index is None else self._key.index.attributes
        return (
            is_kind(self._owner, self._table, item)
            and not expired(self._table, item, self._context.clock.now())
            and all(entry.get(name) == item.get(name) for name in names)
            and (self._filter is None or compile_decider(self._filter)(item, {}))
        )


def hides_expiry(owner: Shape, key: KeyShape) -> bool:
    """Return whether an entity's items expire and its entries in an index do not tell when."""
    ttl = expires(owner)
    return ttl is not None and key.index is not None and not key.index.holds(ttl)
