"""Serving: which keys of a design answer a need, and how well.

A key answers with a get where it is the table's and every field of it is given, with a query where its partition is
given and the rest of the conditions are a run of its sort fields, and with a filter where some conditions are left
over. What no key's partition is given for takes a scan. An index that lacks some of the items asked for (sparse, or
of some members alone) answers only a need that wants just those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from tavola.model import SHARD
from tavola.model.document import EntityDesign, Given, KeyDesign, Need, SourceDesign, TableDesign
from tavola.values import Value

How = Literal["get", "query", "filter", "scan"]
Fault = Literal["", "stretch", "partial", "gap", "early-range"]

RANKS: tuple[How, ...] = ("get", "query", "filter", "scan")
STRETCHES = frozenset({"<", "<=", ">", ">=", "between", "begins_with"})


@dataclass(frozen=True, slots=True)
class Slot:
    """A field in a key, in the order in which the key sorts; a grain is a part of its value alone, such as the day."""

    field: str
    grain: str = ""


@dataclass(frozen=True, slots=True)
class Serving:
    """One key, of the table or an index, held against a need."""

    table: TableDesign
    entity: EntityDesign
    key: KeyDesign
    how: How
    filtered: tuple[Given, ...] = ()  # conditions that the key does not decide
    lacking: tuple[str, ...] = ()  # partition fields that are not given, where it takes a scan
    ordered: bool = True  # the answer comes in the order asked for
    stretched: tuple[
        str, ...
    ] = ()  # partition fields that are given as a stretch of grains: a query for each
    fault: Fault = ""  # what nearly served: a stretch of, or a part of the partition; a gap, a range not last in the sort key
    at: tuple[str, ...] = ()  # the fields of the fault

    @property
    def rank(self) -> tuple[int, bool, int, bool]:
        """Less is better."""
        return (
            RANKS.index(self.how),
            not self.ordered,
            len(self.filtered) + len(self.stretched),
            self.key.index is not None,
        )


def servings(table: TableDesign, entity: EntityDesign, need: Need) -> tuple[Serving, ...]:
    """Return how each key of an entity serves a need of its items, the best first."""
    keys = [key for key in (entity.key, *entity.keys) if key is not None]
    found = [_served(table, entity, key, need) for key in keys if holds_all(table, entity, key, need)]
    return tuple(sorted(found, key=lambda serving: serving.rank))


def slots(sources: Sequence[SourceDesign]) -> tuple[Slot, ...]:
    """Return the fields of key attributes in the order of the key, a field that follows itself once, at its finest."""
    told: list[Slot] = []
    for source in sources:
        for slot in _slots(source):
            if told and told[-1].field == slot.field:
                told[-1] = slot if not slot.grain else told[-1]
            else:
                told.append(slot)
    return tuple(told)


def holds_all(table: TableDesign, entity: EntityDesign, key: KeyDesign, need: Need) -> bool:
    """Tell whether every item that a need asks for has this key."""
    if key.index is None:
        return True
    given = {condition.field: condition for condition in need.where}
    for member in key.members:
        allowed = [{"NULL": True} if value is None else value for value in member.values]
        if not all(value in allowed for value in _values(given.get(member.field))):
            return False
    present = {name for name, condition in given.items() if condition.operator != "contains"} | set(
        need.order
    )
    return all(name in present or not entity.field(name).nullable for name in may_lack(table, key))


def may_lack(table: TableDesign, key: KeyDesign) -> tuple[str, ...]:
    """Return the fields of a key without which an item is not in its index, where it may lack them.

    Other code leaves an item out whose own attribute is the key; where it makes the key, it makes one in any case.
    """
    if key.sparse:
        return key.fields
    own = [source.field for source in key.sources if source.field is not None] if table.foreign else []
    return tuple(own)


def _values(condition: Given | None) -> tuple[Value | None, ...]:
    """Return what a condition always compares with; None among them: anything."""
    if condition is None or condition.operator not in ("=", "in") or condition.value is None:
        return (None,)
    listed = condition.value.get("L") if condition.operator == "in" else None
    return tuple(cast(list[Value], listed)) if isinstance(listed, list) else (condition.value,)


def _slots(source: SourceDesign) -> Iterator[Slot]:
    if source.template is None:
        if source.field is not None:
            yield Slot(source.field)
        return
    for placeholder in source.template.placeholders:
        if placeholder.field != SHARD:
            words = [word.strip() for word in placeholder.spec.split(",")]
            grain = next((word for word in words if word in _GRAINS), "")
            yield Slot(placeholder.field, grain)


_GRAINS = ("year", "month", "day", "hour", "minute", "second", "s", "ms")


def _served(table: TableDesign, entity: EntityDesign, key: KeyDesign, need: Need) -> Serving:
    given = {condition.field: condition for condition in need.where}
    partition = slots(key.hash)
    lacking = [slot.field for slot in partition if not _fixes(given.get(slot.field), slot)]
    if lacking:
        wide = tuple(name for name in lacking if name in given and given[name].operator in STRETCHES)
        known = [slot.field for slot in partition if slot.field not in lacking]
        fault: Fault = "stretch" if wide == tuple(lacking) else "partial" if known else ""
        at = wide if fault == "stretch" else tuple(lacking) if fault else ()
        return Serving(
            table, entity, key, "scan", need.where, tuple(lacking), not need.order, fault=fault, at=at
        )
    stretched = tuple(slot.field for slot in partition if given[slot.field].operator in STRETCHES)
    used = {slot.field for slot in partition if slot.field not in stretched}
    rest = list(slots(key.range))
    while rest and _equal(given.get(rest[0].field)):
        used.add(rest.pop(0).field)
    fixed = set(used)
    if rest and (stretch := given.get(rest[0].field)) is not None and stretch.operator in STRETCHES:
        used.add(stretch.field)
    used |= {member.field for member in key.members}
    used |= {
        name
        for name, condition in given.items()
        if condition.operator == "exists" and (name in key.fields or not _nullable(entity, name))
    }
    filtered = tuple(condition for condition in need.where if condition.field not in used)
    order = [name for name in need.order if name not in fixed]
    sorts = [slot.field for slot in rest]
    whole = key.index is None and not rest and not stretched  # one item, in whatever order
    ordered = need.single or whole or sorts[: len(order)] == order
    how: How = "filter" if filtered else "get" if whole else "query"
    fault, at = _sort_fault(rest, given) if filtered else ("", ())
    return Serving(table, entity, key, how, filtered, (), ordered, stretched, fault, at)


def _sort_fault(rest: Sequence[Slot], given: Mapping[str, Given]) -> tuple[Fault, tuple[str, ...]]:
    """Return why sort fields that are given do not decide: one before them is not, or is only a stretch."""
    later = [
        slot.field for slot in rest[1:] if slot.field in given and given[slot.field].operator != "contains"
    ]
    if not later or not rest:
        return "", ()
    first = rest[0].field
    if first not in given:
        missing = tuple(
            slot.field
            for slot in rest[: [slot.field for slot in rest].index(later[0])]
            if slot.field not in given
        )
        return "gap", missing
    return ("early-range", (first, *later)) if given[first].operator in STRETCHES else ("", ())


def _fixes(condition: Given | None, slot: Slot) -> bool:
    """Tell whether a condition names the partitions to ask: one value, some, or a stretch of grains."""
    return _equal(condition) or (
        condition is not None and bool(slot.grain) and condition.operator in ("between", ">", ">=")
    )


def _equal(condition: Given | None) -> bool:
    return condition is not None and condition.operator in ("=", "in")


def _nullable(entity: EntityDesign, name: str) -> bool:
    return any(field.name == name and field.nullable for field in entity.fields)
