"""Collections: all items with one partition key, counted by reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.expressions.nodes import And, Comparison, Literal, Path
from tavola.expressions.renderer import Renderer
from tavola.studio.browsing.ways import TableWays
from tavola.studio.problems import Refused
from tavola.studio.recognition import Recogniser
from tavola.studio.studio import Studio
from tavola.studio.types import Item
from tavola.values import item_size

PAGES_MAX = 32  # of 1 MB each: more is told as "at least"


@dataclass(frozen=True, slots=True)
class AskCollection:
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


async def total(
    studio: Studio, asked: AskCollection, ways: TableWays, recogniser: Recogniser
) -> CollectionTotals:
    """Return the exact numbers of a collection; it is read for that, and paid."""
    way = ways.way(asked.index)
    if not asked.key.keys() >= set(way.hash):
        raise Refused(
            "key-incomplete",
            "The partition key is not complete",
            f"{way} is keyed by {', '.join(way.hash)}, and only {', '.join(asked.key) or 'nothing'} is given.",
            "Give every part of it.",
        )
    renderer = Renderer()
    nodes = tuple(Comparison("=", Path((name,)), Literal(dict(asked.key[name]))) for name in way.hash)
    request: dict[str, Any] = {
        "TableName": asked.table,
        "KeyConditionExpression": renderer.condition(nodes[0] if len(nodes) == 1 else And(nodes)),
        "ExpressionAttributeValues": renderer.values,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    if way.index is not None:
        request["IndexName"] = way.index
    db = await studio.at(asked.as_of)
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
