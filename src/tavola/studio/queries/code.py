"""Render a query or an item as programs in several languages, and a query as a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tavola.studio.queries.client_code import endpoint_url, item_code, query_code, setup_comment
from tavola.studio.queries.languages import (
    aws_cli_command,
    boto3_client_line,
    dynamodb_json,
    plain_json,
    python_literal,
    snake_case,
    typescript_program,
)
from tavola.studio.queries.planner import ItemQuery, QueryPlan
from tavola.studio.studio import TablesLocation
from tavola.studio.types import Item
from tavola.values import item_size

_EXAMPLES_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class QueryCode:
    """One question in several languages; `tavola` is None where no access pattern of the design asks it."""

    boto3: str
    cli: str
    typescript: str
    tavola: str | None
    test: str


@dataclass(frozen=True, slots=True)
class ItemCode:
    """One item in several languages; plain JSON keeps every digit and loses what tells sets and binary apart."""

    json: str
    dynamodb_json: str
    boto3: str
    cli: str
    typescript: str
    tavola: str | None  # how it is got; None: no entity of the design has such a key


def render_query_code(
    question: ItemQuery,
    planned: QueryPlan,
    described: Mapping[str, Any],
    examples: Sequence[Item],
    where: TablesLocation,
) -> QueryCode:
    """Return a planned question as code; `examples` are items that it finds, for the test."""
    operation, request = planned.route.operation, planned.request
    endpoint = endpoint_url(where)
    return QueryCode(
        _boto3_program(
            operation,
            request,
            setup_comment(where) + _filter_comment(question, planned),
            where.region,
            endpoint,
        ),
        aws_cli_command(operation, request, region=where.region, endpoint=endpoint),
        setup_comment(where, "//")
        + typescript_program(operation, request, region=where.region, endpoint=endpoint),
        query_code(question, planned, where),
        _test_program(planned, described, _limit_examples(examples), where.region),
    )


def render_item_code(table: str, key: Item, item: Item, where: TablesLocation) -> ItemCode:
    """Return an item as code that stores it, and as text."""
    request = {"TableName": table, "Item": item}
    endpoint = endpoint_url(where)
    return ItemCode(
        plain_json(item) + "\n",
        dynamodb_json(item) + "\n",
        f"import boto3\n\n{setup_comment(where)}{boto3_client_line(where.region, endpoint)}"
        f"client.put_item(TableName={table!r}, Item={python_literal(item)})\n",
        aws_cli_command("PutItem", request, region=where.region, endpoint=endpoint),
        setup_comment(where, "//")
        + typescript_program("PutItem", request, region=where.region, endpoint=endpoint),
        item_code(table, key, where),
    )


def _filter_comment(question: ItemQuery, planned: QueryPlan) -> str:
    kept = [str(question.conditions[at]) for at in planned.route.numbers("studio")]
    if not kept:
        return ""
    return f"# DynamoDB filters no Query by a key attribute; test what comes yourself: {' and '.join(kept)}\n"


def _boto3_program(
    operation: str, request: Mapping[str, Any], remark: str, region: str, endpoint: str | None
) -> str:
    head = (
        f"import boto3\n\n{remark}{boto3_client_line(region, endpoint)}request = {python_literal(request)}\n"
    )
    if operation == "GetItem":
        return f'{head}item = client.get_item(**request).get("Item")\nprint(item)\n'
    return (
        f"{head}items = []\nwhile True:\n    page = client.{snake_case(operation)}(**request)\n"
        '    items += page["Items"]\n    if "LastEvaluatedKey" not in page:\n        break\n'
        '    request["ExclusiveStartKey"] = page["LastEvaluatedKey"]\nprint(len(items))\n'
    )


def _limit_examples(examples: Sequence[Item]) -> list[Item]:
    """Return the first examples that a test can hold without being a page of its own."""
    found: list[Item] = []
    left = _EXAMPLES_BYTES_MAX
    for item in examples:
        left -= item_size(item)  # type: ignore[arg-type]  # what came is an item
        if left < 0:
            break
        found.append(item)
    return found


def _test_program(planned: QueryPlan, described: Mapping[str, Any], items: list[Item], region: str) -> str:
    operation = planned.route.operation
    name = (
        f"test_{snake_case(operation)}_of_{_identifier(planned.route.target.index or described['TableName'])}"
    )
    found = (
        '[client.get_item(**REQUEST)["Item"]]'
        if operation == "GetItem"
        else f'client.{snake_case(operation)}(**REQUEST)["Items"]'
    )
    if operation == "GetItem" and not items:
        found = '[each for each in [client.get_item(**REQUEST).get("Item")] if each]'
    return (
        f"import boto3\n\nimport tavola\n\nTABLE = {python_literal(create_table_request(described))}\n"
        f"ITEMS = {python_literal(items)}\nREQUEST = {python_literal(planned.request)}\n\n\n"
        f"def {name}():\n    {_docstring(planned.sentence)}\n"
        f"    with tavola.mock():\n        {boto3_client_line(region, None)}        client.create_table(**TABLE)\n"
        '        for item in ITEMS:\n            client.put_item(TableName=TABLE["TableName"], Item=item)\n\n'
        f"        items = {found}\n\n        assert items == ITEMS\n"
    )


def _docstring(sentence: str) -> str:
    """Return a sentence as a docstring, whatever quotes and backslashes stand in it."""
    told = sentence.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"""{told}"""'


def _identifier(text: str) -> str:
    return "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in text).lower()


def create_table_request(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CreateTable that makes a table with the same keys and indexes, billed on demand."""
    request: dict[str, Any] = {
        "TableName": described["TableName"],
        "KeySchema": described["KeySchema"],
        "AttributeDefinitions": described["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for members in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if described.get(members):
            request[members] = [
                {name: each[name] for name in ("IndexName", "KeySchema", "Projection")}
                for each in described[members]
            ]
    return request
