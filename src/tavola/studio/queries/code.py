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
    """Return DynamoDB JSON as a Python literal for boto3's client: binary as bytes, on one line if it fits."""
    return _python(_with_bytes(value), indent, _WIDTH)


def _python(value: Any, margin: int, width: int) -> str:
    if not isinstance(value, dict | list):
        return _quote(value) if isinstance(value, str) else repr(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    within = margin + 4
    parts = (
        [
            f"{_quote(name)}: {_python(member, within, width - len(name) - 6)}"
            for name, member in value.items()
        ]
        if isinstance(value, dict)
        else [_python(element, within, width) for element in value]
    )
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) + margin <= width and "\n" not in line:
        return line
    lines = "".join(f"{' ' * within}{part},\n" for part in parts)
    return f"{opening}\n{lines}{' ' * margin}{closing}"


def _quote(text: str) -> str:
    """Return text as a Python literal, in double quotes if that needs no escape."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in text and "\\'" not in literal else literal


def plain_json(item: Item) -> str:
    """Return an item as plain JSON with exact numbers; sets become arrays, binary becomes base64."""
    return _plain({"M": item}, "")


def dynamodb_json(value: Any) -> str:
    """Return DynamoDB JSON as text."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def aws_cli_command(operation: str, request: Mapping[str, Any], *, region: str, endpoint: str | None) -> str:
    """Return a request as an AWS CLI command, one option per line."""
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
    """Return a request as TypeScript for the AWS SDK for JavaScript v3."""
    settings = {"region": region} | ({} if endpoint is None else {"endpoint": endpoint})
    body = json.dumps(_with_buffers(request), ensure_ascii=False, indent=2)
    body = re.sub(
        r'"\\u0000buffer:([A-Za-z0-9+/=]*)"', lambda match: f'Buffer.from("{match[1]}", "base64")', body
    )
    return (
        f'import {{ DynamoDBClient, {operation}Command }} from "@aws-sdk/client-dynamodb";\n\n'
        f"const client = new DynamoDBClient({json.dumps(settings)});\n"
        f"const answer = await client.send(new {operation}Command({body}));\n"
    )


def boto3_client_line(region: str, endpoint: str | None) -> str:
    """Return the Python line that creates boto3's client."""
    where = f'"dynamodb", region_name="{region}"'
    return f"client = boto3.client({where}{'' if endpoint is None else f', endpoint_url={endpoint!r}'})\n"


def snake_case(operation: str) -> str:
    """Return the name of an operation in boto3."""
    return _CAPITAL.sub("_", operation).lower()


def _kebab(name: str) -> str:
    return _CAPITAL.sub("-", name).lower()


def _flag(name: str, value: bool) -> str:
    return _kebab(name) if value else f"no-{_kebab(name)}"


def _with_bytes(value: Any) -> Any:
    """Return DynamoDB JSON with bytes instead of base64 in B and BS values."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            tag, content = next(iter(value.items()))
            if tag == "B" and isinstance(content, str):
                return {"B": b64decode(content)}
            if tag == "BS" and isinstance(content, Sequence):
                return {"BS": [b64decode(element) for element in content]}
        return {name: _with_bytes(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_with_bytes(element) for element in value]
    return value


def _with_buffers(value: Any) -> Any:
    """Return DynamoDB JSON with placeholders where TypeScript creates a buffer."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            tag, content = next(iter(value.items()))
            if tag == "B" and isinstance(content, str):
                return {"B": _BUFFER + content}
            if tag == "BS" and isinstance(content, Sequence):
                return {"BS": [_BUFFER + element for element in content]}
        return {name: _with_buffers(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_with_buffers(element) for element in value]
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
                f"{json.dumps(name, ensure_ascii=False)}: {_plain(member, within)}"
                for name, member in content.items()
            ]
            return _enclose("{", parts, "}", margin)
        case "L":
            return _enclose("[", [_plain(element, within) for element in content], "]", margin)
        case "SS" | "NS" | "BS":
            return _enclose("[", [_plain({tag[0]: element}, within) for element in content], "]", margin)
        case _:
            return json.dumps(content, ensure_ascii=False)


def _enclose(opening: str, parts: Sequence[str], closing: str, margin: str) -> str:
    if not parts:
        return opening + closing
    lines = ",\n".join(f"{margin}  {part}" for part in parts)
    return f"{opening}\n{lines}\n{margin}{closing}"


_EXAMPLES_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class QueryCode:
    """One query in several languages; `tavola` is None if no access pattern expresses it."""

    boto3: str
    cli: str
    typescript: str
    tavola: str | None
    test: str


@dataclass(frozen=True, slots=True)
class ItemCode:
    """One item in several languages; plain JSON keeps every digit but not the types of sets and binary."""

    json: str
    dynamodb_json: str
    boto3: str
    cli: str
    typescript: str
    tavola: str | None  # a program that gets it; None: no entity of the design has such a key


def render_query_code(
    question: ItemQuery,
    planned: QueryPlan,
    described: Mapping[str, Any],
    examples: Sequence[Item],
    where: TablesLocation,
) -> QueryCode:
    """Return a planned query as code; `examples` are matching items for the generated test."""
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
    """Return an item as code that writes it, and as text."""
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
    conditions = [str(question.conditions[position]) for position in planned.route.positions("studio")]
    if not conditions:
        return ""
    return f"# A Query cannot filter by a key attribute, so filter the results yourself: {' and '.join(conditions)}\n"


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
    """Return the first examples that fit the size limit."""
    chosen: list[Item] = []
    bytes_left = _EXAMPLES_BYTES_MAX
    for item in examples:
        bytes_left -= item_size(item)  # type: ignore[arg-type]  # DynamoDB JSON both
        if bytes_left < 0:
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
    """Return a sentence as an escaped docstring."""
    escaped = sentence.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"""{escaped}"""'


def _identifier(text: str) -> str:
    return "".join(
        character if character.isalnum() and character.isascii() else "_" for character in text
    ).lower()


def create_table_request(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CreateTable request for an on-demand table with the same keys and indexes."""
    request: dict[str, Any] = {
        "TableName": described["TableName"],
        "KeySchema": described["KeySchema"],
        "AttributeDefinitions": described["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for members in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if described.get(members):
            request[members] = [
                {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
                for index in described[members]
            ]
    return request
