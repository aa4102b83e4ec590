"""`tavola read` and `tavola history`: items as they are, as they were, and all they have been."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from tavola.cli.failures import reporting_errors
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.targets import (
    Keys,
    Target,
    TargetOptions,
    TargetRefused,
    parse_item_key,
    parse_json_object,
    parse_moment,
)

AsOf = Annotated[
    str | None,
    Option(
        "--as-of", help="The moment to read as of: 2026-11-16T10:00:00Z (UTC without a zone), or 10m for ago."
    ),
]


def read(
    table: Annotated[str, Argument(help="The table.")],
    key: Keys = None,
    query: Annotated[
        str | None, Option("--query", help="A key condition, such as 'pk = :p', with --values.")
    ] = None,
    scan: Annotated[
        bool, Option("--scan", help="Read all of it; what is done without --key and --query.")
    ] = False,
    index: Annotated[str | None, Option("--index", help="The index to query or scan.")] = None,
    kept: Annotated[str | None, Option("--filter", help="A condition that items shown meet.")] = None,
    values: Annotated[
        str | None, Option("--values", help='The placeholders\' values, as {":p": {"S": "a"}}.')
    ] = None,
    names: Annotated[
        str | None, Option("--names", help='The placeholders\' names, as {"#n": "name"}.')
    ] = None,
    reverse: Annotated[bool, Option("--reverse", help="Show a query's items from the last on.")] = False,
    limit: Annotated[int | None, Option("--limit", help="The most items to show.", min=1)] = None,
    as_of: AsOf = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Print items of TABLE as DynamoDB JSON, one a line; as of an earlier moment where recovery is on."""
    with reporting_errors(f"Cannot read {table}."):
        if sum((key is not None, query is not None, scan)) > 1:
            raise TargetRefused("--key, --query and --scan are three ways to read; give one")
        with at.open() as target:
            wanted = None if key is None else parse_item_key(target, table, key)
            source = target
            if as_of is not None:
                at_us = parse_moment(as_of)
                source = Target(target.connection.as_of(at_us / 1_000_000), None)
            if wanted is not None:
                item = source.call("GetItem", TableName=table, Key=wanted, ConsistentRead=True).get("Item")
                found = iter(()) if item is None else iter((item,))
            else:
                request = {
                    "TableName": table,
                    "IndexName": index,
                    "KeyConditionExpression": query,
                    "FilterExpression": kept,
                    "ExpressionAttributeValues": None
                    if values is None
                    else parse_json_object("--values", values),
                    "ExpressionAttributeNames": None
                    if names is None
                    else parse_json_object("--names", names),
                    "ScanIndexForward": False if reverse and query is not None else None,
                }
                found = _items(source, "Scan" if query is None else "Query", request)
            count = 0
            for item in found:
                say(_json(item))
                count += 1
                if count == limit:
                    break
    note(f"{count} item{'' if count == 1 else 's'}")


def history(
    table: Annotated[str, Argument(help="The table.")],
    key: Keys,
    as_json: Annotated[bool, Option("--json", help="Print each version as a line of JSON.")] = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Print every version of one item that recovery keeps, the earliest first, each with its time."""
    with reporting_errors(f"Cannot read the history of an item of {table}."):
        if not key:
            raise TargetRefused("An item has a history, a table has not; give its key with --key")
        with at.open() as target:
            for version in target.connection.history(table, parse_item_key(target, table, key)):
                since = None if version.since is None else version.since.isoformat().replace("+00:00", "Z")
                if as_json:
                    say_json(
                        "tavola.version-of-item/1",
                        {"since": since, "item": version.item, "expired": version.expired},
                    )
                    continue
                gone = "expired" if version.expired else "no item" if since is None else "deleted"
                shown = gone if version.item is None else _json(version.item)
                say(f"{since or 'before':27}  {shown}")


def _json(item: dict[str, Any]) -> str:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False)


def _items(target: Target, operation: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    while True:
        answer = target.call(operation, **request)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
