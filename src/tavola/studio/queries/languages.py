"""Render values, requests and items as Python, shell, JSON and TypeScript source."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from tavola.studio.types import AttributeValue, Item

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
    told = repr(text)
    return f'"{told[1:-1]}"' if told[0] == "'" and '"' not in text and "\\'" not in told else told


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
            told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            words.append(f"--{_kebab(name)} {shlex.quote(str(told))}")
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
            tag, held = next(iter(value.items()))
            if tag == "B" and isinstance(held, str):
                return {"B": b64decode(held)}
            if tag == "BS" and isinstance(held, Sequence):
                return {"BS": [b64decode(each) for each in held]}
        return {name: _with_bytes(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_bytes(each) for each in value]
    return value


def _with_buffers(value: Any) -> Any:
    """Return DynamoDB JSON with a mark where TypeScript makes a buffer."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            tag, held = next(iter(value.items()))
            if tag == "B" and isinstance(held, str):
                return {"B": _BUFFER + held}
            if tag == "BS" and isinstance(held, Sequence):
                return {"BS": [_BUFFER + each for each in held]}
        return {name: _with_buffers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_buffers(each) for each in value]
    return value


def _plain(value: AttributeValue, margin: str) -> str:
    tag, held = next(iter(value.items()))
    within = margin + "  "
    match tag:
        case "N":
            return str(held)
        case "NULL":
            return "null"
        case "M":
            parts = [
                f"{json.dumps(name, ensure_ascii=False)}: {_plain(each, within)}"
                for name, each in held.items()
            ]
            return _bracketed("{", parts, "}", margin)
        case "L":
            return _bracketed("[", [_plain(each, within) for each in held], "]", margin)
        case "SS" | "NS" | "BS":
            return _bracketed("[", [_plain({tag[0]: each}, within) for each in held], "]", margin)
        case _:
            return json.dumps(held, ensure_ascii=False)


def _bracketed(opening: str, parts: Sequence[str], closing: str, margin: str) -> str:
    if not parts:
        return opening + closing
    lines = ",\n".join(f"{margin}  {part}" for part in parts)
    return f"{opening}\n{lines}\n{margin}{closing}"
