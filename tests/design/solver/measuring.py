"""Measuring: a solved design on the engine. Items are written by its keys, every need is asked by its pattern, and what
the engine counts is held against what the capacity functions say; whatever differs is told in a sentence.

Which items a need asks for is found from the need itself, condition by condition, and not from how the solver read it. From
the solver comes only where it is asked, and which conditions it said are left to the application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tavola.design.cost import collection_units, index_effects, pattern_units
from tavola.design.solver.questions import SolverInput, SolverQuestion, read_input
from tavola.engine import Engine
from tavola.keys import KeyPartMissing, KeyPartRefused
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    Given,
    IndexDesign,
    KeyDesign,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
    needs_of,
)
from tavola.model.shapes import SHARD
from tavola.values import Item, Value, index_units, item_size, write_units
from tests.design.solver.items import Row, item_of, rendered, rows_of, stored_of, value_of
from tests.design.solver.stretches import (
    COMPARED,
    NATIVE,
    STRETCHES,
    Stretch,
    ended,
    operands_of,
    stretch_of,
    within,
)

_ASKED = 2  # values that each question is asked with


def differences(given: Design, solved: Design) -> list[str]:
    """Return what is wrong when a solved design serves the questions of the design that it was solved from."""
    return list(_Measure(needs_of(given), read_input(given), solved).run())


class _Measure:
    def __init__(self, needs: tuple[Need, ...], subject: SolverInput, solved: Design) -> None:
        self.needs, self.subject, self.solved = needs, subject, solved
        self.engine = Engine.open()
        self.rows: dict[str, list[Row]] = {}

    def run(self) -> Iterator[str]:
        try:
            for table in self.solved.tables:
                self.engine.call("CreateTable", _creation(table))
                for entity in table.entities:
                    self.rows[entity.name] = rows_of(table, entity)
                    for row in self.rows[entity.name]:
                        yield from self._put(table, entity, row)
            for need in self.needs:
                yield from self._need(need)
            for table in self.solved.tables:
                for entity in table.entities:
                    for write in entity.writes:
                        yield from self._update(table, entity, write)
        finally:
            self.engine.close()

    # Writes.

    def _put(self, table: TableDesign, entity: EntityDesign, row: Row) -> Iterator[str]:
        spent = self._spent_by_put(table, row.item)
        wanted: dict[str | None, float] = {None: write_units(0, item_size(row.item))}
        for index in table.indexes:
            entry = _entry(table, index, row.item)
            if entry is not None:
                wanted[index.name] = index_units(None, item_size(entry))
                if entity.key_on(index.name) is None:
                    yield f"{entity.name} is in {index.name}, and nobody asks for it there"
        if spent != wanted:
            yield f"putting a {entity.name} takes {spent}, not {wanted}"

    def _spent_by_put(self, table: TableDesign, item: Item) -> dict[str | None, float]:
        request = {"TableName": table.name, "Item": item, "ReturnConsumedCapacity": "INDEXES"}
        return _spent(self.engine.call("PutItem", request)["ConsumedCapacity"])

    def _update(self, table: TableDesign, entity: EntityDesign, write: WritePattern) -> Iterator[str]:
        """Change what a write changes, in an item that has all of it, and hold the effects against those foretold."""
        changes = [*write.changes, *write.adds]
        if write.kind != "update" or not changes:
            return
        for row in self.rows[entity.name][:6]:
            if any(row.values[name] is None for name in changes):
                continue
            values = dict(row.values)
            for name in changes:
                field = entity.field(name)
                others = (value_of(field, step)[0] for step in (97, 98))
                values[name] = next((each for each in others if each != row.values[name]), None)
            if any(values[name] is None for name in changes):
                continue  # there is no other value
            fresh = item_of(table, entity, values)
            before = {index.name: _entry(table, index, row.item) for index in table.indexes}
            after = {index.name: _entry(table, index, fresh) for index in table.indexes}
            spent = self._spent_by_put(table, fresh)
            self._spent_by_put(table, row.item)
            for effect in index_effects(table, entity, write):
                was, now = before[effect.index], after[effect.index]
                if was is None or now is None or effect.kind == "entered":
                    continue
                sizes = item_size(was), item_size(now)
                told = {
                    "moved": index_units(*sizes, moved=True),
                    "changed": index_units(*sizes),
                    "untouched": 0.0,
                }[effect.kind]
                if spent.get(effect.index, 0.0) != told:
                    yield f"{write.title!r} takes {spent} and not {told} on {effect.index}, which is {effect.kind}"

    # Reads.

    def _need(self, need: Need) -> Iterator[str]:
        """Ask a need with some of the values there are."""
        question = self._question_of(need)
        if question is None:
            yield f"nothing serves {need.name}"
            return
        first = need.entities[0]
        told = [given.field for given in need.where if given.operator in ("=", "in") and given.value is None]
        asked: dict[tuple[Any, ...], None] = {}
        for row in self.rows[first]:
            values = tuple(row.values[name] for name in told)
            if None not in values:
                asked[values] = None
        if not asked:
            yield f"nothing was written that {need.name} could ask for"
        for values in list(asked)[:_ASKED]:
            yield from self._ask(need, question, dict(zip(told, values, strict=True)))

    def _question_of(self, need: Need) -> SolverQuestion | None:
        """Return where a need is asked; one that names an item by the same fields is asked as the other is."""
        for question in self.subject.questions:
            if question.need == need.name:
                return question
        for question in self.subject.questions:
            if question.entities == need.entities and set(question.fixed[0]) == set(need.equal_fields):
                return question
        return None

    def _said(self, need: Need) -> str:
        """Return what the solver said it leaves to the application."""
        return " ".join(note for note in self.subject.notes if note.startswith(f"Need {need.name}:"))

    def _ask(self, need: Need, question: SolverQuestion, given: dict[str, Any]) -> Iterator[str]:
        # Of entities that are collected by names of their own, what is given is theirs in the same place.
        by_entity = {
            name: dict(zip(question.equal_fields(name), given.values(), strict=True))
            if question.has_several_entities
            else given
            for name in need.entities
        }
        rest = [each for each in need.where if each.operator not in STRETCHES]
        near = {
            name: [row for row in self.rows[name] if self._holds(row, rest, by_entity[name], {})]
            for name in need.entities
        }
        operands = operands_of(need, near[need.entities[0]], self._entity(need.entities[0])[1])
        wanted = {
            name: [row for row in rows if self._holds(row, need.where, by_entity[name], operands)]
            for name, rows in near.items()
        }
        said = self._said(need)
        for name in question.filtered:
            if name not in said or "after reading" not in said:
                yield f"{need.name} leaves {name} to a filter, and nobody says so"
        left = [each for each in need.where if each.field in question.filtered]
        if question.has_several_entities:
            table, collection = next(
                (table, each)
                for table in self.solved.tables
                for each in table.collections
                if each.name == question.name
            )
            read = {
                name: [
                    row for row in self.rows[name]
                    if self._holds(row, [g for g in need.where if g not in left], by_entity[name], operands)
                ]
                for name in need.entities
            }  # fmt: skip
            yield from self._collect(table, collection, question, tuple(given.values()), read)
            return
        table, entity = self._entity(question.entities[0])
        rows = wanted[entity.name]
        assert entity.primary is not None
        if question.identifies and set(given) == set(entity.primary.partition):
            yield from self._get(table, entity, question, given, near[entity.name])
            return
        pattern = next((each for each in entity.patterns if each.name == question.name), None)
        if pattern is None:
            yield f"{need.name} has no pattern"
            return
        stretch = stretch_of(need, question.ranged, operands)
        for each in need.where:
            if each.operator in STRETCHES and each.field not in (question.ranged, *question.filtered):
                yield f"{need.name} forgets {each.field} {each.operator}"
        order = tuple(name for name in dict.fromkeys(need.order) if name not in given)
        if "the application sorts" in said or "merges the results" in said:
            order = question.order
        if any(row.values[name] is None for row in rows for name in order):
            yield f"{need.name} has items that no order by {order} holds, and nobody says so"
            return

        def keeps(row: Row) -> bool:
            return self._holds(row, need.where, given, operands)

        whole = [row for row in near[entity.name] if stretch is None or within(row, stretch)]
        if not left and not ended(need):
            whole = rows
        yield from self._query(table, entity, pattern, question, given, whole, stretch, order)
        if left and [row for row in whole if keeps(row)] != rows:
            yield f"{need.name} gives other items once they are filtered"

    def _holds(
        self,
        row: Row,
        where: Iterable[Given],
        given: Mapping[str, Any],
        operands: Mapping[str, tuple[Any, ...]],
    ) -> bool:
        """Tell whether an item is one that conditions ask for: the need's own words, evaluated."""
        entity = self._entity(row.entity)[1]
        if any(row.values[name] != value for name, value in given.items()):
            return False
        for each in where:
            if each.operator in ("=", "in") and each.value is None:
                continue  # in what is given
            value = row.values[each.field]
            if each.operator == "exists":
                fits = value is not None
            elif each.operator in ("=", "in"):
                assert each.value is not None
                allowed = each.value["L"] if each.operator == "in" else [each.value]
                stored = {"NULL": True} if value is None else stored_of(entity.field(each.field), value)
                fits = stored in allowed
            else:
                at = operands[f"{each.field} {each.operator}"]
                fits = value is not None and COMPARED[each.operator](value, *at)
            if not fits:
                return False
        return True

    def _get(
        self,
        table: TableDesign,
        entity: EntityDesign,
        question: SolverQuestion,
        given: dict[str, Any],
        rows: list[Row],
    ) -> Iterator[str]:
        assert entity.key is not None
        assert entity.primary is not None
        key = {s.attribute: rendered(entity, s, given, entity.key) for s in entity.key.sources}
        request = {
            "TableName": table.name, "Key": key, "ReturnConsumedCapacity": "INDEXES", "ConsistentRead": question.consistent,
        }  # fmt: skip
        answer = self.engine.call("GetItem", request)
        if len(rows) != 1 or answer.get("Item") != rows[0].item:
            yield f"{question.need} gets another item"
            return
        told = AccessPattern("", items=1, item_bytes=item_size(rows[0].item), consistent=question.consistent)
        primary = replace(entity.primary, access=told)
        units = sum(each.read for each in pattern_units(table, replace(entity, primary=primary), primary))
        spent = _spent(answer["ConsumedCapacity"])
        if spent != {None: units}:
            yield f"{question.need} takes {spent}, not {units}"

    def _query(
        self,
        table: TableDesign,
        entity: EntityDesign,
        pattern: PatternDesign,
        question: SolverQuestion,
        given: dict[str, Any],
        rows: list[Row],
        stretch: Stretch | None,
        order: tuple[str, ...],
    ) -> Iterator[str]:
        key = entity.key_on(pattern.index)
        assert key is not None
        told = dict(given)
        for member in question.members:
            if not key.members:
                told[member.field] = next(iter((member.values[0] or {"": None}).values()))
        found: list[Item] = []
        for shard in range(key.shards.count if key.shards else 1):
            try:
                request = _query_of(table, entity, pattern, key, told, stretch, shard, question.consistent)
            except (KeyPartMissing, KeyPartRefused) as error:
                yield f"{question.need} cannot be asked: {error}"
                return
            answer = self.engine.call("Query", request)
            here = answer["Items"]
            found += here
            entries = [
                _entry(table, _index(table, pattern.index), item) for item in _whole(here, rows, table)
            ]
            total = sum(item_size(entry) for entry in entries if entry is not None)
            if here:
                units = _foretold(table, entity, pattern, total, question.consistent)
                if _spent(answer["ConsumedCapacity"]) != {pattern.index: units}:
                    yield f"{question.need} takes {_spent(answer['ConsumedCapacity'])}, not {units}"
        keys = [_identity(table, item) for item in found]
        if sorted(keys) != sorted(_identity(table, row.item) for row in rows):
            yield f"{question.need} with {given} finds {len(keys)} items, and {len(rows)} were asked for"
            return
        by_key = {_identity(table, row.item): row for row in rows}
        run = [tuple(by_key[each].values[name] for name in order) for each in keys]
        if (key.shards is None or key.shards.count == 1) and run != sorted(run):
            yield f"{question.need} comes in another order"
        if pattern.hydrate:
            yield from self._fetch(table, entity, question, rows)
        else:
            yield from self._told(table, entity, pattern, question, found, by_key)

    def _fetch(
        self, table: TableDesign, entity: EntityDesign, question: SolverQuestion, rows: list[Row]
    ) -> Iterator[str]:
        """Fetch what an index found, whole, as a query that hydrates does."""
        keys = [{name: row.item[name] for name in table.settings.key_names} for row in rows]
        if not keys:
            return
        request = {"RequestItems": {table.name: {"Keys": keys}}, "ReturnConsumedCapacity": "TOTAL"}
        answer = self.engine.call("BatchGetItem", request)
        found = {_identity(table, item): item for item in answer["Responses"][table.name]}
        if found != {_identity(table, row.item): row.item for row in rows}:
            yield f"{question.need} fetches other items"
        assert entity.primary is not None
        units = 0.0
        for row in rows:
            access = AccessPattern("", items=1, item_bytes=item_size(row.item))
            primary = replace(entity.primary, access=access)
            units += sum(
                each.read for each in pattern_units(table, replace(entity, primary=primary), primary)
            )
        spent = answer["ConsumedCapacity"][0]["CapacityUnits"]
        if spent != units:
            yield f"{question.need} fetches for {spent}, not {units}"

    def _told(
        self,
        table: TableDesign,
        entity: EntityDesign,
        pattern: PatternDesign,
        question: SolverQuestion,
        found: list[Item],
        by_key: Mapping[str, Row],
    ) -> Iterator[str]:
        """Hold the fields that are wanted against those that come: as attributes, or out of keys."""
        key = entity.key_on(pattern.index)
        assert key is not None
        assert entity.key is not None
        in_keys = {name for source in (*key.sources, *entity.key.sources) for name in source.fields}
        for item in found:
            row = by_key[_identity(table, item)]
            for field in entity.fields:
                wanted = question.result_fields is None or field.name in question.result_fields
                if not wanted or row.values[field.name] is None or field.name in in_keys:
                    continue
                if item.get(field.attribute) != row.item[field.attribute]:
                    yield f"{question.need} lacks {field.name}"
                    return

    def _collect(
        self,
        table: TableDesign,
        collection: CollectionDesign,
        question: SolverQuestion,
        values: tuple[Any, ...],
        wanted: Mapping[str, list[Row]],
    ) -> Iterator[str]:
        first = table.entity(question.entities[0])
        key = first.key_on(collection.index)
        assert key is not None
        given = dict(zip(question.equal_fields(first.name), values, strict=True))
        request = _request(table, collection.index, consistent=question.consistent)
        _condition(request, key.hash[0].attribute, "=", rendered(first, key.hash[0], given, key))
        if collection.prefix:
            _condition(request, key.range[0].attribute, "begins_with", {"S": collection.prefix})
        answer = self.engine.call("Query", request)
        rows = [row for each in wanted.values() for row in each]
        keys = sorted(_identity(table, item) for item in answer["Items"])
        if keys != sorted(_identity(table, row.item) for row in rows):
            yield f"{question.need} finds {len(keys)} items, and {len(rows)} were asked for"
            return
        index = _index(table, collection.index)
        entries = [_entry(table, index, row.item) for row in rows]
        total = sum(item_size(entry) for entry in entries if entry is not None)
        told = replace(
            collection, access=AccessPattern("", items=1, item_bytes=total, consistent=question.consistent)
        )
        units = sum(each.read for each in collection_units(table, told))
        if _spent(answer["ConsumedCapacity"]) != {collection.index: units}:
            yield f"{question.need} takes {_spent(answer['ConsumedCapacity'])}, not {units}"

    def _entity(self, name: str) -> tuple[TableDesign, EntityDesign]:
        return next((t, e) for t in self.solved.tables for e in t.entities if e.name == name)


# Requests.


def _creation(table: TableDesign) -> dict[str, Any]:
    settings = table.settings
    request: dict[str, Any] = {
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": n, "AttributeType": t} for n, t in table.key_types.items()
        ],
        "KeySchema": _schema((settings.hash,), () if settings.range is None else (settings.range,)),
    }
    for word, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        told = [_index_told(index) for index in table.indexes if index.local is local]
        if told:
            request[word] = told
    return request


def _schema(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": n, "KeyType": "HASH"} for n in hash_] + [
        {"AttributeName": n, "KeyType": "RANGE"} for n in range_
    ]


def _index_told(index: IndexDesign) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if isinstance(index.projection, tuple):
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {"IndexName": index.name, "KeySchema": _schema(index.hash, index.range), "Projection": projection}


def _request(table: TableDesign, index: str | None, *, consistent: bool) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": table.name, "ReturnConsumedCapacity": "INDEXES", "KeyConditionExpression": "",
        "ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}, "ConsistentRead": consistent,
    }  # fmt: skip
    if index is not None:
        request["IndexName"] = index
    return request


def _condition(request: dict[str, Any], attribute: str, operator: str, *operands: Value) -> None:
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    name = f"#n{len(names)}"
    names[name] = attribute
    told = []
    for operand in operands:
        told.append(f":v{len(values)}")
        values[told[-1]] = operand
    text = (
        f"begins_with({name}, {told[0]})"
        if operator == "begins_with"
        else f"{name} {operator} {' AND '.join(told)}"
    )
    before = request["KeyConditionExpression"]
    request["KeyConditionExpression"] = f"{before} AND {text}" if before else text


def _query_of(
    table: TableDesign,
    entity: EntityDesign,
    pattern: PatternDesign,
    key: KeyDesign,
    given: Mapping[str, Any],
    stretch: Stretch | None,
    shard: int,
    consistent: bool,
) -> dict[str, Any]:
    request = _request(table, pattern.index, consistent=consistent)
    for source in key.hash:
        _condition(request, source.attribute, "=", rendered(entity, source, {**given, SHARD: shard}, key))
    rest = {name: given[name] for name in pattern.sorts if name in given}
    if len(key.range) == 1 and key.range[0].template is not None:
        bound = entity.bind_template(key.range[0])
        assert bound is not None
        span = bound.bounds(rest, *(() if stretch is None else (stretch.operator, *stretch.operands)))
        told = span.condition()
        if told is not None:
            _condition(request, key.range[0].attribute, told[0], *({"S": text} for text in told[1]))
        return request
    for source in key.range:
        assert source.field is not None
        if source.field in rest:
            _condition(
                request, source.attribute, "=", stored_of(entity.field(source.field), rest[source.field])
            )
        elif stretch is not None and source.field == stretch.field:
            operands = [stored_of(entity.field(source.field), each) for each in stretch.operands]
            _condition(request, source.attribute, NATIVE[stretch.operator], *operands)
    return request


def _foretold(
    table: TableDesign, entity: EntityDesign, pattern: PatternDesign, total: int, consistent: bool
) -> float:
    access = AccessPattern("", items=1, item_bytes=total, consistent=consistent)
    assert entity.key is not None
    lone = replace(
        entity, key=replace(entity.key, shards=None), keys=tuple(replace(k, shards=None) for k in entity.keys)
    )
    asked = replace(pattern, access=access, hydrate=False)
    return sum(each.read for each in pattern_units(table, lone, asked))


def _index(table: TableDesign, name: str | None) -> IndexDesign | None:
    return None if name is None else table.index(name)


def _entry(table: TableDesign, index: IndexDesign | None, item: Item) -> Item | None:
    """Return an item's entry in an index, None if it has none; the item itself for the table."""
    if index is None:
        return item
    if any(name not in item for name in index.attributes):
        return None
    if index.projection == "ALL":
        return item
    held = {*table.settings.key_names, *index.attributes}
    held |= set() if index.projection == "KEYS_ONLY" else set(index.projection)
    return {name: value for name, value in item.items() if name in held}


def _whole(found: list[Item], rows: list[Row], table: TableDesign) -> list[Item]:
    by_key = {_identity(table, row.item): row.item for row in rows}
    return [by_key.get(_identity(table, item), item) for item in found]


def _identity(table: TableDesign, item: Item) -> str:
    return str([item[name] for name in table.settings.key_names])


def _spent(told: Mapping[str, Any]) -> dict[str | None, float]:
    """Return the units of each place that took some."""
    units: dict[str | None, float] = {None: told["Table"]["CapacityUnits"]}
    for word in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        units |= {name: each["CapacityUnits"] for name, each in told.get(word, {}).items()}
    return {place: amount for place, amount in units.items() if amount}
