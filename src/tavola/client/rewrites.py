"""Rewrites: what a stored item would be if its entity were written now, and the write that makes it so.

An item falls behind its design: a template was changed, an index added, a schema version raised, or somebody wrote
past the library. What it should be follows from what its entity reads as: absent fields have their defaults, old
schemas are upgraded. Attributes that nobody declared are kept. The write holds only while what it was worked out
from still is what was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tavola.client.context import Context
from tavola.client.effects import Call
from tavola.client.marshalling import (
    VERSION,
    entity_of,
    item_of,
    upgraded_values,
    version_of,
)
from tavola.client.requests import all_of, conditioned, table_key, unchanged
from tavola.expressions.nodes import Action, ConditionNode, FunctionCall, Literal, Path, Remove, Set
from tavola.model import SHARD, KeyShape, Shape, Table, require_table, shape_of
from tavola.values import Item, equal


@dataclass(frozen=True, slots=True)
class Form:
    """An item beside what its entity would write now."""

    shape: Shape
    stored: Item
    right: Item
    upgraded: bool  # it was of an older schema
    managed: frozenset[str]  # attributes that keys of indexes are written to

    @property
    def misplaced(self) -> bool:
        """Whether the item would be written under another key of the table."""
        assert self.shape.key is not None
        return any(
            not same(self.stored.get(source.attribute), self.right[source.attribute])
            for source in self.shape.key.key.sources
        )

    def differing(self) -> frozenset[str]:
        """Return the attributes that are not as they would be written, the table's key aside."""
        names = (self.stored.keys() | self.right.keys()) - set(self.shape.home.settings.key_names)
        return frozenset(name for name in names if not same(self.stored.get(name), self.right.get(name)))


def same(one: Any, other: Any) -> bool:
    """Return whether two attribute values are equal; None is absence."""
    if one is None or other is None:
        return one is other
    return one == other or equal(one, other)


def managed_attributes(table: type[Table]) -> frozenset[str]:
    """Return the attributes of a table that templates write for its indexes, whichever entity's."""
    return frozenset(
        source.attribute
        for entity in require_table(table).entities.values()
        for key in shape_of(entity).keys
        for source in key.written
    )


def form_of(shape: Shape, item: Item, context: Context, managed: frozenset[str], *, settled: bool) -> Form:
    """Return an item beside what its entity would write now; `ItemUnreadable` if it cannot be read.

    A shard drawn at random is right wherever it is read, and so is one by hash while the count is being changed
    (`reading=`); `settled` wants the item in a shard that is written now.
    """
    entity = entity_of(shape.entity, item)
    right = item_of(shape, entity, context)
    for key in shape.keys:
        if key.shards is not None and key.shards.by != "time":
            right |= _in_its_shard(key, item, right, settled=settled)
    upgraded = version_of(shape, item) != shape.version
    foreign = item.keys() - shape.by_attribute.keys() - managed - right.keys() - {VERSION}
    if upgraded:
        kept = upgraded_values(shape, item)
        foreign = {name for name in foreign if name in kept}
    elif shape.version == 1 and VERSION in item:
        foreign = {*foreign, VERSION}
    return Form(shape, item, right | {name: item[name] for name in foreign}, upgraded, managed)


def _in_its_shard(key: KeyShape, item: Item, right: Item, *, settled: bool) -> Item:
    """Return a sharded key as it stands, where only its shard differs and that one will do."""
    source, shards = key.hash[0], key.shards
    stored, wanted = item.get(source.attribute), right.get(source.attribute)
    assert shards is not None
    assert source.template is not None
    exact = shards.by == "hash" and (settled or shards.reading is None)
    if stored is None or wanted is None or exact:
        return {}
    values = source.template.read(stored.get("S", ""))
    if values is None or not 0 <= values[SHARD] < (shards.count if settled else shards.reads):
        return {}
    told = source.template.read(wanted["S"])
    assert told is not None, "a template reads what it renders"
    return {source.attribute: stored} if {**values, SHARD: told[SHARD]} == told else {}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A write that makes attributes of an item what they should be, unless it has changed meanwhile."""

    form: Form
    attributes: frozenset[str]  # those to be written or removed

    @property
    def key(self) -> Item:
        """The key of the item."""
        return table_key(self.form.shape.home, self.form.stored)

    @property
    def result(self) -> Item:
        """The item as it will be."""
        kept = {n: v for n, v in self.form.stored.items() if n not in self.attributes}
        return kept | {n: v for n, v in self.form.right.items() if n in self.attributes}

    @property
    def entity(self) -> str:
        """Which entity the item is, by its tag."""
        return self.form.shape.name

    def call(self, context: Context) -> Call:
        """Return the UpdateItem."""
        return Call("UpdateItem", {**self.action(context), "ReturnConsumedCapacity": "TOTAL"})

    def action(self, context: Context, watched: Iterable[ConditionNode] = ()) -> dict[str, Any]:
        """Return the update as a transaction takes it; more conditions may be watched."""
        nodes = list(self._guards())
        nodes += (node for node in watched if node not in nodes)
        request = {"TableName": context.name_of(self.form.shape.home), "Key": self.key}
        return conditioned(request, all_of(nodes), self._actions())

    def _actions(self) -> list[Action]:
        right = self.form.right
        return [
            Set(Path((name,)), Literal(right[name])) if name in right else Remove(Path((name,)))
            for name in sorted(self.attributes)
        ]

    def _guards(self) -> Iterable[ConditionNode]:
        """Give the conditions that what the new values follow from is as it was read."""
        shape, stored = self.form.shape, self.form.stored
        yield FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
        watched = set(self.attributes)
        if self.form.upgraded:
            watched |= stored.keys() | shape.by_attribute.keys()
        for key in shape.keys:
            if any(source.attribute in self.attributes for source in key.written):
                watched |= {shape.fields[name].attribute for name in key.fields}
        if not self.form.upgraded:
            watched -= self.form.managed  # they follow from fields, and others may be mending them too
        if shape.version > 1:
            watched.add(VERSION)
        for name in sorted(watched - self.key.keys()):
            yield unchanged(stored, name)


def key_rewrite(form: Form) -> Rewrite | None:
    """Return the write that puts an item's index keys right, None if they are.

    Fields that a key is made of and that are absent are stored with it, so that both say the same.
    """
    if form.upgraded:
        return whole_rewrite(form)
    shape = form.shape
    differing = form.differing()
    wrong = differing & form.managed
    if not wrong:
        return None
    for key in shape.keys:
        if any(source.attribute in wrong for source in key.written):
            fed = {shape.fields[name].attribute for name in key.fields}
            wrong |= {name for name in fed & differing if name not in form.stored}
    return Rewrite(form, wrong)


def whole_rewrite(form: Form) -> Rewrite | None:
    """Return the write that makes an item all that its entity would write, None if it is."""
    differing = form.differing()
    return Rewrite(form, differing) if differing else None


def dropped(form: Form, attributes: Iterable[str]) -> Form:
    """Return a form without attributes that the design has given up."""
    left = {name: value for name, value in form.right.items() if name not in set(attributes)}
    return Form(form.shape, form.stored, left, form.upgraded, form.managed)
