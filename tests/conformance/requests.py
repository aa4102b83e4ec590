"""Helpers for requests: tables in one line, refusals as values, all pages of a read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]
BATCH_MAX = 25
TRIES_MAX = 5_000
ENVELOPE = "1 validation error detected: "
OOM = "One or more parameter values were invalid: "


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the SDK raises it."""

    code: str
    message: str
    response: dict[str, Any]

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """The reasons of a cancelled transaction, in its order."""
        return list(self.response["CancellationReasons"])

    @property
    def reason_codes(self) -> list[str]:
        """The codes of those reasons."""
        return [reason["Code"] for reason in self.reasons]


def refused(call: Callable[..., Any], **request: Any) -> Refusal:
    """Return the error that a call is refused with; a success is a failure of the test."""
    try:
        answer = call(**request)
    except ClientError as error:
        response: Any = error.response
        return Refusal(response["Error"]["Code"], response["Error"].get("Message", ""), response)
    raise AssertionError(f"{request} was not refused: {answer}")


def schema(keys: str) -> list[dict[str, str]]:
    """Return a key schema from words: `pk`, `pk sk`, and `a b / c d` for a key of several attributes.

    A word may carry a type, `sk:N`; without one it is S.
    """
    hashes, _, ranges = (
        keys.partition("/") if "/" in keys else (keys.split(maxsplit=1)[0], "", keys.partition(" ")[2])
    )
    return [
        {"AttributeName": word.partition(":")[0], "KeyType": kind}
        for words, kind in ((hashes, "HASH"), (ranges, "RANGE"))
        for word in words.split()
    ]


def definitions(*keys: str) -> list[dict[str, str]]:
    """Return the attribute definitions of schemas in words, each name once."""
    words = [word for text in keys for word in text.replace("/", " ").split()]
    types = {word.partition(":")[0]: word.partition(":")[2] or "S" for word in words}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def projection(words: str) -> dict[str, Any]:
    """Return a projection from `ALL`, `KEYS_ONLY`, or the names that it includes."""
    if words in ("ALL", "KEYS_ONLY"):
        return {"ProjectionType": words}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": words.split()}


def index(name: str, keys: str) -> dict[str, Any]:
    """Return an index from `keys`, or from `keys | projection`; without one it projects everything."""
    words, _, projected = keys.partition("|")
    return {
        "IndexName": name,
        "KeySchema": schema(words),
        "Projection": projection(projected.strip() or "ALL"),
    }


def table_request(
    name: str,
    keys: str,
    gsi: Mapping[str, str] | None = None,
    lsi: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a CreateTable request for an on-demand table, described in words."""
    indexes = [words.partition("|")[0] for words in (*(gsi or {}).values(), *(lsi or {}).values())]
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": schema(keys),
        "AttributeDefinitions": definitions(keys, *indexes),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if gsi:
        request["GlobalSecondaryIndexes"] = [index(n, words) for n, words in gsi.items()]
    if lsi:
        request["LocalSecondaryIndexes"] = [index(n, words) for n, words in lsi.items()]
    return {**request, **more}


def s(text: str) -> dict[str, Any]:
    """Return a string value."""
    return {"S": text}


def n(number: int | str) -> dict[str, Any]:
    """Return a number value."""
    return {"N": str(number)}


def item(**attributes: Any) -> Item:
    """Return an item from Python's strings and integers; a dict is a value already."""
    return {
        name: s(value) if isinstance(value, str) else n(value) if isinstance(value, int) else value
        for name, value in attributes.items()
    }


def put(client: DynamoDBClient, table: str, *items: Item) -> None:
    """Put one item, or several in batches."""
    if len(items) == 1:
        client.put_item(TableName=table, Item=items[0])
        return
    for start in range(0, len(items), BATCH_MAX):
        writes: Any = [{"PutRequest": {"Item": each}} for each in items[start : start + BATCH_MAX]]
        answer = client.batch_write_item(RequestItems={table: writes})
        assert not answer["UnprocessedItems"], "a batch that was not wholly written"


def get(client: DynamoDBClient, table: str, **key: Any) -> Item | None:
    """Return the item of a key, None if it is missing."""
    return client.get_item(TableName=table, Key=item(**key), ConsistentRead=True).get("Item")


def pages(read: Callable[..., Any], **request: Any) -> list[dict[str, Any]]:
    """Return every page of a query or scan, following the last key."""
    found = [read(**request)]
    while "LastEvaluatedKey" in found[-1]:
        found.append(read(**{**request, "ExclusiveStartKey": found[-1]["LastEvaluatedKey"]}))
        assert len(found) < 10_000, "a scan that does not end"
    return found


def items_of(read: Callable[..., Any], **request: Any) -> list[Item]:
    """Return the items of every page, in order."""
    return [each for page in pages(read, **request) for each in page["Items"]]


def column(items: list[Item], name: str) -> list[str]:
    """Return one attribute of each item as text."""
    return [next(iter(each[name].values())) for each in items]


def settle(client: DynamoDBClient, table: str) -> Any:
    """Return the description once the table and each of its indexes are ACTIVE."""
    for _ in range(TRIES_MAX):
        found = client.describe_table(TableName=table)["Table"]
        states = [
            found["TableStatus"],
            *(each["IndexStatus"] for each in found.get("GlobalSecondaryIndexes", [])),
        ]
        if set(states) == {"ACTIVE"}:
            return found
    raise AssertionError(f"{table} does not settle: {states}")
