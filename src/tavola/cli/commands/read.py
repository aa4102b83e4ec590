"""`tavola read` and `tavola history`: items now, at an earlier time, and in all their versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.output import count_noun, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.targets import (
    KEY_SPEC,
    TIME_FORMS_HELP,
    Target,
    TargetOptions,
    parse_attribute_values,
    parse_item_key,
    parse_json_object,
    parse_moment,
)


def read(
    table: Annotated[str, Argument(help="Name of the table.")],
    key: Annotated[list[str] | None, KEY_SPEC] = None,
    query: Annotated[
        str | None,
        Option(
            "--query", metavar="CONDITION", help="Key condition expression, such as 'pk = :p'; see --values."
        ),
    ] = None,
    scan: Annotated[
        bool, Option("--scan", help="Scan the table; the default without --key and --query.")
    ] = False,
    index: Annotated[str | None, Option("--index", metavar="NAME", help="Index to query or scan.")] = None,
    filter_: Annotated[
        str | None, Option("--filter", metavar="CONDITION", help="Filter expression for the items.")
    ] = None,
    values: Annotated[
        str | None,
        Option("--values", metavar="JSON", help='Expression attribute values, such as {":p": {"S": "a"}}.'),
    ] = None,
    names: Annotated[
        str | None,
        Option("--names", metavar="JSON", help='Expression attribute names, such as {"#n": "name"}.'),
    ] = None,
    reverse: Annotated[bool, Option("--reverse", help="Query in descending order of the sort key.")] = False,
    limit: Annotated[int | None, Option("--limit", help="Maximum number of items to print.", min=1)] = None,
    as_of: Annotated[
        str | None,
        Option("--as-of", metavar="TIME", help=f"Read the table as of {TIME_FORMS_HELP}."),
    ] = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Read items of a table, now or at an earlier time.

    Prints one item per line as DynamoDB JSON. --as-of needs point-in-time recovery (`tavola backup enable`).
    """
    with reporting_errors(f"Cannot read {table}."):
        if sum((key is not None, query is not None, scan)) > 1:
            raise CommandError("--key, --query and --scan cannot be combined.", "Use one of them.")
        with at.open() as target:
            item_key = None if key is None else parse_item_key(target, table, key)
            source = target
            if as_of is not None:
                source = Target(target.connection.as_of(parse_moment(as_of) / 1_000_000), None)
            if item_key is not None:
                item = source.call("GetItem", TableName=table, Key=item_key, ConsistentRead=True).get("Item")
                items = iter(()) if item is None else iter((item,))
            else:
                request = {
                    "TableName": table,
                    "IndexName": index,
                    "KeyConditionExpression": query,
                    "FilterExpression": filter_,
                    "ExpressionAttributeValues": values
                    and parse_attribute_values("--values", values, '{":p": {"S": "a"}}'),
                    "ExpressionAttributeNames": names
                    and parse_json_object("--names", names, '{"#n": "name"}'),
                    "ScanIndexForward": False if reverse and query is not None else None,
                }
                items = _read_pages(source, "Scan" if query is None else "Query", request)
            count = 0
            for item in items:
                say(_compact_json(item))
                count += 1
                if count == limit:
                    break
    note("No item has this key." if key is not None and not count else count_noun(count, "item"))


def history(
    table: Annotated[str, Argument(help="Name of the table.")],
    key: Annotated[list[str], KEY_SPEC],
    as_json: Annotated[bool, Option("--json", help="Print each version as a line of JSON.")] = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Show all recorded versions of an item, oldest first.

    Needs point-in-time recovery (`tavola backup enable`).
    """
    with reporting_errors(f"Cannot read the history of an item of {table}."):
        with at.open() as target:
            for version in target.connection.history(table, parse_item_key(target, table, key)):
                since = None if version.since is None else version.since.isoformat().replace("+00:00", "Z")
                if as_json:
                    members = {"since": since, "item": version.item, "expired": version.expired}
                    say_json("tavola.version-of-item/1", members)
                    continue
                absence = "expired" if version.expired else "no item" if since is None else "deleted"
                say(
                    f"{since or 'before recording started':27}  {absence if version.item is None else _compact_json(version.item)}"
                )


def _compact_json(item: dict[str, Any]) -> str:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False)


def _read_pages(target: Target, operation: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    while True:
        page = target.call(operation, **request)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
