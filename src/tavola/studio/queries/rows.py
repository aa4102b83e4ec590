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
"""The number of a key's shape, then the lengths of all values but the last, as JavaScript counts characters."""


@dataclass(frozen=True, slots=True)
class KeyTextField:
    """A value between two literals: the field that it is of, if known, and what that has where it is written otherwise."""

    name: str | None
    values: Mapping[str, str]  # by what is written; a moment says it plainly, and is left out


@dataclass(frozen=True, slots=True)
class KeyTextShape:
    """How texts of a key attribute are made: literals, with a field between each two of them."""

    attribute: str
    literals: tuple[str, ...]
    fields: tuple[KeyTextField, ...]


_Memo = dict[str, KeyLengths]


class KeyEncoder:
    """Cuts the keys of one page, and gathers their shapes."""

    def __init__(self, recogniser: Recogniser, index: str | None) -> None:
        self._recogniser = recogniser
        self._index = index
        self._readers: dict[str | None, tuple[tuple[str, KeyReader | None, _Memo], ...]] = {}
        self._numbers: dict[tuple[str, tuple[str, ...], tuple[str | None, ...]], int] = {}
        self._shapes: list[KeyTextShape] = []

    @property
    def shapes(self) -> tuple[KeyTextShape, ...]:
        """The shapes of all keys that were cut, in the order of their numbers."""
        return tuple(self._shapes)

    def encode(self, item: Item, recognised: RecognisedItem) -> tuple[KeyLengths, ...]:
        """Return the keys of an item that are texts: the index's first, then the table's."""
        encoders = self._readers.get(recognised.entity)
        if encoders is None:
            readers = self._recogniser.key_readers(recognised.entity, self._index)
            encoders = self._readers[recognised.entity] = tuple(
                (name, reader, {}) for name, reader in readers
            )
        cuts: list[KeyLengths] = []
        for name, reader, memo in encoders:
            value = item.get(name)
            text = None if value is None else value.get("S")
            if text is None:
                continue
            encoded = memo.get(text)
            if encoded is None:
                encoded = memo[text] = self._cut(name, reader, text)
            cuts.append(encoded)
        return tuple(cuts)

    def _cut(self, name: str, reader: KeyReader | None, text: str) -> KeyLengths:
        written = None if reader is None else reader.split(text)
        if reader is None or written is None or not self._tell(name, reader, written):
            literals, written = guess_parts(text)
            number = self._number(name, literals, (None,) * len(written))
        else:
            number = self._number(name, reader.literals, reader.fields)
        return (number, *map(_units, written[:-1]))

    def _tell(self, name: str, reader: KeyReader, written: tuple[str, ...]) -> bool:
        """Tell what the fields have that are written otherwise; False: what is written is no value of its field."""
        for at in reader.converted:
            text = written[at]
            try:
                value = reader.value(at, text)
            except (ValueError, KeyError, TavolaError):
                return False
            if value != text:
                shape = self._shapes[self._number(name, reader.literals, reader.fields)]
                shape.fields[at].values[text] = value  # type: ignore[index]  # its own dict, while the page is made
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


PAGE_ROWS = 1_000  # of a page, where nobody says how many
ROWS_MAX = 5_000
FILTERED_MIN = (
    5_000  # items that one page of a filtered read looks at, so that few hits do not mean many calls
)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item, or an entry of an index."""

    item: Item
    entity: int  # what it is, by its place in the page's entities
    keys: tuple[KeyLengths, ...]  # of the index that was asked first, then the table's; see the page's shapes
    indexes: tuple[int, ...] | None  # that the item is in, by their place; None: an entry does not tell


@dataclass(frozen=True, slots=True)
class ItemRows:
    """Rows, and what they refer to by number."""

    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows with one partition key; what is counted is of these rows, and of all items with it where it is `whole`."""

    first: int  # its first row
    count: int
    bytes: int
    units: float  # of reading these rows at once, not consistently
    whole: bool


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of an answer, and where to go on."""

    operation: ReadOperation
    index: str | None
    rows: tuple[ItemRow, ...]
    entities: tuple[RecognisedItem, ...]
    shapes: tuple[KeyTextShape, ...]
    groups: tuple[RowGroup, ...]
    scanned: int  # items that were read and paid
    returned: int
    units: float  # as DynamoDB counted them
    total: int  # items there are, as DescribeTable counts
    complete: bool  # nothing was left out of what the keys hold: no filter, no range of the sort key
    cursor: Item | None  # None: this was the end


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
    """Ask for one page and return its rows; a page is one request. With a filter it looks at `filtered_min` items or more."""
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
    whole = scanned == len(matching) and operation != "GetItem" and planned.route.pinned == 0
    built = build_rows(matching, layout, target, recogniser)
    return RowPage(
        operation,
        target.index,
        built.rows,
        built.entities,
        built.shapes,
        group_rows(matching, target, whole=whole, begun=cursor is not None, goes_on=after is not None),
        scanned,
        len(matching),
        answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0),
        target.items,
        whole,
        after,
    )


def _apply_studio_test(planned: QueryPlan, items: list[Item]) -> list[Item]:
    """Return the items that the conditions hold of which DynamoDB could not be asked."""
    if planned.studio_test is None:
        return items
    test = compile_decider(planned.studio_test)
    return [item for item in items if test(dict(item), {})]  # type: ignore[arg-type]  # what came is an item


def build_rows(
    items: Sequence[Item], layout: TableLayout, target: TargetLayout, recogniser: Recogniser
) -> ItemRows:
    """Return items as rows of the table or of an index."""
    cutter = KeyEncoder(recogniser, target.index)
    entities: dict[RecognisedItem, int] = {}
    memberships = layout.index_numbers if target.projection == "ALL" else _unknown_memberships
    rows: list[ItemRow] = []
    for item in items:
        recognised = recogniser.recognise(item)
        number = entities.setdefault(recognised, len(entities))
        rows.append(ItemRow(item, number, cutter.encode(item, recognised), memberships(item)))
    return ItemRows(tuple(rows), tuple(entities), cutter.shapes)


def _unknown_memberships(item: Item) -> None:
    """An entry with a part of the item says nothing of other indexes."""


def group_rows(
    items: Sequence[Item], target: TargetLayout, *, whole: bool, begun: bool, goes_on: bool
) -> tuple[RowGroup, ...]:
    """Return the groups of items; `begun` and `goes_on` say that there are pages before and after."""
    starts: list[int] = []
    before: list[AttributeValue | None] | None = None
    for at, item in enumerate(items):
        key = [item.get(name) for name in target.hash]
        if key != before:
            starts.append(at)
            before = key
    groups: list[RowGroup] = []
    for number, (start, end) in enumerate(pairwise((*starts, len(items)))):
        last = end == len(items)
        bytes_ = sum(map(item_size, items[start:end]))  # type: ignore[arg-type]  # what came are items
        complete = whole and not (begun and number == 0) and not (goes_on and last)
        groups.append(RowGroup(start, end - start, bytes_, read_units(bytes_, consistent=False), complete))
    return tuple(groups)


PAGES_MAX = 32  # of 1 MB each: more is told as "at least"


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """Which collection: the partition key's values, in the table or in an index."""

    table: str
    key: Item
    index: str | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class CollectionTotals:
    """What a collection holds; where it is not `whole` there is more than was read."""

    count: int
    bytes: int
    units: float  # of reading it all, not consistently: what this question took as well
    consistent_units: float
    entities: Mapping[str, int]  # how many of each, the unknown under ""
    whole: bool


async def count_collection(
    studio: Studio, params: CollectionRequest, layout: TableLayout, recogniser: Recogniser
) -> CollectionTotals:
    """Return the exact numbers of a collection; it is read for that, and paid."""
    target = layout.target(params.index)
    if not params.key.keys() >= set(target.hash):
        raise RequestRefused(
            "key-incomplete",
            "The partition key is not complete",
            f"{target} is keyed by {', '.join(target.hash)}, and only {', '.join(params.key) or 'nothing'} is given.",
            "Give every part of it.",
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
