"""Rewrites: what a stored item would be if its entity were written now, and the write that makes it so.

Stored items fall behind their design: a key template changes, an index is added, a schema version is raised, or another
program writes past the library. The right form of an item follows from its entity as it is read: absent fields have their
defaults, old schemas are upgraded. Undeclared attributes are kept. The write is conditional on everything that the new form
was computed from.
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
from tavola.client.requests import add_condition, all_of, table_key, unchanged_node
from tavola.expressions.nodes import Action, ConditionNode, FunctionCall, Literal, Path, Remove, Set
from tavola.model import SHARD, EntityShape, KeyShape, Table, require_table, shape_of
from tavola.values import Item, equal


@dataclass(frozen=True, slots=True)
class ItemForm:
    """A stored item, and the item that its entity would write now."""

    shape: EntityShape
    stored: Item
    right: Item
    upgraded: bool  # the stored item has an older schema
    managed: frozenset[str]  # attributes that hold index keys

    @property
    def misplaced(self) -> bool:
        """Whether the item would have another primary key."""
        assert self.shape.key is not None
        return any(
            not same_value(self.stored.get(source.attribute), self.right[source.attribute])
            for source in self.shape.key.key.sources
        )

    def differing(self) -> frozenset[str]:
        """Return the attributes that would be written differently, except the primary key."""
        names = (self.stored.keys() | self.right.keys()) - set(self.shape.home.settings.key_names)
        return frozenset(
            name for name in names if not same_value(self.stored.get(name), self.right.get(name))
        )


def same_value(one: Any, other: Any) -> bool:
    """Return whether two attribute values are equal; None stands for an absent one."""
    if one is None or other is None:
        return one is other
    return one == other or equal(one, other)


def managed_attributes(table: type[Table]) -> frozenset[str]:
    """Return the attributes that hold index keys of any entity of a table."""
    return frozenset(
        source.attribute
        for entity in require_table(table).entities.values()
        for key in shape_of(entity).keys
        for source in key.written
    )


def form_of(
    shape: EntityShape, item: Item, context: Context, managed: frozenset[str], *, settled: bool
) -> ItemForm:
    """Return an item and what its entity would write now; raise `ItemUnreadable` if it cannot be read.

    A random shard is right if it is among those that are read, and so is a hash shard while the number of shards is being
    changed (`reading=`); with `settled`, it must be one that is written now.
    """
    entity = entity_of(shape.entity, item)
    right = item_of(shape, entity, context)
    for key in shape.keys:
        if key.shards is not None and key.shards.by != "time":
            right |= _keep_shard(key, item, right, settled=settled)
    upgraded = version_of(shape, item) != shape.version
    foreign = item.keys() - shape.by_attribute.keys() - managed - right.keys() - {VERSION}
    if upgraded:
        values = upgraded_values(shape, item)
        foreign = {name for name in foreign if name in values}
    elif shape.version == 1 and VERSION in item:
        foreign = {*foreign, VERSION}
    return ItemForm(shape, item, right | {name: item[name] for name in foreign}, upgraded, managed)


def _keep_shard(key: KeyShape, item: Item, right: Item, *, settled: bool) -> Item:
    """Return the stored key if it differs only in its shard, and that shard is acceptable; otherwise nothing."""
    source, shards = key.hash[0], key.shards
    stored, right_value = item.get(source.attribute), right.get(source.attribute)
    assert shards is not None
    assert source.template is not None
    exact = shards.by == "hash" and (settled or shards.reading is None)
    if stored is None or right_value is None or exact:
        return {}
    values = source.template.read(stored.get("S", ""))
    if values is None or not 0 <= values[SHARD] < (shards.count if settled else shards.reads):
        return {}
    expected = source.template.read(right_value["S"])
    assert expected is not None, "a template parses what it renders"
    return {source.attribute: stored} if {**values, SHARD: expected[SHARD]} == expected else {}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A conditional write that corrects attributes of an item."""

    form: ItemForm
    attributes: frozenset[str]  # to write or remove

    @property
    def key(self) -> Item:
        """The key of the item."""
        return table_key(self.form.shape.home, self.form.stored)

    @property
    def result(self) -> Item:
        """The item after the write."""
        unchanged = {n: v for n, v in self.form.stored.items() if n not in self.attributes}
        return unchanged | {n: v for n, v in self.form.right.items() if n in self.attributes}

    @property
    def entity(self) -> str:
        """The name of the item's entity."""
        return self.form.shape.name

    def call(self, context: Context) -> Call:
        """Return the UpdateItem."""
        return Call("UpdateItem", {**self.action(context), "ReturnConsumedCapacity": "TOTAL"})

    def action(self, context: Context, conditions: Iterable[ConditionNode] = ()) -> dict[str, Any]:
        """Return the update as an action of a transaction, with more conditions."""
        nodes = list(self._conditions())
        nodes += (node for node in conditions if node not in nodes)
        request = {"TableName": context.name_of(self.form.shape.home), "Key": self.key}
        return add_condition(request, all_of(nodes), self._actions())

    def _actions(self) -> list[Action]:
        right = self.form.right
        return [
            Set(Path((name,)), Literal(right[name])) if name in right else Remove(Path((name,)))
            for name in sorted(self.attributes)
        ]

    def _conditions(self) -> Iterable[ConditionNode]:
        """Yield the conditions that everything the new values were computed from is unchanged."""
        shape, stored = self.form.shape, self.form.stored
        yield FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
        read = set(self.attributes)
        if self.form.upgraded:
            read |= stored.keys() | shape.by_attribute.keys()
        for key in shape.keys:
            if any(source.attribute in self.attributes for source in key.written):
                read |= {shape.fields[name].attribute for name in key.fields}
        if not self.form.upgraded:
            read -= self.form.managed  # computed from fields, and other programs may be repairing them too
        if shape.version > 1:
            read.add(VERSION)
        for name in sorted(read - self.key.keys()):
            yield unchanged_node(stored, name)


def key_rewrite(form: ItemForm) -> Rewrite | None:
    """Return the write that corrects an item's index keys, None if they are right.

    Absent fields that a key contains are stored with it, so that both agree.
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


def whole_rewrite(form: ItemForm) -> Rewrite | None:
    """Return the write that makes an item what its entity would write, None if it is."""
    differing = form.differing()
    return Rewrite(form, differing) if differing else None


def without_attributes(form: ItemForm, attributes: Iterable[str]) -> ItemForm:
    """Return a form whose item lacks attributes that the design no longer has."""
    left = {name: value for name, value in form.right.items() if name not in set(attributes)}
    return ItemForm(form.shape, form.stored, left, form.upgraded, form.managed)


def current_form(shape: EntityShape, item: Item, context: Context) -> Item:
    """Return an item as its entity would write it now; raise `ItemUnreadable` for a newer schema version."""
    return form_of(shape, item, context, managed_attributes(shape.home), settled=False).right
