"""Rows of the data grid: items with their entity and key parts, grouped by partition key.

Items of one partition are adjacent in every response, so a group is complete once the next one starts. The first and last
group of a page may continue on another page, and a filter hides an unknown number of items. Facts that many rows share
(entities, key shapes) are sent once per page, so a thousand rows cost little more than their items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tavola.errors import TavolaError
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import And, Comparison, Literal, Path
from tavola.expressions.renderer import Renderer
from tavola.studio.key_text import KeyReader, guess_parts
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.planner import ItemQuery, QueryPlan, ReadOperation
from tavola.studio.recognition import RecognisedItem, Recogniser
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout, TargetLayout
from tavola.studio.types import AttributeValue, Item
from tavola.values import item_size, read_units

KeyLengths = tuple[int, ...]
"""The number of a key's shape, then the lengths of all values but the last, in UTF-16 code units."""


@dataclass(frozen=True, slots=True)
class KeyTextField:
    """A value between two literals: its field, if known, and the field's values where they differ from the text."""

    name: str | None
    values: Mapping[str, str]  # by text


@dataclass(frozen=True, slots=True)
class KeyTextShape:
    """The structure of a key attribute's texts: literals with fields between them."""

    attribute: str
    literals: tuple[str, ...]
    fields: tuple[KeyTextField, ...]


_Memo = dict[str, KeyLengths]


class KeyEncoder:
    """Encodes the keys of one page and collects their shapes."""

    def __init__(self, recogniser: Recogniser, index: str | None) -> None:
        self._recogniser = recogniser
        self._index = index
        self._readers: dict[str | None, tuple[tuple[str, KeyReader | None, _Memo], ...]] = {}
        self._numbers: dict[tuple[str, tuple[str, ...], tuple[str | None, ...]], int] = {}
        self._shapes: list[KeyTextShape] = []

    @property
    def shapes(self) -> tuple[KeyTextShape, ...]:
        """The shapes of all encoded keys, by number."""
        return tuple(self._shapes)

    def encode(self, item: Item, recognised: RecognisedItem) -> tuple[KeyLengths, ...]:
        """Return the string keys of an item: the index's first, then the table's."""
        encoders = self._readers.get(recognised.entity)
        if encoders is None:
            readers = self._recogniser.key_readers(recognised.entity, self._index)
            encoders = self._readers[recognised.entity] = tuple(
                (name, reader, {}) for name, reader in readers
            )
        encoded_keys: list[KeyLengths] = []
        for name, reader, memo in encoders:
            value = item.get(name)
            text = None if value is None else value.get("S")
            if text is None:
                continue
            encoded = memo.get(text)
            if encoded is None:
                encoded = memo[text] = self._encode_text(name, reader, text)
            encoded_keys.append(encoded)
        return tuple(encoded_keys)

    def _encode_text(self, name: str, reader: KeyReader | None, text: str) -> KeyLengths:
        written = None if reader is None else reader.split(text)
        if reader is None or written is None or not self._add_values(name, reader, written):
            literals, written = guess_parts(text)
            number = self._number(name, literals, (None,) * len(written))
        else:
            number = self._number(name, reader.literals, reader.fields)
        return (number, *map(_units, written[:-1]))

    def _add_values(self, name: str, reader: KeyReader, written: tuple[str, ...]) -> bool:
        """Add field values that differ from their text to the shape; return False if a text is invalid."""
        for position in reader.converted:
            text = written[position]
            try:
                value = reader.value(position, text)
            except (ValueError, KeyError, TavolaError):
                return False
            if value != text:
                shape = self._shapes[self._number(name, reader.literals, reader.fields)]
                shape.fields[position].values[text] = value  # type: ignore[index]  # still a dict while the page is built
        return True

    def _number(self, name: str, literals: tuple[str, ...], fields: tuple[str | None, ...]) -> int:
        key = (name, literals, fields)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._shapes)
            self._shapes.append(
                KeyTextShape(name, literals, tuple(KeyTextField(field, {}) for field in fields))
            )
        return number


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


PAGE_ROWS = 1_000  # rows per page by default
ROWS_MAX = 5_000
FILTERED_MIN = 5_000  # items read at least for a filtered page, so that rare matches need few requests


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item, or an entry of an index."""

    item: Item
    entity: int  # its position in the page's entities
    keys: tuple[KeyLengths, ...]  # the queried index's first, then the table's; see the page's shapes
    indexes: tuple[int, ...] | None  # positions of the indexes that contain the item; None: unknown


@dataclass(frozen=True, slots=True)
class ItemRows:
    """Rows, and the entities and shapes they refer to by number."""

    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows with one partition key; the totals include all items with that key only if `whole`."""

    first: int  # position of its first row
    count: int
    bytes: int
    units: float  # of an eventually consistent read of these rows
    whole: bool


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of a query's results."""

    operation: ReadOperation
    index: str | None
    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]
    groups: tuple[RowGroup, ...]
    scanned: int  # items read and charged
    returned: int
    units: float  # as DynamoDB reported them
    total: int  # items in the table or index, by DescribeTable
    complete: bool  # no filter and no sort key range, so groups can be whole
    cursor: Item | None  # None: this was the last page


async def read_page(
    studio: Studio,
    question: ItemQuery,
    layout: TableLayout,
    planned: QueryPlan,
    recogniser: Recogniser,
    *,
    cursor: Item | None,
    limit: int,
    filtered_min: int = FILTERED_MIN,
) -> RowPage:
    """Read one page with one request; with a filter it reads at least `filtered_min` items."""
    operation, target = planned.route.operation, planned.route.target
    request = {**planned.request, "ReturnConsumedCapacity": "TOTAL"}
    limit = max(1, min(limit, ROWS_MAX))
    if operation != "GetItem":
        filtered = "FilterExpression" in request
        request["Limit"] = max(limit, filtered_min) if filtered else limit
        if cursor is not None:
            request["ExclusiveStartKey"] = cursor
    db = await studio.connection_at(question.as_of)
    answer = await db.call(operation, request)
    read_items = [answer["Item"]] if "Item" in answer else answer.get("Items", [])
    matching = _apply_studio_test(planned, read_items)
    scanned = answer.get("ScannedCount", len(read_items))
    after = answer.get("LastEvaluatedKey")
    shows_full_partitions = scanned == len(matching) and operation != "GetItem" and planned.route.pinned == 0
    built = build_rows(matching, layout, target, recogniser)
    return RowPage(
        operation,
        target.index,
        built.rows,
        built.entities,
        built.shapes,
        group_rows(
            matching, target, whole=shows_full_partitions, begun=cursor is not None, goes_on=after is not None
        ),
        scanned,
        len(matching),
        answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0),
        target.items,
        shows_full_partitions,
        after,
    )


def _apply_studio_test(planned: QueryPlan, items: list[Item]) -> list[Item]:
    """Return the items that match the conditions which DynamoDB could not evaluate."""
    if planned.studio_test is None:
        return items
    test = compile_decider(planned.studio_test)
    return [item for item in items if test(dict(item), {})]  # type: ignore[arg-type]  # DynamoDB JSON both


def build_rows(
    items: Sequence[Item], layout: TableLayout, target: TargetLayout, recogniser: Recogniser
) -> ItemRows:
    """Return items as rows of the table or an index."""
    encoder = KeyEncoder(recogniser, target.index)
    entities: dict[RecognisedItem, int] = {}
    memberships = layout.index_numbers if target.projection == "ALL" else _unknown_memberships
    rows: list[ItemRow] = []
    for item in items:
        recognised = recogniser.recognise(item)
        number = entities.setdefault(recognised, len(entities))
        rows.append(ItemRow(item, number, encoder.encode(item, recognised), memberships(item)))
    return ItemRows(tuple(rows), tuple(entities), encoder.shapes)


def _unknown_memberships(item: Item) -> None:
    """Return None: a partial entry does not show which other indexes contain the item."""


def group_rows(
    items: Sequence[Item], target: TargetLayout, *, whole: bool, begun: bool, goes_on: bool
) -> tuple[RowGroup, ...]:
    """Return the groups of items; `begun` and `goes_on` mean that there are pages before and after."""
    starts: list[int] = []
    before: list[AttributeValue | None] | None = None
    for position, item in enumerate(items):
        key = [item.get(name) for name in target.hash]
        if key != before:
            starts.append(position)
            before = key
    groups: list[RowGroup] = []
    for number, (start, end) in enumerate(pairwise((*starts, len(items)))):
        last = end == len(items)
        bytes_ = sum(map(item_size, items[start:end]))  # type: ignore[arg-type]  # DynamoDB JSON both
        complete = whole and not (begun and number == 0) and not (goes_on and last)
        groups.append(RowGroup(start, end - start, bytes_, read_units(bytes_, consistent=False), complete))
    return tuple(groups)


PAGES_MAX = 32  # of 1 MB each; beyond that the totals are lower bounds


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """The partition key of a collection in the table or an index."""

    table: str
    key: Item
    index: str | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class CollectionTotals:
    """The totals of a collection; lower bounds unless `whole`."""

    count: int
    bytes: int
    units: float  # of an eventually consistent read, which this request consumed
    consistent_units: float
    entities: Mapping[str, int]  # number of items by entity; unknown ones under ""
    whole: bool


async def count_collection(
    studio: Studio, params: CollectionRequest, layout: TableLayout, recogniser: Recogniser
) -> CollectionTotals:
    """Return the totals of a collection by reading all of it, which is charged."""
    target = layout.target(params.index)
    if not params.key.keys() >= set(target.hash):
        raise RequestRefused(
            "key-incomplete",
            "Incomplete partition key",
            f"The partition key of {target} is {', '.join(target.hash)}, but the request has {', '.join(params.key) or 'none'}.",
            "Send every part of the key.",
        )
    renderer = Renderer()
    nodes = tuple(Comparison("=", Path((name,)), Literal(dict(params.key[name]))) for name in target.hash)
    request: dict[str, Any] = {
        "TableName": params.table,
        "KeyConditionExpression": renderer.condition(nodes[0] if len(nodes) == 1 else And(nodes)),
        "ExpressionAttributeValues": renderer.values,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    if target.index is not None:
        request["IndexName"] = target.index
    db = await studio.connection_at(params.as_of)
    count, bytes_, units = 0, 0, 0.0
    entities: dict[str, int] = {}
    for _ in range(PAGES_MAX):
        answer = await db.call("Query", request)
        units += answer["ConsumedCapacity"]["CapacityUnits"]
        for item in answer["Items"]:
            count += 1
            bytes_ += item_size(item)
            name = recogniser.recognise(item).entity or ""
            entities[name] = entities.get(name, 0) + 1
        if "LastEvaluatedKey" not in answer:
            return CollectionTotals(count, bytes_, units, units * 2, entities, True)
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return CollectionTotals(count, bytes_, units, units * 2, entities, False)
