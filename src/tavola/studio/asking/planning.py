"""Planning: a pattern and what was typed for it → the requests that answer it.

One request for each shard, each stretch of time and each of several values, as the client of entities makes them, from the
design alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tavola.errors import TavolaError
from tavola.model.document import CollectionDesign, EntityDesign, TableDesign
from tavola.studio.asking.catalogue import Listed
from tavola.studio.asking.clauses import Clause, expressed, told
from tavola.studio.asking.entering import stored_of
from tavola.studio.asking.needing import needed
from tavola.studio.asking.querying import body_of, got, queried
from tavola.studio.asking.questions import (
    EnteredValue,
    How,
    Outgoing,
    Planned,
    Question,
    Stretch,
    needed_value,
    part_of,
    stretch_of,
)
from tavola.studio.problems import Refused


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
