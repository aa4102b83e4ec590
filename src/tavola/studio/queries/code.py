"""Render a query or an item as programs in several languages, and a query as a test."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tavola.studio.queries.client_code import endpoint_url, item_code, query_code, setup_comment
from tavola.studio.queries.planner import ItemQuery, QueryPlan
from tavola.studio.studio import TablesLocation
from tavola.studio.types import AttributeValue, Item
from tavola.values import item_size

_WIDTH = 100
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BUFFER = "\x00buffer:"


def python_literal(value: Any, *, indent: int = 0) -> str:
    """Return DynamoDB JSON as Python has it for boto3's client: binary as bytes, a line where it fits on one."""
    return _python(_with_bytes(value), indent, _WIDTH)


def _python(value: Any, margin: int, room: int) -> str:
    if not isinstance(value, dict | list):
        return _quoted(value) if isinstance(value, str) else repr(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    within = margin + 4
    parts = (
        [f"{_quoted(name)}: {_python(each, within, room - len(name) - 6)}" for name, each in value.items()]
        if isinstance(value, dict)
        else [_python(each, within, room) for each in value]
    )
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) + margin <= room and "\n" not in line:
        return line
    lines = "".join(f"{' ' * within}{part},\n" for part in parts)
    return f"{opening}\n{lines}{' ' * margin}{closing}"


def _quoted(text: str) -> str:
    """Return text as Python spells it, in double quotes where that needs no escape."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in text and "\\'" not in literal else literal


def plain_json(item: Item) -> str:
    """Return an item as plain JSON; every digit of a number is kept, sets become arrays, binary base64 text."""
    return _plain({"M": item}, "")


def dynamodb_json(value: Any) -> str:
    """Return DynamoDB JSON as text."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def aws_cli_command(operation: str, request: Mapping[str, Any], *, region: str, endpoint: str | None) -> str:
    """Return a request as a command of the AWS CLI, an option on each line."""
    words = [f"aws dynamodb {_kebab(operation)}"]
    for name, value in request.items():
        if value is True or value is False:
            words.append(f"--{_flag(name, value)}")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            words.append(f"--{_kebab(name)} {shlex.quote(str(text))}")
    words.append(f"--region {shlex.quote(region)}")
    if endpoint is not None:
        words.append(f"--endpoint-url {shlex.quote(endpoint)}")
    return " \\\n  ".join(words) + "\n"


def typescript_program(
    operation: str, request: Mapping[str, Any], *, region: str, endpoint: str | None
) -> str:
    """Return a request as TypeScript for AWS's SDK of JavaScript, version 3."""
    settings = {"region": region} | ({} if endpoint is None else {"endpoint": endpoint})
    body = json.dumps(_with_buffers(request), ensure_ascii=False, indent=2)
    body = re.sub(
        r'"\\u0000buffer:([A-Za-z0-9+/=]*)"', lambda found: f'Buffer.from("{found[1]}", "base64")', body
    )
    return (
        f'import {{ DynamoDBClient, {operation}Command }} from "@aws-sdk/client-dynamodb";\n\n'
        f"const client = new DynamoDBClient({json.dumps(settings)});\n"
        f"const answer = await client.send(new {operation}Command({body}));\n"
    )


def boto3_client_line(region: str, endpoint: str | None) -> str:
    """Return the Python line that makes boto3's client."""
    where = f'"dynamodb", region_name="{region}"'
    return f"client = boto3.client({where}{'' if endpoint is None else f', endpoint_url={endpoint!r}'})\n"


def snake_case(operation: str) -> str:
    """Return an operation as boto3 calls it."""
    return _CAPITAL.sub("_", operation).lower()


def _kebab(name: str) -> str:
    return _CAPITAL.sub("-", name).lower()


def _flag(name: str, value: bool) -> str:
    return _kebab(name) if value else f"no-{_kebab(name)}"


def _with_bytes(value: Any) -> Any:
    """Return DynamoDB JSON with bytes in place of base64; a B and a BS are told by their tags."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            tag, content = next(iter(value.items()))
            if tag == "B" and isinstance(content, str):
                return {"B": b64decode(content)}
            if tag == "BS" and isinstance(content, Sequence):
                return {"BS": [b64decode(each) for each in content]}
        return {name: _with_bytes(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_bytes(each) for each in value]
    return value


def _with_buffers(value: Any) -> Any:
    """Return DynamoDB JSON with a mark where TypeScript makes a buffer."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            tag, content = next(iter(value.items()))
            if tag == "B" and isinstance(content, str):
                return {"B": _BUFFER + content}
            if tag == "BS" and isinstance(content, Sequence):
                return {"BS": [_BUFFER + each for each in content]}
        return {name: _with_buffers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_buffers(each) for each in value]
    return value


def _plain(value: AttributeValue, margin: str) -> str:
    tag, content = next(iter(value.items()))
    within = margin + "  "
    match tag:
        case "N":
            return str(content)
        case "NULL":
            return "null"
        case "M":
            parts = [
                f"{json.dumps(name, ensure_ascii=False)}: {_plain(each, within)}"
                for name, each in content.items()
            ]
            return _bracketed("{", parts, "}", margin)
        case "L":
            return _bracketed("[", [_plain(each, within) for each in content], "]", margin)
        case "SS" | "NS" | "BS":
            return _bracketed("[", [_plain({tag[0]: each}, within) for each in content], "]", margin)
        case _:
            return json.dumps(content, ensure_ascii=False)


def _bracketed(opening: str, parts: Sequence[str], closing: str, margin: str) -> str:
    if not parts:
        return opening + closing
    lines = ",\n".join(f"{margin}  {part}" for part in parts)
    return f"{opening}\n{lines}\n{margin}{closing}"


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
    conditions = [str(question.conditions[at]) for at in planned.route.numbers("studio")]
    if not conditions:
        return ""
    return f"# DynamoDB filters no Query by a key attribute; test what comes yourself: {' and '.join(conditions)}\n"


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
    chosen: list[Item] = []
    room = _EXAMPLES_BYTES_MAX
    for item in examples:
        room -= item_size(item)  # type: ignore[arg-type]  # what came is an item
        if room < 0:
            break
        chosen.append(item)
    return chosen


def _test_program(planned: QueryPlan, described: Mapping[str, Any], items: list[Item], region: str) -> str:
    operation = planned.route.operation
    name = (
        f"test_{snake_case(operation)}_of_{_identifier(planned.route.target.index or described['TableName'])}"
    )
    read_items = (
        '[client.get_item(**REQUEST)["Item"]]'
        if operation == "GetItem"
        else f'client.{snake_case(operation)}(**REQUEST)["Items"]'
    )
    if operation == "GetItem" and not items:
        read_items = '[each for each in [client.get_item(**REQUEST).get("Item")] if each]'
    return (
        f"import boto3\n\nimport tavola\n\nTABLE = {python_literal(create_table_request(described))}\n"
        f"ITEMS = {python_literal(items)}\nREQUEST = {python_literal(planned.request)}\n\n\n"
        f"def {name}():\n    {_docstring(planned.sentence)}\n"
        f"    with tavola.mock():\n        {boto3_client_line(region, None)}        client.create_table(**TABLE)\n"
        '        for item in ITEMS:\n            client.put_item(TableName=TABLE["TableName"], Item=item)\n\n'
        f"        items = {read_items}\n\n        assert items == ITEMS\n"
    )


def _docstring(sentence: str) -> str:
    """Return a sentence as a docstring, whatever quotes and backslashes stand in it."""
    escaped = sentence.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"""{escaped}"""'


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
