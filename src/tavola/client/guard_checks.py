"""Guard checks: guards of unique values compared with the items that have the values, and repaired together.

A field may become unique after its items were written, a schema change may alter what is unique, and other programs write and
delete past the library. So an item may lack a guard, and a guard may lack its item. Each is found by reading the other. A
repair is one transaction, conditional on both being as they were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.marshalling import identify_entity, is_item_of
from tavola.client.reports import GuardProblem, key_text
from tavola.client.requests import (
    ItemId,
    absent_node,
    add_condition,
    all_of,
    fault_item,
    is_expired,
    is_outdated,
    item_id,
    table_key,
    unchanged_node,
)
from tavola.client.rewrites import ItemForm, Rewrite
from tavola.client.unique_guards import (
    UniqueValueGuard,
    claim,
    former_guards,
    guard_nodes,
    guards_of,
    release,
)
from tavola.client.writes import TRANSIENT_REASONS
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Path
from tavola.expressions.nodes import Literal as LiteralNode
from tavola.keys import KeyPartRefused
from tavola.model import OWNER_ATTRIBUTE, UNIQUE_ATTRIBUTE, EntityShape, ItemUnreadable, Table, shape_of
from tavola.protocol.faults import TransactionCanceledFault
from tavola.values import Item

# "overtaken" comes with the stored item, "retry" with the write to try, "failed" with the reason.
RepairOutcome = tuple[Literal["overtaken", "retry", "failed"], Any]


@dataclass(frozen=True, slots=True)
class GuardedRewrite:
    """A transaction that rewrites an item, or leaves it as it is, and claims and releases its guards."""

    form: ItemForm
    rewrite: Rewrite | None
    claims: tuple[UniqueValueGuard, ...]
    releases: tuple[UniqueValueGuard, ...] = ()

    @property
    def key(self) -> Item:
        """The key of the item."""
        return table_key(self.form.shape.home, self.form.stored)

    @property
    def entity(self) -> str:
        """The name of the item's entity."""
        return self.form.shape.name

    def call(self, context: Context) -> Call:
        """Return the transaction."""
        shape, now_s = self.form.shape, context.clock.now()
        name = context.name_of(shape.home)
        conditions = guard_nodes(shape, self.form.stored, now_s)
        if self.rewrite is None:
            exists = FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
            check = add_condition({"TableName": name, "Key": self.key}, all_of([exists, *conditions]))
            actions: list[dict[str, Any]] = [{"ConditionCheck": check}]
        else:
            actions = [{"Update": self.rewrite.action(context, conditions)}]
        actions += [claim(name, guard, (), now_s) for guard in self.claims]
        actions += [release(name, guard, (), now_s) for guard in self.releases]
        return _transaction(context, actions)

    def outcome(self, fault: TransactionCanceledFault) -> RepairOutcome:
        """Return what to do after the transaction was cancelled."""
        codes = [reason.code for reason in fault.reasons]
        if codes and codes[0] == "ConditionalCheckFailed":
            return "overtaken", fault_item(fault.reasons[0].item)
        foreign: set[str] = set()
        for guard, reason in zip((*self.claims, *self.releases), fault.reasons[1:], strict=False):
            if reason.code == "ConditionalCheckFailed":
                if guard in self.claims:
                    return "failed", duplicate_message(guard, owner_of(fault_item(reason.item) or {}))
                foreign.add(guard.text)  # another item has the value, so this one must not release it
        if foreign:
            remaining = tuple(guard for guard in self.releases if guard.text not in foreign)
            return "retry", replace(self, releases=remaining)
        if any(code in TRANSIENT_REASONS for code in codes):
            return "retry", self
        return "failed", str(fault)


@dataclass(frozen=True, slots=True)
class OrphanedGuard:
    """A guard to remove because its owner does not have the value."""

    shape: EntityShape
    guard: Item
    owner: Item | None  # the item that it names, which has another value; None: it does not exist
    problem: GuardProblem

    @property
    def key(self) -> Item:
        """The key of the guard."""
        return table_key(self.shape.home, self.guard)

    @property
    def entity(self) -> str:
        """The name of the entity whose value it reserved."""
        return self.shape.name

    def call(self, context: Context) -> Call:
        """Return the transaction that removes it, provided that its owner still does not have the value."""
        shape, now_s = self.shape, context.clock.now()
        name, table = context.name_of(shape.home), shape.home
        nodes = [absent_node(shape, now_s)] if self.owner is None else guard_nodes(shape, self.owner, now_s)
        if self.owner is not None and table.settings.tag is not None:
            nodes = [*nodes, unchanged_node(self.owner, table.settings.tag)]
        owner = self.guard[OWNER_ATTRIBUTE]
        same_owner: ConditionNode = Comparison("=", Path((OWNER_ATTRIBUTE,)), LiteralNode(owner))
        check = add_condition({"TableName": name, "Key": owner["M"]}, all_of(nodes))
        delete = add_condition({"TableName": name, "Key": self.key}, same_owner)
        return _transaction(context, [{"ConditionCheck": check}, {"Delete": delete}])

    def outcome(self, fault: TransactionCanceledFault) -> RepairOutcome:
        """Return what to do after the transaction was cancelled; a guard that changed needs no repair."""
        codes = {reason.code for reason in fault.reasons}
        if "ConditionalCheckFailed" in codes:
            return "overtaken", None
        return ("retry", self) if codes & TRANSIENT_REASONS.keys() else ("failed", str(fault))


def _transaction(context: Context, actions: list[dict[str, Any]]) -> Call:
    return Call(
        "TransactWriteItems",
        {
            "TransactItems": actions, "ClientRequestToken": context.entropy.uuid(),
            "ReturnConsumedCapacity": "TOTAL",
        },
    )  # fmt: skip


def duplicate_message(guard: UniqueValueGuard, owner: Mapping[str, Any]) -> str:
    """Return the message for a unique value that two items have."""
    other = key_text(owner) or "another item"
    return f"its {guard.field} must be unique, but {other} has the same value; change one of the two"


class StoredGuards:
    """The guards that are stored for the items of one round."""

    def __init__(self, context: Context, table: type[Table]) -> None:
        self._context = context
        self._table = table
        self._guards: dict[str, Item | None] = {}
        self.has_uniques = any(shape_of(entity).uniques for entity in table.entities.values())

    def load(self, guards: Iterable[UniqueValueGuard]) -> Program[None]:
        """Read guards consistently; those of the previous round are forgotten."""
        keys = {guard.text: guard.key for guard in guards}
        self._guards = {}
        if keys:
            items = yield from get_items(self._context, self._table, list(keys.values()), True)
            self._guards = dict(zip(keys, items, strict=True))

    def find(self, guard: UniqueValueGuard) -> Item | None:
        """Return the stored item with a guard's key, None if there is none or it has expired."""
        item = self._guards.get(guard.text)
        return None if item is None or is_expired(self._table, item, self._context.clock.now()) else item


def owner_of(guard: Mapping[str, Any]) -> Item:
    """Return the key of the item that a stored guard names."""
    owner: Item = guard.get(OWNER_ATTRIBUTE, {}).get("M", {})
    return owner


def guards_before_and_after(
    form: ItemForm, rewrite: Rewrite | None
) -> tuple[dict[str, UniqueValueGuard], dict[str, UniqueValueGuard]]:
    """Return the guards that an item may have now, and those after its rewrite."""
    key = table_key(form.shape.home, form.stored)
    new = guards_of(form.shape, form.stored if rewrite is None else rewrite.result, key)
    return (new if rewrite is None else former_guards(form.shape, form.stored, key)), new


def add_guards(
    form: ItemForm, rewrite: Rewrite | None, stored_guards: StoredGuards | None
) -> tuple[Rewrite | GuardedRewrite | None, list[tuple[UniqueValueGuard, Item]]]:
    """Return the write that corrects an item and its guards, if any; and values that other items have, with the owners.

    Without `stored_guards` all guards are claimed, which is harmless for those that exist already.
    """
    if not form.shape.uniques:
        return rewrite, []
    old, new = guards_before_and_after(form, rewrite)
    claims: list[UniqueValueGuard] = []
    duplicates: list[tuple[UniqueValueGuard, Item]] = []
    for guard in new.values():
        stored = None if stored_guards is None else stored_guards.find(guard)
        if stored is None:
            claims.append(guard)
        elif owner_of(stored) != guard.owner:
            duplicates.append((guard, owner_of(stored)))
        elif stored != guard.item:
            claims.append(guard)
    releases = [guard for text, guard in old.items() if text not in new]
    if stored_guards is not None:
        releases = [
            g for g in releases if (s := stored_guards.find(g)) is not None and owner_of(s) == g.owner
        ]
    if duplicates and releases:
        return None, duplicates  # the rewrite would change a value to one that another item has
    if not claims and not releases:
        return rewrite, duplicates
    return GuardedRewrite(form, rewrite, tuple(claims), tuple(releases)), duplicates


@dataclass(frozen=True, slots=True)
class MissingGuard:
    """A unique value of an item that no guard reserves for it."""

    problem: GuardProblem
    guard: UniqueValueGuard


class GuardCheck:
    """Compares the items and the guards of a round with each other.

    An apparent problem is read again before it is reported, because writers change both at once in the meantime. Items of an
    older schema and their guards are not checked: a backfill corrects both.
    """

    def __init__(self, context: Context, table: type[Table]) -> None:
        self._context = context
        self._table = table
        self._name = context.name_of(table)
        self._stored_guards = StoredGuards(context, table)
        self._missing: dict[ItemId, list[MissingGuard]] = {}
        self._orphans: dict[ItemId, OrphanedGuard] = {}

    def check(self, items: Sequence[Item]) -> Program[None]:
        """Check the items and guards of a round."""
        self._missing, self._orphans = {}, {}
        if self._stored_guards.has_uniques:
            yield from self._check_items([item for item in items if UNIQUE_ATTRIBUTE not in item])
        yield from self._check_guards([item for item in items if UNIQUE_ATTRIBUTE in item])

    def missing_guards(self, item: Item) -> list[MissingGuard]:
        """Return the unique values of an item that no guard reserves for it."""
        return self._missing.get(self._id(item), [])

    def orphan(self, guard: Item) -> OrphanedGuard | None:
        """Return a guard as an orphan, None if its owner has the value."""
        return self._orphans.get(self._id(guard))

    def _id(self, item: Item) -> ItemId:
        return item_id(self._name, table_key(self._table, item))

    def _check_items(self, items: Sequence[Item]) -> Program[None]:
        expected = [(item, shape, guard) for item in items for shape, guard in self._expected_guards(item)]
        yield from self._stored_guards.load(guard for _, _, guard in expected)
        doubtful = [
            expectation
            for expectation in expected
            if self._stored_guards.find(expectation[2]) != expectation[2].item
        ]
        keys = [table_key(self._table, item) for item, _, _ in doubtful]
        current = (yield from get_items(self._context, self._table, keys, True)) if keys else []
        for (item, shape, guard), now in zip(doubtful, current, strict=True):
            if now is None or guard.text not in (self._guards_if_readable(shape, now) or {}):
                continue  # the item has changed in the meantime
            stored = self._stored_guards.find(guard)
            owner = None if stored is None or owner_of(stored) == guard.owner else owner_of(stored)
            kind: Literal["unguarded", "taken"] = "unguarded" if owner is None else "taken"
            key = table_key(self._table, item)
            problem = GuardProblem(key, shape.name, guard.field, kind, guard.text, owner)
            self._missing.setdefault(self._id(item), []).append(MissingGuard(problem, guard))

    def _check_guards(self, guards: Sequence[Item]) -> Program[None]:
        known: list[tuple[Item, EntityShape, str]] = []
        for guard in guards:
            tag, _, field = guard[UNIQUE_ATTRIBUTE].get("S", "").rpartition(".")
            entity = self._table.entities.get(tag)
            is_valid = bool(owner_of(guard)) and not is_expired(self._table, guard, self._context.clock.now())
            if entity is not None and is_valid:
                known.append((guard, shape_of(entity), field))
        owners = yield from self._read([owner_of(guard) for guard, _, _ in known])
        doubtful = [
            (guard, shape, field, owner)
            for (guard, shape, field), owner in zip(known, owners, strict=True)
            if not self._may_have_value(shape, owner, guard)
        ]
        current = yield from self._read([table_key(self._table, guard) for guard, _, _, _ in doubtful])
        for (guard, shape, field, owner), now in zip(doubtful, current, strict=True):
            if now is None or owner_of(now) != owner_of(guard):
                continue  # it was released or claimed by another item in the meantime
            text = guard[self._table.settings.hash]["S"]
            problem = GuardProblem(
                table_key(self._table, guard), shape.name, field, "orphaned", text, owner_of(guard)
            )
            self._orphans[self._id(guard)] = OrphanedGuard(shape, guard, owner, problem)

    def _read(self, keys: Sequence[Item]) -> Program[list[Item | None]]:
        if not keys:
            return []
        now_s = self._context.clock.now()
        items = yield from get_items(self._context, self._table, keys, True)
        return [None if item is None or is_expired(self._table, item, now_s) else item for item in items]

    def _may_have_value(self, shape: EntityShape, owner: Item | None, guard: Item) -> bool:
        """Return whether an item has the value of a guard, or cannot be checked."""
        if owner is None or not is_item_of(shape, self._table, owner):
            return False
        guards = self._guards_if_readable(shape, owner)
        text = guard[self._table.settings.hash].get("S")
        return is_outdated(shape, owner) or guards is None or text in guards

    def _expected_guards(self, item: Item) -> Iterator[tuple[EntityShape, UniqueValueGuard]]:
        entity = identify_entity(self._table, item)
        if entity is None or is_expired(self._table, item, self._context.clock.now()):
            return
        shape = shape_of(entity)
        if shape.uniques and not is_outdated(shape, item):
            for guard in (self._guards_if_readable(shape, item) or {}).values():
                yield shape, guard

    def _guards_if_readable(self, shape: EntityShape, item: Item) -> dict[str, UniqueValueGuard] | None:
        """Return the guards of an item, None if its fields cannot be read."""
        try:
            return guards_of(shape, item, table_key(self._table, item))
        except (ItemUnreadable, KeyPartRefused):
            return None
