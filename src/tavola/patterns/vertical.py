"""Vertical split: frequently changed fields in an item of their own, read together with the rest by one query.

A write is billed by the size of the whole item, in steps of 1 KB, however little changes. Counting a view in a profile of 10 KB
costs 10 units each time; in a separate item it costs 1. Both items share a partition, so reading them together is one
query and costs the same as reading one item. What it gives up: an update of both parts needs a transaction.

    class Profile(Entity, table=Site):
        …
        class Key(PrimaryKey["Profile"], pk="USER#{user_id}", sk="PROFILE"):
            user_id: str

    class Stats(Entity, table=Site):
        user_id: Attr[str]
        views: Attr[int] = attr(default=0)
        class Key(PrimaryKey["Stats"], pk="USER#{user_id}", sk="STATS"):
            user_id: str

    class User(Collection, pk="USER#{user_id}"):
        user_id: str
        profile: Profile | None = member()
        stats: Stats | None = member()

    users = Split(db, User, cold=Profile, hot=Stats)
    users.create(profile)
    users.change(Stats.views.add(1), user_id="ann")
    users.read(user_id="ann").stats.views
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tavola.client.transactions import TransactionCancelled
from tavola.limits import WRITE_UNIT_BYTES
from tavola.model import Change, Collection, Entity, members_of, shape_of
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    key_class,
    recipe_method,
    write_together,
)

W = TypeVar("W", bound=Collection)
C = TypeVar("C", bound=Entity)
H = TypeVar("H", bound=Entity)


@dataclass(frozen=True, slots=True)
class Saving:
    """The write units that a split saves per change of the hot part."""

    together: int  # in one item
    apart: int  # in an item of its own

    @property
    def times(self) -> float:
        """How many times cheaper a change is."""
        return self.together / self.apart


def saving(cold_bytes: int, hot_bytes: int) -> Saving:
    """Return what splitting an item of these sizes saves; an index that holds the hot part costs as much again."""
    return Saving(_units(cold_bytes + hot_bytes), _units(hot_bytes))


def _units(size: int) -> int:
    return max(1, -(-size // WRITE_UNIT_BYTES))


class Split(Recipe[D_co], Generic[D_co, W, C, H]):
    """An object in two items: `cold`, which is large and changes rarely, and `hot`, which is small and changes often.

    Both have keys with the same arguments, and `whole` is the collection of both. All fields of `hot` except its key need defaults.
    """

    def __init__(self, db: D_co, whole: type[W], *, cold: type[C], hot: type[H]) -> None:
        super().__init__(db)
        self.whole = whole
        self.cold = cold
        self.hot = hot
        shape = shape_of(cold).key
        if shape is None:
            raise RecipeRefused(cold.__name__, "it has no key; give it a table and a PrimaryKey class")
        self.names = shape.partition
        self.cold_key = key_class(cold, *self.names)
        self.hot_key = key_class(hot, *self.names)
        entities = {member.entity for member in members_of(whole) if not member.many}
        for entity in (cold, hot):
            if entity not in entities:
                raise RecipeRefused(
                    whole.__name__,
                    f"it has no member {entity.__name__}; declare a member {entity.__name__} | None = member()",
                )
        for name, field in shape_of(hot).fields.items():
            if field.required and name not in self.names:
                raise RecipeRefused(
                    f"{hot.__name__}.{name}", "it has no default, so the hot part cannot be created; add one"
                )

    @recipe_method
    def create(self, cold: C, hot: H | None = None) -> PatternProgram[None]:
        """Store both parts of a new object in one transaction; raise `ItemExists` if it exists."""
        hot_part = hot or self.hot(**{name: getattr(cold, name) for name in self.names})
        try:
            yield from write_together(lambda writes: (writes.create(cold), writes.create(hot_part)))
        except TransactionCancelled as cancelled:
            if cancelled.reasons[0] is not None and cancelled.reasons[0].kind == "exists":
                raise cancelled.reasons[0].error from cancelled
            raise

    @recipe_method
    def read(self, /, **key: Any) -> PatternProgram[W]:
        """Return the collection with both parts, in one query; a missing part is None."""
        query = self.whole(**key)
        return (yield from call_client(lambda db: db.collect(query, consistent=True)))

    @recipe_method
    def change(self, /, *changes: Change[H], **key: Any) -> PatternProgram[H]:
        """Change only the hot part and return it; raise `ItemMissing` if the object does not exist."""
        target = self.hot_key(**key)
        return (yield from call_client(lambda db: db.update(target, *changes)))

    @recipe_method
    def replace(self, cold: C) -> PatternProgram[None]:
        """Replace the cold part and keep the hot one; raise `ItemMissing` if the object does not exist."""
        target = self.hot_key(**{name: getattr(cold, name) for name in self.names})
        try:
            yield from write_together(lambda writes: (writes.put(cold), writes.check(target)))
        except TransactionCancelled as cancelled:
            if cancelled.reasons[1] is not None:
                raise cancelled.reasons[1].error from cancelled
            raise

    @recipe_method
    def delete(self, /, **key: Any) -> PatternProgram[None]:
        """Delete both parts together."""
        cold, hot = self.cold_key(**key), self.hot_key(**key)
        yield from write_together(lambda writes: (writes.delete(cold), writes.delete(hot)))
