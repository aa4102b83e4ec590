"""The workload: one table, one kind of item, and the operations that are timed on it.

The item is a support ticket of about 1 KB with nested parts; two global indexes project ALL of it.
Each write carries a number never sent before, because a store that sees identical bytes may skip the
work. Items of the lower half keep their index keys; the upper half is for writes that move them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.template import SEQUENCE_BASE, Draw, Template
from benchmarks.wire import Answer

TABLE: Final = "tickets"
GROUP_ITEMS: Final = 50  # items in one partition of an index, whatever the table's size
QUERY_ITEMS: Final = 20
BATCH_ITEMS: Final = 25
SCAN_BYTES_MIN: Final = 900_000  # an answer of a 1 MB page holds at least this much JSON

Call = Callable[[str, Mapping[str, Any]], Answer]
Check = Callable[[Call, Mapping[str, Any], Answer], str | None]


def create_table_request() -> dict[str, Any]:
    """CreateTable for the table of the load."""
    names = ("pk", "sk", "gsi1pk", "gsi1sk", "gsi2pk", "gsi2sk")
    return {
        "TableName": TABLE,
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "KeySchema": _key_schema("pk", "sk"),
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index,
                "KeySchema": _key_schema(f"{index}pk", f"{index}sk"),
                "Projection": {"ProjectionType": "ALL"},
            }
            for index in ("gsi1", "gsi2")
        ],
    }


def _key_schema(hash_name: str, range_name: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": hash_name, "KeyType": "HASH"},
        {"AttributeName": range_name, "KeyType": "RANGE"},
    ]


def item_text(
    offset: int, *, pk: str = "TICKET#<item+{k}>", moves: bool = False, fresh: bool = False
) -> dict[str, Any]:
    """The item in DynamoDB JSON with marks for its numbers.

    `moves`: its index keys are drawn anew; `fresh`: it is an item not stored before.
    """
    a, b = ("drawn_a", "drawn_b") if moves or fresh else ("group_a", "group_b")
    sort = "sequence" if moves or fresh else "item"
    item = {
        "pk": {"S": pk},
        "sk": {"S": "TICKET"},
        "gsi1pk": {"S": f"STATUS#<{a}+{{k}}>"},
        "gsi1sk": {"S": f"2026-11-01T09:30:00Z#<{sort}+{{k}}>"},
        "gsi2pk": {"S": f"AGENT#<{b}+{{k}}>"},
        "gsi2sk": {"S": f"2026-11-01T09:45:00Z#<{sort}+{{k}}>"},
        "revision": {"N": "<sequence+{k}>"},
        "views": {"N": "17"},
        "title": {"S": "Export of the monthly report stops at page forty"},
        "open": {"BOOL": True},
        "parent": {"NULL": True},
        "labels": {"SS": ["billing", "export", "regression"]},
        "scores": {"L": [{"N": "4.5"}, {"N": "3"}, {"N": "12.75"}]},
        "customer": {
            "M": {
                "name": {"S": "Amelie Brandt"},
                "email": {"S": "amelie.brandt@example.com"},
                "address": {
                    "M": {
                        "street": {"S": "Kastanienallee 14"},
                        "city": {"S": "Berlin"},
                        "post_code": {"S": "10435"},
                    }
                },
            }
        },
        "events": {
            "L": [_event("opened", "customer"), _event("assigned", "desk"), _event("answered", "agent")]
        },
        "body": {"S": "The report opens and turns its pages until forty, then nothing more comes. " * 6},
    }
    marked: dict[str, Any] = json.loads(json.dumps(item).replace("{k}", str(offset)))
    return marked


def _event(kind: str, actor: str) -> dict[str, Any]:
    return {"M": {"kind": {"S": kind}, "actor": {"S": actor}, "at": {"S": "2026-11-01T09:30:00Z"}}}


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that is timed: how it is asked, what it may touch, and how its answer is judged."""

    name: str
    title: str
    target: str
    body: Template
    writes: bool
    part: str  # "lower" or "upper" half of the items, or "all"
    check: Check
    items: int = 1  # items in one request

    def draw(self, item_count: int, *, first_sequence: int = 0, seed: int = 1) -> Draw:
        """The numbers of this operation's load on a table of that many items."""
        half = item_count // 2
        low, span = {"all": (0, item_count), "lower": (0, half), "upper": (half, half)}[self.part]
        return Draw(
            low=low,
            span=span,
            groups=group_count(item_count),
            group_items=GROUP_ITEMS,
            stride=max(1, span // self.items),
            first_sequence=first_sequence,
            seed=seed,
        )


def group_count(item_count: int) -> int:
    """Partitions in each index: their size stays, their number grows with the table."""
    return max(1, item_count // GROUP_ITEMS)


def seed_body() -> Template:
    """BatchWriteItem that fills the table, 25 items at a time."""
    return _template(_batch())


def seed_draw(item_count: int) -> Draw:
    """Every item of the table, in order."""
    return Draw(low=0, span=item_count, groups=group_count(item_count), group_items=GROUP_ITEMS)


def delete_request(sequences: range) -> dict[str, Any]:
    """BatchWriteItem that takes away items which `put-new` has added, known by their sequence numbers."""
    keys = [{"pk": {"S": f"NEW#{SEQUENCE_BASE + sequence}"}, "sk": {"S": "TICKET"}} for sequence in sequences]
    return {"RequestItems": {TABLE: [{"DeleteRequest": {"Key": key}} for key in keys]}}


def _batch() -> dict[str, Any]:
    puts = [{"PutRequest": {"Item": item_text(k)}} for k in range(BATCH_ITEMS)]
    return {"RequestItems": {TABLE: puts}}


def _template(request: Mapping[str, Any]) -> Template:
    return Template.parse(json.dumps(request, separators=(",", ":")))


def _key(offset: int) -> dict[str, Any]:
    return {"pk": {"S": f"TICKET#<item+{offset}>"}, "sk": {"S": "TICKET"}}


def _put(**how: Any) -> dict[str, Any]:
    return {"TableName": TABLE, "Item": item_text(0, **how)}


def _add(offset: int) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "Key": _key(offset),
        "UpdateExpression": "ADD #v :n",
        "ExpressionAttributeNames": {"#v": "views"},
        "ExpressionAttributeValues": {":n": {"N": "<sequence+0>"}},
    }


def _transaction() -> dict[str, Any]:
    puts = [{"Put": {"TableName": TABLE, "Item": item_text(k)}} for k in (0, 1)]
    return {"TransactItems": [*puts, {"Update": _add(2)}]}


# How answers are judged, before anything is timed and once more afterwards.


def _check_get(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    item = answer.body.get("Item", {})
    if item.get("pk") != request["Key"]["pk"] or len(item) != len(item_text(0)):
        return "GetItem gave another item than asked for"
    return None


def _check_query(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    items = answer.body.get("Items", [])
    asked = request["ExpressionAttributeValues"][":p"]
    if len(items) != QUERY_ITEMS or any(item.get("gsi1pk") != asked for item in items):
        return f"Query gave {len(items)} items, or some of another partition"
    order = [item["gsi1sk"]["S"] for item in items]
    return None if order == sorted(order) else "Query gave its items out of order"


def _check_scan(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    body = answer.body
    if len(answer.raw) < SCAN_BYTES_MIN or "LastEvaluatedKey" not in body:
        return f"Scan gave no full page: {len(answer.raw)} bytes"
    return None if body.get("Count") == len(body["Items"]) else "Scan counted wrongly"


def _stored(call: Call, key: Mapping[str, Any]) -> dict[str, Any]:
    asked = {"TableName": TABLE, "Key": {name: key[name] for name in ("pk", "sk")}, "ConsistentRead": True}
    item: dict[str, Any] = call("GetItem", asked).body.get("Item", {})
    return item


def comparable(value: Any) -> Any:
    """A value in a form in which equal items are equal: sets have no order."""
    if isinstance(value, dict):
        return {k: sorted(v) if k in ("SS", "NS", "BS") else comparable(v) for k, v in value.items()}
    return [comparable(member) for member in value] if isinstance(value, list) else value


def _check_put(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    item = request["Item"]
    if comparable(_stored(call, item)) != comparable(item):
        return "the item put is not the item stored"
    found = call(
        "Query",
        {
            "TableName": TABLE,
            "IndexName": "gsi1",
            "KeyConditionExpression": "gsi1pk = :p AND gsi1sk = :s",
            "ExpressionAttributeValues": {":p": item["gsi1pk"], ":s": item["gsi1sk"]},
        },
    ).body.get("Items", [])
    if not any(entry["pk"] == item["pk"] for entry in found):
        return "the item put is not found by its index"
    return None


def _check_update(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    before = int(_stored(call, request["Key"]).get("views", {"N": "0"})["N"])
    again = call("UpdateItem", request)
    after = int(_stored(call, request["Key"]).get("views", {"N": "0"})["N"])
    step = int(request["ExpressionAttributeValues"][":n"]["N"])
    return None if again.status == 200 and after - before == step else "ADD did not add"


def _check_transaction(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    for action in request["TransactItems"]:
        item = action["Put"]["Item"] if "Put" in action else None
        if item is not None and comparable(_stored(call, item)) != comparable(item):
            return "an item put in the transaction is not the item stored"
    return None


def _check_batch(call: Call, request: Mapping[str, Any], answer: Answer) -> str | None:
    if answer.body.get("UnprocessedItems"):
        return "the batch left items unprocessed"
    for put in (request["RequestItems"][TABLE][0], request["RequestItems"][TABLE][-1]):
        item = put["PutRequest"]["Item"]
        if comparable(_stored(call, item)) != comparable(item):
            return "an item put in the batch is not the item stored"
    return None


_GET = {"TableName": TABLE, "Key": _key(0)}
_QUERY = {
    "TableName": TABLE,
    "IndexName": "gsi1",
    "KeyConditionExpression": "gsi1pk = :p",
    "ExpressionAttributeValues": {":p": {"S": "STATUS#<group_a+0>"}},
    "Limit": QUERY_ITEMS,
}
_NEW = "NEW#<sequence+0>"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("get", "GetItem", "GetItem", _template(_GET), False, "all", _check_get),
    Operation("query", "Query, 20 of a GSI", "Query", _template(_QUERY), False, "all", _check_query),
    Operation("scan", "Scan, 1 MB page", "Scan", _template({"TableName": TABLE}), False, "all", _check_scan),
    Operation("put", "PutItem, one attribute", "PutItem", _template(_put()), True, "lower", _check_put),
    Operation(
        "put-moved",
        "PutItem, both index keys",
        "PutItem",
        _template(_put(moves=True)),
        True,
        "upper",
        _check_put,
    ),
    Operation(
        "put-new",
        "PutItem, new item",
        "PutItem",
        _template(_put(pk=_NEW, fresh=True)),
        True,
        "all",
        _check_put,
    ),
    Operation("update", "UpdateItem ADD", "UpdateItem", _template(_add(0)), True, "lower", _check_update),
    Operation(
        "transact",
        "TransactWriteItems, 3",
        "TransactWriteItems",
        _template(_transaction()),
        True,
        "lower",
        _check_transaction,
        items=3,
    ),
    Operation(
        "batch",
        "BatchWriteItem, 25",
        "BatchWriteItem",
        _template(_batch()),
        True,
        "lower",
        _check_batch,
        items=BATCH_ITEMS,
    ),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
