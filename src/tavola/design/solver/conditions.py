"""Classify each condition of a need, checked against every entity that it queries.

A condition compares a field with =, bounds the range of the sort key, is a constant, requires a field to be present, or becomes a
filter after reading. Any other condition is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tavola.design.errors import SolverError
from tavola.model.document import Design, EntityDesign, FieldDesign, Given, Membership, Need
from tavola.values import Value

_LOWER, _UPPER = frozenset({">", ">="}), frozenset({"<", "<="})


@dataclass(frozen=True, slots=True)
class NeedReading:
    """The classified conditions and the order of a need."""

    fixed: tuple[tuple[str, ...], ...]  # for each entity, its fields compared with =, in the same order
    order: tuple[str, ...]
    members: tuple[Membership, ...]
    present: frozenset[str]
    result_fields: frozenset[str] | None
    ranged: str | None
    filtered: tuple[str, ...]


def fits_template(field: FieldDesign) -> bool:
    """Return whether a field can be part of a key template."""
    return field.key_kind is not None


def fits_key_attribute(field: FieldDesign) -> bool:
    """Return whether a field's own attribute can be a key attribute."""
    return len(field.tags) == 1 and field.tags[0] in ("S", "N", "B")


def read_need(need: Need, design: Design, owners: Sequence[EntityDesign], notes: list[str]) -> NeedReading:
    """Classify the conditions of a need; notes name conditions that become filters, impossible ones are refused."""
    return _NeedReader(need, design, owners, notes).read()


class _NeedReader:
    def __init__(self, need: Need, design: Design, owners: Sequence[EntityDesign], notes: list[str]) -> None:
        self.need, self.design, self.owners, self.notes = need, design, owners, notes
        self.place = f"Need {need.name}"
        self.several = len(owners) > 1
        self.filtered: list[str] = []

    def read(self) -> NeedReading:
        need = self.need
        self._check_entities()
        self._check_repeated_fields()
        equalities: list[Given] = []
        members: list[Membership] = []
        ranges: list[Given] = []
        present: list[str] = []
        for condition in need.where:
            match condition.operator:
                case "=" | "in" if condition.value is None:
                    equalities.append(condition)
                case "=" | "in":
                    members.append(self._member(condition))
                case "exists":
                    present.append(condition.field)
                case "contains":
                    raise self._refusal(
                        f"no key can serve contains on {condition.field}; store one item per element, or use a search service"
                    )
                case _:
                    ranges.append(condition)
        equalities.sort(key=lambda condition: condition.operator == "in")
        fixed = tuple(self._equal_fields(owner, equalities) for owner in self.owners)
        for owner, names in zip(self.owners, fixed, strict=True):
            for name in names:
                self._check_key_field(owner, name)
        self._check_same_key_kind(fixed)
        for name in dict.fromkeys((*need.order, *(condition.field for condition in ranges), *present)):
            for owner in self.owners:
                self._check_key_field(owner, name)
        order, ranged = self._order(ranges, [*fixed[0], *present, *(m.field for m in members)])
        if need.single and present and not self.several:
            self._filter(present, "the item is fetched by its key and checked after reading")
            present = []
        for condition in equalities:
            if condition.operator == "in":
                self._note(
                    f"{condition.field} is one of several values: one query per value, and per_second= counts these queries. The "
                    "application merges the results"
                    + (f", sorted by {need.order[0]}." if need.order else ".")
                )
        present_fields = {*present, *([ranged] if ranged is not None else [])}
        result_fields = self._result_fields()
        return NeedReading(
            fixed,
            order,
            tuple(members),
            frozenset(present_fields),
            result_fields,
            ranged,
            tuple(dict.fromkeys(self.filtered)),
        )

    def _refusal(self, problem: str) -> SolverError:
        return SolverError(self.place, problem)

    def _note(self, text: str) -> None:
        self.notes.append(f"{self.place}: {text}")

    def _filter(self, names: Sequence[str], why: str) -> None:
        """Make conditions on some fields filters, and note it."""
        self.filtered += names
        self._note(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} filtered after reading: {why}. Discarded items are charged "
            "too; items= counts items read, returned= items returned."
        )

    # The need as a whole.

    def _check_entities(self) -> None:
        names = list(self.need.entities)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise self._refusal(f"names {twice[0]} twice; name each entity once")

    def _check_repeated_fields(self) -> None:
        """Refuse a field with two conditions, unless they are the two ends of a range."""
        by_field: dict[str, list[str]] = {}
        for condition in self.need.where:
            if condition.operator != "exists":
                by_field.setdefault(condition.field, []).append(condition.operator)
        for name, operators in by_field.items():
            if len(operators) == 1:
                continue
            has_lower_end = len(operators) == 2 and any(op in _LOWER for op in operators)
            if not (has_lower_end and any(op in _UPPER for op in operators)):
                raise self._refusal(f"has two conditions on {name} ({' and '.join(operators)}); use one")
            if {">", "<"} & set(operators):
                self._note(
                    f"{name} has a lower and an upper bound, which a query includes (BETWEEN); drop items on an excluded bound "
                    "after reading."
                )

    def _equal_fields(self, owner: EntityDesign, equalities: Iterable[Given]) -> tuple[str, ...]:
        """Return the fields of one entity that a need compares with =; in a collection they may have another entity's names."""
        names = {field.name for field in owner.fields}
        fields = tuple(condition.field for condition in equalities)
        if all(name in names for name in fields):
            return fields
        for table in self.design.tables:
            for collection in table.collections:
                if collection.name == self.need.name and any(
                    member.entity == owner.name for member in collection.members
                ):
                    key = owner.key_on(collection.index)
                    source = None if key is None else key.hash[0]
                    if source is not None and len(source.fields) == len(collection.partition.fields):
                        matching = dict(zip(collection.partition.fields, source.fields, strict=True))
                        return tuple(matching.get(name, name) for name in fields)
        absent = next(name for name in fields if name not in names)
        raise self._absent(owner, absent)

    def _check_same_key_kind(self, equal_fields: tuple[tuple[str, ...], ...]) -> None:
        """Refuse entities that can never share a partition because keys encode their values differently."""
        first = self.owners[0]
        for owner, names in zip(self.owners[1:], equal_fields[1:], strict=True):
            for mine, theirs in zip(equal_fields[0], names, strict=True):
                one, other = first.field(mine), owner.field(theirs)
                if one.key_kind != other.key_kind:
                    raise self._refusal(
                        f"{first.name}.{mine} is {one.type} and {owner.name}.{theirs} is {other.type}, which have different key "
                        "encodings and never match; use one type for both"
                    )

    # Fields.

    def _absent(self, owner: EntityDesign, name: str) -> SolverError:
        known = ", ".join(sorted(field.name for field in owner.fields))
        hint = "; a need on several entities uses fields that all of them have" if self.several else ""
        return self._refusal(f"{owner.name} has no field {name!r}; it has {known}{hint}")

    def _field(self, owner: EntityDesign, name: str) -> FieldDesign:
        for field in owner.fields:
            if field.name == name:
                return field
        raise self._absent(owner, name)

    def _check_key_field(self, owner: EntityDesign, name: str) -> None:
        field = self._field(owner, name)
        if not (fits_template(field) or fits_key_attribute(field)):
            raise self._refusal(
                f"{owner.name}.{name} is {field.type}, which cannot be a key; add a field of type text, number, time, enum or UUID "
                "and query by it"
            )

    def _result_fields(self) -> frozenset[str] | None:
        access = self.need.access
        if access is None or not access.reads:
            return None
        for name in access.reads:
            if not any(name in {field.name for field in owner.fields} for owner in self.owners):
                raise self._absent(self.owners[0], name)
        if self.several:
            return None  # a collection returns whole items
        fields = frozenset(access.reads)
        return None if fields >= {field.name for field in self.owners[0].fields} else fields

    # Constants.

    def _member(self, condition: Given) -> Membership:
        assert condition.value is not None
        values = condition.value["L"] if condition.operator == "in" else [condition.value]
        for owner in self.owners:
            field = self._field(owner, condition.field)
            for value in values:
                self._check_value(owner, field, value)
        return Membership(condition.field, tuple(None if "NULL" in value else value for value in values))

    def _check_value(self, owner: EntityDesign, field: FieldDesign, value: Value) -> None:
        """Refuse a value that a field never has: its index would always be empty."""
        [(tag, content)] = value.items()
        place = f"{owner.name}.{field.name}"
        if tag == "NULL":
            if not field.nullable:
                raise self._refusal(f"{place} is always present; remove the condition")
            return
        if field.tags and tag not in field.tags:
            raise self._refusal(
                f"{place} is {field.type}, stored as {' or '.join(field.tags)}, and cannot be {value!r}; use a value of "
                "its type"
            )
        if field.choices is not None and content not in map(str, field.choices):
            known = ", ".join(map(str, field.choices))
            raise self._refusal(f"{place} cannot be {content!r}; it is one of {known}")

    # Orders and ranges.

    def _order(self, ranges: list[Given], present: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
        """Return the sort order of the answer and its field with a range; note what one key cannot provide."""
        need = self.need
        for condition in ranges:
            for owner in self.owners:
                self._check_range(owner, condition)
        range_fields = tuple(dict.fromkeys(condition.field for condition in ranges))
        fixed = {
            condition.field
            for condition in need.where
            if condition.operator == "=" and condition.value is None
        }
        order = tuple(name for name in dict.fromkeys(need.order) if name not in fixed)
        if self.several:
            if range_fields:
                self._filter(
                    range_fields,
                    "entities in one collection are stored one after the other, so no range covers matching items of all of them and "
                    "the whole partition is read",
                )
            if order:
                self._note(
                    "entities in one collection are stored one after the other, each in its own order; the application merges "
                    f"them by {order[0]}."
                )
            return (), None
        if need.single:
            if range_fields:
                self._filter(range_fields, "the item is fetched by its key and checked after reading")
            return (), None
        if not range_fields:
            return self._complete_order(order, present), None
        range_field = next((name for name in order if name in range_fields), range_fields[0])
        rest = [name for name in range_fields if name != range_field]
        if rest:
            self._filter(rest, f"a key supports one range, which is {range_field}")
        if not order or order[0] == range_field:
            return self._complete_order(order or (range_field,), [*present, range_field]), range_field
        self._note(
            f"a range of {range_field} is returned in the order of {range_field}; the application sorts by {order[0]}."
        )
        return (range_field,), range_field

    def _complete_order(self, order: tuple[str, ...], present: Sequence[str]) -> tuple[str, ...]:
        """Return an order up to the first field that may be absent: an index by it would leave items out."""
        owner = self.owners[0]
        for position, name in enumerate(order):
            if owner.field(name).nullable and name not in present:
                remaining_order = f"sorted by {', '.join(order[:position])}" if position else "unsorted"
                self._note(
                    f"{name} of {owner.name} may be missing, and an index on it would omit such items; so all items are returned "
                    f"{remaining_order}, and the application sorts them by {name}. To exclude items without it, add "
                    f'Given("{name}", "exists").'
                )
                return order[:position]
        return order

    def _check_range(self, owner: EntityDesign, condition: Given) -> None:
        field = self._field(owner, condition.field)
        if condition.operator == "begins_with" and field.tags == ("N",):
            raise self._refusal(
                f"{owner.name}.{field.name} is {field.type}, and begins_with does not apply to numbers; use >= and <"
            )
        if condition.value is not None:
            values = condition.value["L"] if condition.operator == "between" else [condition.value]
            for value in values:
                [tag] = value
                if field.tags and tag not in field.tags:
                    raise self._refusal(
                        f"{owner.name}.{field.name} is {field.type}, and {value!r} is not; use a value of its type"
                    )
