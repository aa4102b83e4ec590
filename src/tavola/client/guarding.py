"""Guarding: the guards of unique values held against the items that have the values, and put right with them.

A field may be made unique when its items are there already, a schema may change what is unique, and others may write
and delete past the library. So an item may have no guard, and a guard no item. Both are found by reading one for the
other; what is mended is mended in one transaction that holds only while both are as they were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.client.batches import Place, get_items, place_of
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.expiry import absent, expired
from tavola.client.former_guards import former_guards
from tavola.client.marshalling import is_kind, recognised
from tavola.client.reports import GuardFault, plain_key
from tavola.client.requests import all_of, conditioned, table_key, unchanged
from tavola.client.rewrites import Form, Rewrite
from tavola.client.uniques import Guard, claim, guards_of, release, watched_nodes
from tavola.client.upgrades import outdated
from tavola.client.writes import brought
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Path
from tavola.expressions.nodes import Literal as Told
from tavola.keys import KeyPartRefused
from tavola.model import OWNER_ATTRIBUTE, UNIQUE_ATTRIBUTE, ItemUnreadable, Shape, Table, shape_of
from tavola.protocol.faults import TransactionCanceledFault
from tavola.values import Item

Refusal = tuple[
    Literal["overtaken", "again", "failed"], Any
]  # with the item that stands, the write, or the reason

_PASSING = frozenset({"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"})


@dataclass(frozen=True, slots=True)
class Guarded:
    """An item, rewritten or as it is, with the guards that come and go with it: one transaction."""

    form: Form
    rewrite: Rewrite | None
    claims: tuple[Guard, ...]
    releases: tuple[Guard, ...] = ()

    @property
    def key(self) -> Item:
        """The key of the item."""
        return table_key(self.form.shape.home, self.form.stored)

    @property
    def entity(self) -> str:
        """Which entity it is, by its tag."""
        return self.form.shape.name

    def call(self, context: Context) -> Call:
        """Return the transaction."""
        shape, now_s = self.form.shape, context.clock.now()
        name = context.name_of(shape.home)
        watched = watched_nodes(shape, self.form.stored, now_s)
        if self.rewrite is None:
            exists = FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
            check = conditioned({"TableName": name, "Key": self.key}, all_of([exists, *watched]))
            actions: list[dict[str, Any]] = [{"ConditionCheck": check}]
        else:
            actions = [{"Update": self.rewrite.action(context, watched)}]
        actions += [claim(name, guard, (), now_s) for guard in self.claims]
        actions += [release(name, guard, (), now_s) for guard in self.releases]
        return _transaction(context, actions)

    def judged(self, fault: TransactionCanceledFault) -> Refusal:
        """Return what a refusal comes to."""
        codes = [reason.code for reason in fault.reasons]
        if codes and codes[0] == "ConditionalCheckFailed":
            return "overtaken", brought(fault.reasons[0].item)
        foreign: set[str] = set()
        for guard, reason in zip((*self.claims, *self.releases), fault.reasons[1:], strict=False):
            if reason.code == "ConditionalCheckFailed":
                if guard in self.claims:
                    owner = (brought(reason.item) or {}).get(OWNER_ATTRIBUTE, {}).get("M", {})
                    return "failed", taken(guard, owner)
                foreign.add(guard.text)  # another has the value, so it is not this item's to give back
        if foreign:
            kept = tuple(guard for guard in self.releases if guard.text not in foreign)
            return "again", replace(self, releases=kept)
        if any(code in _PASSING for code in codes):
            return "again", self
        return "failed", str(fault)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A guard that no item stands for, to be removed."""

    shape: Shape
    guard: Item
    owner: Item | None  # the item that it names, which has another value; None: there is none
    fault: GuardFault

    @property
    def key(self) -> Item:
        """The key of the guard."""
        return table_key(self.shape.home, self.guard)

    @property
    def entity(self) -> str:
        """Whose value it kept, by the entity's tag."""
        return self.shape.name

    def call(self, context: Context) -> Call:
        """Return the transaction that removes it, while its owner does not have the value."""
        shape, now_s = self.shape, context.clock.now()
        name, table = context.name_of(shape.home), shape.home
        nodes = [absent(shape, now_s)] if self.owner is None else watched_nodes(shape, self.owner, now_s)
        if self.owner is not None and table.settings.tag is not None:
            nodes = [*nodes, unchanged(self.owner, table.settings.tag)]
        owner = self.guard[OWNER_ATTRIBUTE]
        same: ConditionNode = Comparison("=", Path((OWNER_ATTRIBUTE,)), Told(owner))
        check = conditioned({"TableName": name, "Key": owner["M"]}, all_of(nodes))
        gone = conditioned({"TableName": name, "Key": self.key}, same)
        return _transaction(context, [{"ConditionCheck": check}, {"Delete": gone}])

    def judged(self, fault: TransactionCanceledFault) -> Refusal:
        """Return what a refusal comes to: of one that has changed, nothing is left to be done."""
        codes = {reason.code for reason in fault.reasons}
        if "ConditionalCheckFailed" in codes:
            return "overtaken", None
        return ("again", self) if codes & _PASSING else ("failed", str(fault))


def _transaction(context: Context, actions: list[dict[str, Any]]) -> Call:
    return Call(
        "TransactWriteItems",
        {
            "TransactItems": actions, "ClientRequestToken": context.entropy.uuid(),
            "ReturnConsumedCapacity": "TOTAL",
        },
    )  # fmt: skip


def taken(guard: Guard, owner: Mapping[str, Any]) -> str:
    """Return the sentence for a value that two items have."""
    told = plain_key(owner) or "another item"
    return f"its {guard.field} must be unique, and is taken by {told}; change one of the two"


class StandingGuards:
    """The guards that stand, of the items of one round."""

    def __init__(self, context: Context, table: type[Table]) -> None:
        self._context = context
        self._table = table
        self._name = context.name_of(table)
        self._found: dict[str, Item | None] = {}
        self.watches = any(shape_of(entity).uniques for entity in table.entities.values())

    def learn(self, guards: Iterable[Guard]) -> Program[None]:
        """Read guards as they are now; those of the round before are forgotten."""
        wanted = {guard.text: guard.key for guard in guards}
        self._found = {}
        if wanted:
            items = yield from get_items(self._context, self._table, list(wanted.values()), True)
            self._found = dict(zip(wanted, items, strict=True))

    def of(self, guard: Guard) -> Item | None:
        """Return what stands under a guard's key; None: nothing, or what has expired."""
        found = self._found.get(guard.text)
        return None if found is None or expired(self._table, found, self._context.clock.now()) else found


def owner_of(guard: Mapping[str, Any]) -> Item:
    """Return the key of the item that a stored guard names."""
    found: Item = guard.get(OWNER_ATTRIBUTE, {}).get("M", {})
    return found


def around(form: Form, rewrite: Rewrite | None) -> tuple[dict[str, Guard], dict[str, Guard]]:
    """Return the guards that an item may have, and those that it has after its rewrite."""
    key = table_key(form.shape.home, form.stored)
    new = guards_of(form.shape, form.stored if rewrite is None else rewrite.result, key)
    return (new if rewrite is None else former_guards(form.shape, form.stored, key)), new


def guarded(
    form: Form, rewrite: Rewrite | None, standing: StandingGuards | None
) -> tuple[Rewrite | Guarded | None, list[tuple[Guard, Item]]]:
    """Return what puts an item and its guards right, None where both are; and values that others have, with whose.

    Where `standing` is None, nothing is known of the guards: all are claimed, which does no harm to those that stand.
    """
    if not form.shape.uniques:
        return rewrite, []
    old, new = around(form, rewrite)
    claims: list[Guard] = []
    others: list[tuple[Guard, Item]] = []
    for guard in new.values():
        stands = None if standing is None else standing.of(guard)
        if stands is None:
            claims.append(guard)
        elif owner_of(stands) != guard.owner:
            others.append((guard, owner_of(stands)))
        elif stands != guard.item:
            claims.append(guard)
    releases = [guard for text, guard in old.items() if text not in new]
    if standing is not None:
        releases = [
            g for g in releases if (stands := standing.of(g)) is not None and owner_of(stands) == g.owner
        ]
    if others and releases:
        return None, others  # its values would change to one that is taken
    if not claims and not releases:
        return rewrite, others
    return Guarded(form, rewrite, tuple(claims), tuple(releases)), others


@dataclass(frozen=True, slots=True)
class Lacking:
    """A value of an item that no guard keeps for it."""

    fault: GuardFault
    guard: Guard


class Examination:
    """Items and guards of a round, each held against the other.

    What seems wrong is read again before it is told: writers go on meanwhile, and write both at once. Items of an
    older schema are not judged, nor guards for them: a backfill makes both what they should be.
    """

    def __init__(self, context: Context, table: type[Table]) -> None:
        self._context = context
        self._table = table
        self._name = context.name_of(table)
        self._standing = StandingGuards(context, table)
        self._lacking: dict[Place, list[Lacking]] = {}
        self._orphans: dict[Place, Orphan] = {}

    def examine(self, items: Sequence[Item]) -> Program[None]:
        """Find out about the items of a round."""
        self._lacking, self._orphans = {}, {}
        if self._standing.watches:
            yield from self._examine_items([i for i in items if UNIQUE_ATTRIBUTE not in i])
        yield from self._examine_guards([i for i in items if UNIQUE_ATTRIBUTE in i])

    def lacking(self, item: Item) -> list[Lacking]:
        """Return the values of an item that no guard keeps for it."""
        return self._lacking.get(self._place(item), [])

    def orphan(self, guard: Item) -> Orphan | None:
        """Return a guard as an orphan, None if an item stands for it."""
        return self._orphans.get(self._place(guard))

    def _place(self, item: Item) -> Place:
        return place_of(self._name, table_key(self._table, item))

    def _examine_items(self, items: Sequence[Item]) -> Program[None]:
        wanted = [(item, shape, guard) for item in items for shape, guard in self._guards(item)]
        yield from self._standing.learn(guard for _, _, guard in wanted)
        doubted = [each for each in wanted if self._standing.of(each[2]) != each[2].item]
        keys = [table_key(self._table, item) for item, _, _ in doubted]
        stands = (yield from get_items(self._context, self._table, keys, True)) if keys else []
        for (item, shape, guard), now in zip(doubted, stands, strict=True):
            if now is None or guard.text not in (self._texts(shape, now) or {}):
                continue  # it was changed meanwhile
            found = self._standing.of(guard)
            owner = None if found is None or owner_of(found) == guard.owner else owner_of(found)
            kind: Literal["unguarded", "taken"] = "unguarded" if owner is None else "taken"
            key = table_key(self._table, item)
            fault = GuardFault(key, shape.name, guard.field, kind, guard.text, owner)
            self._lacking.setdefault(self._place(item), []).append(Lacking(fault, guard))

    def _examine_guards(self, guards: Sequence[Item]) -> Program[None]:
        known: list[tuple[Item, Shape, str]] = []
        for guard in guards:
            tag, _, field = guard[UNIQUE_ATTRIBUTE].get("S", "").rpartition(".")
            entity = self._table.entities.get(tag)
            whole = bool(owner_of(guard)) and not expired(self._table, guard, self._context.clock.now())
            if entity is not None and whole:
                known.append((guard, shape_of(entity), field))
        owners = yield from self._read([owner_of(guard) for guard, _, _ in known])
        doubted = [
            (guard, shape, field, owner)
            for (guard, shape, field), owner in zip(known, owners, strict=True)
            if not self._has(shape, owner, guard)
        ]
        again = yield from self._read([table_key(self._table, guard) for guard, _, _, _ in doubted])
        for (guard, shape, field, owner), now in zip(doubted, again, strict=True):
            if now is None or owner_of(now) != owner_of(guard):
                continue  # it was released meanwhile, or taken by another
            text = guard[self._table.settings.hash]["S"]
            fault = GuardFault(
                table_key(self._table, guard), shape.name, field, "orphaned", text, owner_of(guard)
            )
            self._orphans[self._place(guard)] = Orphan(shape, guard, owner, fault)

    def _read(self, keys: Sequence[Item]) -> Program[list[Item | None]]:
        if not keys:
            return []
        now_s = self._context.clock.now()
        found = yield from get_items(self._context, self._table, keys, True)
        return [None if item is None or expired(self._table, item, now_s) else item for item in found]

    def _has(self, shape: Shape, owner: Item | None, guard: Item) -> bool:
        """Return whether an item has the value of a guard, or may have: what cannot be told is not judged."""
        if owner is None or not is_kind(shape, self._table, owner):
            return False
        texts = self._texts(shape, owner)
        return outdated(shape, owner) or texts is None or guard[self._table.settings.hash].get("S") in texts

    def _guards(self, item: Item) -> Iterator[tuple[Shape, Guard]]:
        kind = recognised(self._table, item)
        if kind is None or expired(self._table, item, self._context.clock.now()):
            return
        shape = shape_of(kind)
        if shape.uniques and not outdated(shape, item):
            for guard in (_told(shape, item, table_key(self._table, item)) or {}).values():
                yield shape, guard

    def _texts(self, shape: Shape, item: Item) -> Mapping[str, Guard] | None:
        return _told(shape, item, table_key(self._table, item))


def _told(shape: Shape, item: Item, key: Item) -> dict[str, Guard] | None:
    """Return the guards of an item, None where its fields cannot be read."""
    try:
        return guards_of(shape, item, key)
    except (ItemUnreadable, KeyPartRefused):
        return None
