"""Plan the requests that answer an access pattern, from the design and the entered values.

A declared pattern uses its own key, a collection its partition, and a need its route or the key that serves it best. The
plan holds one request per shard, time bucket and combination of values, as the entity client would send them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product
from math import prod
from typing import Any

from tavola.design.access_paths import key_parts
from tavola.errors import TavolaError
from tavola.model.document import (
    CollectionDesign,
    EntityDesign,
    FieldDesign,
    Given,
    Route,
    TableDesign,
)
from tavola.studio.access_patterns.catalogue import Listed, conditions_of, routed
from tavola.studio.access_patterns.input_values import read_of, stored_of, value_of
from tavola.studio.access_patterns.key_queries import (
    NOTHING,
    batch_got,
    body_of,
    check_requests,
    got,
    key_of,
    meets,
    moments,
    narrowest,
    queried,
    spelled,
)
from tavola.studio.access_patterns.requests import (
    WORDS,
    Clause,
    EnteredValue,
    How,
    Outgoing,
    Planned,
    Question,
    Stretch,
    expressed,
    needed_value,
    part_of,
    shown,
    sortable,
    stretch_of,
    told,
)
from tavola.studio.problems import Refused
from tavola.studio.types import AttributeValue, Item

_BUCKETS = ("year", "month", "day", "hour", "minute")


def needed(found: Listed, given: Mapping[str, EnteredValue], how: How, now_s: float) -> Planned:
    """Return the requests of a need; a stretch without an end of its own ends now."""
    table, entity, need = found.table, found.entity, found.need
    assert table is not None
    assert entity is not None
    assert need is not None
    conditions = [
        (name, field, condition, role, _operands(name, field, condition, given))
        for name, field, condition, role in conditions_of(table, entity, need)
    ]
    keyed = [(f, c, values) for _, f, c, role, values in conditions if role != "filter"]
    filters = tuple(_clause(f, c, values) for _, f, c, role, values in conditions if role == "filter")
    if need.route is not None and routed(need):
        return _routed(table, need.route, _terms(keyed), keyed, filters, how)
    key = found.key
    assert key is not None, "what is runnable has a key or a route"
    left = tuple(_clause(f, c, values) for f, c, values in keyed if c in found.filtered)
    terms = _terms([each for each in keyed if each[1] not in found.filtered])
    several = {
        name: [_typed_part(term.field, value) for value in term.values]
        for name, term in terms.items()
        if term.values is not None
    }
    stretched = next((term for term in terms.values() if term.stretch is not None), None)
    stretch, held = (None, ()) if stretched is None else (stretched.stretch, stretched.held)
    notes: tuple[str, ...] = ()
    grains: list[dict[str, Any]] = [{}]
    if found.stretched and stretch is not None:
        parts = (part for part in key_parts(key.hash) if part.field == stretch.field.name)
        grain = next((part.grain for part in parts if part.grain in _BUCKETS), "day")
        grains = [{stretch.field.name: at} for at in moments(*_both_ends(stretch, now_s), grain)]
        notes = (f"A query for each {grain} of {stretch.field.name}: {len(grains)} of them.",)
    choices = _combined(several)
    check_requests(len(choices) * len(grains))
    if not choices or not grains:
        return Planned("Query", (), notes=(*notes, NOTHING))
    if found.told.operation in ("GetItem", "BatchGetItem"):
        if len(choices) == 1:
            return got(table, entity, key, choices[0], how)
        return batch_got(table, [key_of(entity, key, fixed) for fixed in choices], how)
    asked = [
        Question(table, entity, key, fixed, stretch, left, grain=at, held=held)
        for at in grains
        for fixed in choices
    ]
    return queried(asked, how, notes=notes)


@dataclass(frozen=True, slots=True)
class _Term:
    """What a need's conditions leave of one field: some values, or a stretch and what that does not decide alone."""

    field: FieldDesign
    values: tuple[AttributeValue, ...] | None
    stretch: Stretch | None = None
    held: tuple[Stretch, ...] = ()


_Condition = tuple[FieldDesign, Given, tuple[AttributeValue, ...]]


def _terms(conditions: Iterable[_Condition]) -> dict[str, _Term]:
    """Return what conditions leave of each field: a field may have several, and all of them hold."""
    by_field: dict[str, list[_Condition]] = {}
    for each in conditions:
        by_field.setdefault(each[0].name, []).append(each)
    found: dict[str, _Term] = {}
    for name, own in by_field.items():
        field = own[0][0]
        equal = [values for _, given, values in own if given.operator in ("=", "in")]
        ranges = [
            Stretch(field, given.operator, tuple(_typed_part(field, value) for value in values))
            for _, given, values in own
            if given.operator in WORDS
        ]
        if equal:
            shared = set.intersection(*({_frozen(value) for value in values} for values in equal))
            once = [dict([each]) for each in dict.fromkeys(map(_frozen, equal[0])) if each in shared]
            met = (value for value in once if all(meets(read_of(field, value), each) for each in ranges))
            found[name] = _Term(field, tuple(met))
        elif ranges:
            found[name] = _Term(field, None, *narrowest(ranges))
    return found


def _frozen(value: AttributeValue) -> tuple[str, Any]:
    """Return a key's value as a set takes it: its type and its text."""
    return next(iter(value.items()))


def _combined(several: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each value of a field with each of the others; refuse more of them than may be asked."""
    check_requests(prod(map(len, several.values())))
    return [dict(zip(several, values, strict=True)) for values in product(*several.values())]


def _operands(
    name: str, field: FieldDesign, condition: Given, given: Mapping[str, EnteredValue]
) -> tuple[AttributeValue, ...]:
    """Return what a condition compares with, as it is stored: what it always is, or what was typed."""
    if condition.operator == "exists":
        return ()
    if condition.value is not None:
        several = condition.operator in ("in", "between")
        return tuple(condition.value["L"]) if several else (condition.value,)
    entered = given.get(name)
    if entered is None:
        raise Refused(
            "parameter-missing", f"{name} is missing", f"It is asked by {name}.", f"Give {name} a value."
        )
    if condition.operator == "between":
        if entered.until == "":
            raise Refused(
                "parameter-missing", f"{name} has one end", "between takes two values.", "Give both."
            )
        texts = [entered.value, entered.until]
    elif condition.operator == "in":
        texts = [text.strip() for text in entered.value.split(",") if text.strip()]
        if not texts:
            raise Refused(
                "parameter-missing", f"{name} is missing", "There are only commas.", "Give one value or more."
            )
    else:
        texts = [entered.value]
    return tuple(stored_of(field, value_of(field, text)) for text in texts)


def _typed_part(field: FieldDesign, stored: AttributeValue) -> Any:
    value = read_of(field, stored)
    if value is None:
        raise Refused(
            "parameter-malformed",
            f"{field.name} is never what it is compared with",
            f"The design compares {field.name} with {shown(stored)}, which is no value of it.",
            "Look at the need's condition.",
        )
    if field.key_kind == "text" and not isinstance(value, str):
        return str(next(iter(stored.values())))
    return value


def _clause(field: FieldDesign, condition: Given, values: tuple[AttributeValue, ...]) -> Clause:
    word = {"between": "BETWEEN", "in": "IN"}.get(condition.operator, condition.operator)
    return Clause(field.attribute, word, values)


def _both_ends(stretch: Stretch, now_s: float) -> tuple[Any, Any]:
    if stretch.operator == "between":
        return stretch.operands[0], stretch.operands[1]
    now = datetime.fromtimestamp(now_s, UTC)
    start = stretch.operands[0]
    return start, now if isinstance(start, datetime) else date(now.year, now.month, now.day)


def _routed(
    table: TableDesign,
    route: Route,
    terms: Mapping[str, _Term],
    keyed: Sequence[_Condition],
    filters: tuple[Clause, ...],
    how: How,
) -> Planned:
    """Return the requests that a route says, in the attributes of the table."""
    index = None if route.index is None else table.index(route.index)
    consistent = how.consistent and (index is None or index.local)
    if route.operation == "scan":
        sifted = [*(_clause(*each) for each in keyed), *filters]
        body = body_of(table, route.index, How(), consistent=consistent) | expressed((), sifted)
        return Planned("Scan", (Outgoing(body, "", told(sifted)),), limit=how.limit)
    if route.operation in ("get", "batch_get"):
        return _by_key(table, route, terms, how)
    several = {term.field.attribute: term.values for term in terms.values() if term.values is not None}
    ranges = [term for term in terms.values() if term.stretch is not None]
    sort = [_stretch_clause(term.stretch) for term in ranges if term.stretch is not None]
    requests = []
    for values in [] if any(map(_empty, sort)) else _combined(several):
        keys = [*(Clause(name, "=", (value,)) for name, value in values.items()), *sort]
        body = body_of(table, route.index, how, consistent=consistent) | expressed(keys, filters)
        requests.append(Outgoing(body, told(keys), told(filters)))
    range_ = table.settings.key_names[1:] if index is None else index.range
    held = tuple(check for term in ranges for check in term.held)
    return Planned(
        "Query",
        tuple(requests),
        "merged" if len(requests) > 1 else "in turn",
        places=tuple(dict.fromkeys([*range_, *table.settings.key_names])),
        limit=how.limit,
        newest_first=how.newest_first,
        accepts=_accepting(held) if held else None,
        notes=() if requests else (NOTHING,),
    )


def _by_key(table: TableDesign, route: Route, terms: Mapping[str, _Term], how: How) -> Planned:
    """Return the request for items by their keys: the first of each attribute's values is one key, the second the next."""
    lists = {term.field.attribute: term.values or () for term in terms.values()}
    many = max(map(len, lists.values()))
    for name, values in lists.items():
        if len(values) not in (1, many):
            raise Refused(
                "parameter-refused",
                f"{name} has {len(values)} values where there are {many} keys",
                "Each key takes one value of each attribute: the first of each are the first key.",
                f"Give {name} once for all of them, or {many} times.",
            )
    keys = [{name: values[min(at, len(values) - 1)] for name, values in lists.items()} for at in range(many)]
    if route.operation == "batch_get":
        return batch_got(table, keys, how)
    body: dict[str, Any] = {"TableName": table.name, "Key": keys[0]}
    if how.consistent:
        body["ConsistentRead"] = True
    clauses = [Clause(name, "=", (value,)) for name, value in keys[0].items()]
    return Planned("GetItem", (Outgoing(body, told(clauses)),))


def _stretch_clause(stretch: Stretch) -> Clause:
    operands = tuple(stored_of(stretch.field, operand) for operand in stretch.operands)
    return Clause(stretch.field.attribute, spelled(stretch.operator), operands)


def _empty(clause: Clause) -> bool:
    return clause.operator == "BETWEEN" and sortable(clause.operands[0]) > sortable(clause.operands[1])


def _accepting(held: Sequence[Stretch]) -> Callable[[Item], bool]:
    def accepts(item: Item) -> bool:
        read = ((check, read_of(check.field, item[check.field.attribute])) for check in held)
        return all(value is None or meets(value, check) for check, value in read)

    return accepts


def plan(found: Listed, values: Sequence[EnteredValue], how: How, now_s: float) -> Planned:
    """Return the requests of a pattern; refuse what cannot be run, and values that the pattern cannot be asked with."""
    if not found.told.runnable or found.table is None or found.entity is None:
        raise Refused(
            "pattern-not-run", "This pattern is not run", found.told.reason, "Look at its forecast instead."
        )
    given = {value.name: value for value in values if value.value != ""}
    for name in given:
        if all(parameter.name != name for parameter in found.told.parameters):
            raise Refused(
                "parameter-unknown",
                f"There is no parameter {name}",
                f"{found.told.place} is asked with {', '.join(p.name for p in found.told.parameters) or 'nothing'}.",
                "Leave it out.",
            )
    try:
        if found.collection is not None:
            return _collected(found.table, found.entity, found.collection, given, how)
        if found.need is not None:
            return needed(found, given, how, now_s)
        return _patterned(found, given, how)
    except Refused:
        raise
    except TavolaError as error:  # a value that a key cannot hold
        raise Refused("parameter-refused", "The key cannot be made of this", str(error)) from error


def _patterned(found: Listed, given: Mapping[str, EnteredValue], how: How) -> Planned:
    table, entity, key, pattern = found.table, found.entity, found.key, found.pattern
    assert table is not None
    assert entity is not None
    assert key is not None
    assert pattern is not None
    fixed = {name: part_of(entity.field(name), needed_value(given, name)) for name in pattern.partition}
    if pattern is entity.primary:
        fixed |= {name: part_of(entity.field(name), needed_value(given, name)) for name in pattern.sorts}
        return got(table, entity, key, fixed, how, transactional=found.told.transactional)
    stretch: Stretch | None = None
    last = ""
    for name in pattern.sorts:
        entered = given.get(name)
        if entered is None:
            last = last or name
            continue
        if last:
            raise Refused(
                "parameter-gap",
                f"{name} needs {last}",
                f"{last} stands before {name} in the sort key, so a key condition cannot name {name} alone.",
                f"Give {last} with =, or leave {name} out.",
            )
        field = entity.field(name)
        if entered.operator == "=":
            fixed[name] = part_of(field, entered.value)
        else:
            stretch = stretch_of(field, entered)
            last = name
    asked = Question(table, entity, key, fixed, stretch)
    return queried([asked], how, fetches=pattern.hydrate)


def _collected(
    table: TableDesign,
    entity: EntityDesign,
    collection: CollectionDesign,
    given: Mapping[str, EnteredValue],
    how: How,
) -> Planned:
    """Return the one query of a collection, between the sort keys that its members have."""
    index = None if collection.index is None else table.index(collection.index)
    hash_ = table.settings.hash if index is None else index.hash[0]
    range_ = table.settings.range if index is None else next(iter(index.range), None)
    fixed = {name: part_of(entity.field(name), needed_value(given, name)) for name in collection.parts}
    key = entity.key_on(collection.index)
    own = (
        next((source for source in key.hash if source.attribute == hash_), None) if key is not None else None
    )
    if own is not None and own.template is None:
        partition = stored_of(entity.field(collection.parts[0]), fixed[collection.parts[0]])
    else:
        parts = {name: part for name in collection.parts if (part := entity.field(name).part) is not None}
        partition = {"S": collection.partition.bind(parts).render(fixed)}
    clauses = [Clause(hash_, "=", (partition,))]
    if collection.prefix and range_ is not None:
        clauses.append(Clause(range_, "begins_with", ({"S": collection.prefix},)))
    elif range_ is not None and (ends := _ends(table, collection)) is not None:
        clauses.append(Clause(range_, "BETWEEN", tuple({"S": text} for text in ends)))
    body = body_of(table, collection.index, how, consistent=how.consistent and (index is None or index.local))
    places = tuple(dict.fromkeys([*([range_] if range_ else []), *table.settings.key_names]))
    return Planned(
        "Query",
        (Outgoing(body | expressed(clauses, ()), told(clauses)),),
        places=places,
        limit=how.limit,
        newest_first=how.newest_first,
    )


def _ends(table: TableDesign, collection: CollectionDesign) -> tuple[str, str] | None:
    """Return between which sort keys the members of a collection stand; None where that is not known."""
    ends: list[tuple[str, str]] = []
    for member in collection.members:
        entity = table.entity(member.entity)
        key = entity.key_on(collection.index)
        bound = entity.bound(key.range[0]) if key is not None and len(key.range) == 1 else None
        if bound is None or not bound.literal_prefix:
            return None
        prefix = bound.literal_prefix
        after = chr(ord(prefix[-1]) + 1)
        if "\ud800" <= after <= "\udfff":
            return None
        ends.append((prefix, bound.constant or prefix[:-1] + after))
    return min(first for first, _ in ends), max(last for _, last in ends)
