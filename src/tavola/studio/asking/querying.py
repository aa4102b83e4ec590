"""Querying: questions to one key → its requests: a get, or a query for each shard.

What a key does not decide alone is compared once more when the items are there (`comparing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.model import SHARD
from tavola.model.document import EntityDesign, KeyDesign, TableDesign
from tavola.studio.asking.clauses import Clause, expressed, told
from tavola.studio.asking.comparing import check_told, comparer
from tavola.studio.asking.entering import stored_of
from tavola.studio.asking.questions import WORDS, How, Order, Outgoing, Planned, Question, rendered, sortable
from tavola.studio.asking.spreading import check_requests, shard_of, spread
from tavola.studio.types import AttributeValue

NOTHING = "Nothing can answer it: no key lies in this stretch, so no request is made."


def got(
    table: TableDesign,
    entity: EntityDesign,
    key: KeyDesign,
    fixed: Mapping[str, Any],
    how: How,
    *,
    transactional: bool = False,
) -> Planned:
    """Return the request for one item by its key."""
    item = key_of(entity, key, fixed)
    clauses = [Clause(name, "=", (value,)) for name, value in item.items()]
    body: dict[str, Any] = {"TableName": table.name, "Key": item}
    if transactional:
        return Planned("TransactGetItems", (Outgoing({"TransactItems": [{"Get": body}]}, told(clauses)),))
    if how.consistent:
        body["ConsistentRead"] = True
    return Planned("GetItem", (Outgoing(body, told(clauses)),))


def key_of(entity: EntityDesign, key: KeyDesign, fixed: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the key of the item that has these values."""
    if key.shards is not None and key.shards.by != "time":
        fixed = {**fixed, SHARD: shard_of(entity, key, fixed)}
    return {source.attribute: rendered(entity, source, fixed) for source in key.sources}


def batch_got(table: TableDesign, keys: Sequence[Mapping[str, AttributeValue]], how: How) -> Planned:
    """Return the requests for several items by their keys, each key once."""
    once = list({tuple(map(str, key.values())): dict(key) for key in keys}.values())
    requests = []
    for at in range(0, len(once), BATCH_GET_KEYS_MAX):
        chunk = once[at : at + BATCH_GET_KEYS_MAX]
        wanted: dict[str, Any] = {"Keys": chunk} | ({"ConsistentRead": True} if how.consistent else {})
        first = told([Clause(name, "=", (value,)) for name, value in chunk[0].items()])
        more = "" if len(chunk) == 1 else f", and {len(chunk) - 1} more"
        requests.append(Outgoing({"RequestItems": {table.name: wanted}}, f"{first}{more}"))
    check_requests(len(requests))
    return Planned("BatchGetItem", tuple(requests))


def queried(
    asked: Sequence[Question], how: How, *, fetches: bool = False, notes: tuple[str, ...] = ()
) -> Planned:
    """Return the queries of questions to one key, a request for each of its shards."""
    first = asked[0]
    table, key = first.table, first.key
    index = None if key.index is None else table.index(key.index)
    requests: list[Outgoing] = []
    order: Order = "in turn"
    rough: set[str] = set()
    for each in asked:
        sort, inexact, empty = _sort_clauses(each)
        rough |= inexact
        shards, ordered = spread(each, how.newest_first)
        order = "merged" if ordered == "merged" or len(asked) > 1 else order
        for shard in () if empty else shards:
            partition = [
                Clause(
                    source.attribute,
                    "=",
                    (rendered(each.entity, source, {**each.fixed, **each.grain, **shard}),),
                )
                for source in key.hash
            ]
            body = body_of(
                table, key.index, how, consistent=how.consistent and (index is None or index.local)
            )
            body |= expressed([*partition, *sort], each.filters)
            requests.append(Outgoing(body, told([*partition, *sort]), told(each.filters)))
    check_requests(len(requests))
    if not fetches:
        check_told(table, key, first.entity, rough)
    places = dict.fromkeys([*(s.attribute for s in key.range), *table.settings.key_names])
    if not requests:
        notes = (*notes, NOTHING)
    return Planned(
        "Query",
        tuple(requests),
        order,
        tuple(places),
        how.limit,
        how.newest_first,
        fetches,
        comparer(first.entity, key, asked, rough),
        notes,
    )


def body_of(table: TableDesign, index: str | None, how: How, *, consistent: bool) -> dict[str, Any]:
    """Return a query without its conditions."""
    body: dict[str, Any] = {"TableName": table.name}
    if index is not None:
        body["IndexName"] = index
    if consistent:
        body["ConsistentRead"] = True
    if how.newest_first:
        body["ScanIndexForward"] = False
    return body


def _sort_clauses(asked: Question) -> tuple[list[Clause], set[str], bool]:
    """Return the conditions on the sort key, the fields that they tell only roughly, and whether nothing can meet them."""
    clauses: list[Clause] = []
    rough: set[str] = set()
    fixed, stretch = asked.fixed, asked.stretch
    for source in asked.key.range:
        bound = asked.entity.bound(source)
        if bound is None:
            assert source.field is not None
            field = asked.entity.field(source.field)
            if field.name in fixed:
                clauses.append(Clause(source.attribute, "=", (stored_of(field, fixed[field.name]),)))
                continue
            if stretch is not None and stretch.field.name == field.name:
                operands = tuple(stored_of(field, operand) for operand in stretch.operands)
                if stretch.operator == "between" and sortable(operands[0]) > sortable(operands[1]):
                    return [], rough, True
                clauses.append(Clause(source.attribute, spelled(stretch.operator), operands))
            break
        known: dict[str, Any] = {}
        for name in bound.fields:
            if name not in fixed:
                break
            known[name] = fixed[name]
        ahead = bound.fields[len(known) :]
        compared = set(known)
        if stretch is not None and ahead and ahead[0] == stretch.field.name:
            span = bound.bounds(known, WORDS[stretch.operator], *stretch.operands)
            compared.add(stretch.field.name)
        else:
            span = bound.bounds(known)
        if not span.exact:
            rough |= bound.lossy_fields & compared
        if span.empty:
            return [], rough, True
        if (condition := span.condition()) is not None:
            word, texts = condition
            clauses.append(Clause(source.attribute, word, tuple({"S": text} for text in texts)))
        if ahead:
            break
    return clauses, rough, False


def spelled(word: str) -> str:
    """Return a comparison as an expression spells it."""
    return "BETWEEN" if word == "between" else word
