"""Classify each condition of a need, checked against every entity that it queries.

A condition fixes a field, bounds the range of the sort key, is a constant, requires a field to be present, or becomes a filter after
reading. A condition that is none of these is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tavola.design.solver.errors import SolveRefused
from tavola.model.document import Design, EntityDesign, FieldDesign, Given, Membership, Need
from tavola.values import Value

_LOWER, _UPPER = frozenset({">", ">="}), frozenset({"<", "<="})


@dataclass(frozen=True, slots=True)
class NeedReading:
    """The classified conditions and the order of a need."""

    fixed: tuple[tuple[str, ...], ...]  # of each entity the fields given with equality, in one order
    order: tuple[str, ...]
    members: tuple[Membership, ...]
    present: frozenset[str]
    wanted: frozenset[str] | None
    ranged: str | None
    filtered: tuple[str, ...]


def fits_template(field: FieldDesign) -> bool:
    """Return whether a field can be part of a key template."""
    return field.key_kind is not None


def fits_key_attribute(field: FieldDesign) -> bool:
    """Return whether a field's own attribute can be a key attribute."""
    return len(field.tags) == 1 and field.tags[0] in ("S", "N", "B")


def read_need(need: Need, design: Design, owners: Sequence[EntityDesign], notes: list[str]) -> NeedReading:
    """Classify the conditions of a need; what a key cannot decide is noted, what nothing can decide is refused."""
    return _Reader(need, design, owners, notes).read()


class _Reader:
    def __init__(self, need: Need, design: Design, owners: Sequence[EntityDesign], notes: list[str]) -> None:
        self.need, self.design, self.owners, self.notes = need, design, owners, notes
        self.place = f"Need {need.name}"
        self.several = len(owners) > 1
        self.filtered: list[str] = []

    def read(self) -> NeedReading:
        need = self.need
        self._check_entities()
        self._check_once()
        told: list[Given] = []
        members: list[Membership] = []
        ranges: list[Given] = []
        present: list[str] = []
        for given in need.where:
            match given.operator:
                case "=" | "in" if given.value is None:
                    told.append(given)
                case "=" | "in":
                    members.append(self._member(given))
                case "exists":
                    present.append(given.field)
                case "contains":
                    raise self._refused(
                        f"no key finds what {given.field} contains; keep an item for each element, or search elsewhere"
                    )
                case _:
                    ranges.append(given)
        told.sort(key=lambda given: given.operator == "in")
        fixed = tuple(self._fixed(owner, told) for owner in self.owners)
        for owner, names in zip(self.owners, fixed, strict=True):
            for name in names:
                self._check_key_field(owner, name)
        self._check_alike(fixed)
        for name in dict.fromkeys((*need.order, *(given.field for given in ranges), *present)):
            for owner in self.owners:
                self._check_key_field(owner, name)
        order, ranged = self._order(ranges, [*fixed[0], *present, *(m.field for m in members)])
        if need.single and present and not self.several:
            self._filter(
                present, "one item is fetched by what tells it from others, and looked at after reading"
            )
            present = []
        for given in told:
            if given.operator == "in":
                self._note(
                    f"{given.field} is one of several values; it is asked once for each of them, and per_second= counts "
                    "these queries. The application puts the answers together"
                    + (f", by {need.order[0]} if they are to be in one order." if need.order else ".")
                )
        held = {*present, *([ranged] if ranged is not None else [])}
        wanted = self._wanted()
        return NeedReading(
            fixed, order, tuple(members), frozenset(held), wanted, ranged, tuple(dict.fromkeys(self.filtered))
        )

    def _refused(self, problem: str) -> SolveRefused:
        return SolveRefused(self.place, problem)

    def _note(self, text: str) -> None:
        self.notes.append(f"{self.place}: {text}")

    def _filter(self, names: Sequence[str], why: str) -> None:
        """Leave conditions to the application, and say so."""
        self.filtered += names
        self._note(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} filtered after reading: {why}. What is read and "
            "left out is paid for; items= is what is read, and returned= what is left."
        )

    # What a need says as a whole.

    def _check_entities(self) -> None:
        names = list(self.need.entities)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise self._refused(f"it names {twice[0]} twice; name each entity once")

    def _check_once(self) -> None:
        """Refuse a field that is fixed and compared again, and ranges of one field that are no stretch."""
        by_field: dict[str, list[str]] = {}
        for given in self.need.where:
            if given.operator != "exists":
                by_field.setdefault(given.field, []).append(given.operator)
        for name, operators in by_field.items():
            if len(operators) == 1:
                continue
            ends = len(operators) == 2 and any(op in _LOWER for op in operators)
            if not (ends and any(op in _UPPER for op in operators)):
                raise self._refused(f"it gives {name} twice ({' and '.join(operators)}); give it once")
            if {">", "<"} & set(operators):
                self._note(
                    f"{name} is asked for between two values, which one query takes with its ends in; leave an end out "
                    "after reading where it is not wanted."
                )

    def _fixed(self, owner: EntityDesign, told: Iterable[Given]) -> tuple[str, ...]:
        """Return the fields of one entity that a need fixes; a collection may call them by another's names."""
        names = {found.name for found in owner.fields}
        own = tuple(given.field for given in told)
        if all(name in names for name in own):
            return own
        for table in self.design.tables:
            for collection in table.collections:
                if collection.name == self.need.name and any(
                    member.entity == owner.name for member in collection.members
                ):
                    key = owner.key_on(collection.index)
                    source = None if key is None else key.hash[0]
                    if source is not None and len(source.fields) == len(collection.partition.fields):
                        matching = dict(zip(collection.partition.fields, source.fields, strict=True))
                        return tuple(matching.get(name, name) for name in own)
        absent = next(name for name in own if name not in names)
        raise self._absent(owner, absent)

    def _check_alike(self, fixed: tuple[tuple[str, ...], ...]) -> None:
        """Refuse entities that could never meet in a partition, since the same value is written otherwise in each."""
        first = self.owners[0]
        for owner, names in zip(self.owners[1:], fixed[1:], strict=True):
            for mine, theirs in zip(fixed[0], names, strict=True):
                one, other = first.field(mine), owner.field(theirs)
                if one.key_kind != other.key_kind:
                    raise self._refused(
                        f"{first.name}.{mine} is {one.type} and {owner.name}.{theirs} is {other.type}, which a key writes "
                        "differently, so that they never meet; give both one type"
                    )

    # Fields.

    def _absent(self, owner: EntityDesign, name: str) -> SolveRefused:
        known = ", ".join(sorted(found.name for found in owner.fields))
        together = "; what is asked of several at once is by what they all have" if self.several else ""
        return self._refused(f"{owner.name} has no field {name!r}; it has {known}{together}")

    def _field(self, owner: EntityDesign, name: str) -> FieldDesign:
        for found in owner.fields:
            if found.name == name:
                return found
        raise self._absent(owner, name)

    def _check_key_field(self, owner: EntityDesign, name: str) -> None:
        found = self._field(owner, name)
        if not (fits_template(found) or fits_key_attribute(found)):
            raise self._refused(
                f"{owner.name}.{name} is {found.type}, which no key can hold; ask by text, a number, a time, an enum or "
                "a UUID, and keep such a field beside it"
            )

    def _wanted(self) -> frozenset[str] | None:
        access = self.need.access
        if access is None or not access.reads:
            return None
        for name in access.reads:
            if not any(name in {found.name for found in owner.fields} for owner in self.owners):
                raise self._absent(self.owners[0], name)
        if self.several:
            return None  # entities together come whole
        wanted = frozenset(access.reads)
        return None if wanted >= {found.name for found in self.owners[0].fields} else wanted

    # Values that are always the same.

    def _member(self, given: Given) -> Membership:
        assert given.value is not None
        told = given.value["L"] if given.operator == "in" else [given.value]
        for owner in self.owners:
            found = self._field(owner, given.field)
            for each in told:
                self._check_value(owner, found, each)
        return Membership(given.field, tuple(None if "NULL" in each else each for each in told))

    def _check_value(self, owner: EntityDesign, found: FieldDesign, value: Value) -> None:
        """Refuse a value that a field never has: its index would always be empty."""
        [(tag, held)] = value.items()
        place = f"{owner.name}.{found.name}"
        if tag == "NULL":
            if not found.nullable:
                raise self._refused(f"{place} is never absent; leave the condition out")
            return
        if found.tags and tag not in found.tags:
            raise self._refused(
                f"{place} is {found.type}, stored as {' or '.join(found.tags)}, and is never {value!r}; give a value of "
                "its type"
            )
        if found.choices is not None and held not in map(str, found.choices):
            known = ", ".join(map(str, found.choices))
            raise self._refused(f"{place} is never {held!r}; it is one of {known}")

    # Orders and stretches.

    def _order(self, ranges: list[Given], held: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
        """Return the fields that the answer runs along and the one of a stretch; what one key cannot give is noted."""
        need = self.need
        for given in ranges:
            for owner in self.owners:
                self._check_stretch(owner, given)
        names = tuple(dict.fromkeys(given.field for given in ranges))
        fixed = {given.field for given in need.where if given.operator == "=" and given.value is None}
        order = tuple(name for name in dict.fromkeys(need.order) if name not in fixed)
        if self.several:
            if names:
                self._filter(
                    names,
                    "entities that are fetched together come one after the other, and no stretch of one partition holds "
                    "those of all, so that the whole partition is read",
                )
            if order:
                self._note(
                    "entities that are fetched together come one after the other, each in its own order; the application "
                    f"merges them by {order[0]}."
                )
            return (), None
        if need.single:
            if names:
                self._filter(
                    names, "one item is fetched by what tells it from others, and looked at after reading"
                )
            return (), None
        if not names:
            return self._whole(order, held), None
        along = next((name for name in order if name in names), names[0])
        rest = [name for name in names if name != along]
        if rest:
            self._filter(rest, f"a key gives one range, and {along} is it")
        if not order or order[0] == along:
            return self._whole(order or (along,), [*held, along]), along
        self._note(
            f"a range of {along} comes in the order of {along}; the application sorts it by {order[0]}."
        )
        return (along,), along

    def _whole(self, order: tuple[str, ...], held: Sequence[str]) -> tuple[str, ...]:
        """Return an order as far as every item has its fields: one without them would be in no key at all."""
        owner = self.owners[0]
        for at, name in enumerate(order):
            if owner.field(name).nullable and name not in held:
                kept = f" in the order of {', '.join(order[:at])}" if at else " in no order of its own"
                self._note(
                    f"{name} of {owner.name} may be absent, and an index by it would leave such items out; so the answer "
                    f"is whole and comes{kept}, and the application sorts it by {name}. If those without it are not "
                    f'wanted, say Given("{name}", "exists").'
                )
                return order[:at]
        return order

    def _check_stretch(self, owner: EntityDesign, given: Given) -> None:
        found = self._field(owner, given.field)
        if given.operator == "begins_with" and found.tags == ("N",):
            raise self._refused(
                f"{owner.name}.{found.name} is {found.type}, and a number does not begin with anything; give >= and <"
            )
        if given.value is not None:
            told = given.value["L"] if given.operator == "between" else [given.value]
            for each in told:
                [tag] = each
                if found.tags and tag not in found.tags:
                    raise self._refused(
                        f"{owner.name}.{found.name} is {found.type}, and {each!r} is none; give a value of its type"
                    )
