"""Items as plain JSON, without loss: parsing the text gives an equal item.

Strings, numbers with all their digits, booleans, null, lists and maps are JSON's own. Other types are objects with one
member: `{"$binary": "base64"}`, `{"$strings": […]}`, `{"$numbers": […]}`, `{"$binaries": […]}`. A map that looks like one of
these is wrapped in `{"$map": {…}}`. A program that parses JSON numbers as floats keeps about 15 digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tavola.values import Item, Value

BINARY, STRINGS, NUMBERS, BINARIES, MAP = "$binary", "$strings", "$numbers", "$binaries", "$map"
_WRAPPERS = frozenset({BINARY, STRINGS, NUMBERS, BINARIES, MAP})
_encode_text = json.JSONEncoder(ensure_ascii=False).encode


class ImportRecordMalformed(ValueError):
    """A record that cannot be read as an item; the message says why."""


class NumberText(str):
    """A JSON number as written."""

    __slots__ = ()


def render_plain_item(item: Mapping[str, Any]) -> str:
    """Return an item as one line of plain JSON."""
    return (
        "{" + ", ".join(f"{_encode_text(name)}: {_render_value(value)}" for name, value in item.items()) + "}"
    )


def _render_value(value: Mapping[str, Any]) -> str:
    ((tag, content),) = value.items()
    return _WRITERS[tag](content)


def _render_list(texts: list[str]) -> str:
    return "[" + ", ".join(texts) + "]"


def _render_map(content: Mapping[str, Any]) -> str:
    text = render_plain_item(content)
    return f'{{"{MAP}": {text}}}' if len(content) == 1 and _WRAPPERS.issuperset(content) else text


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "S": _encode_text,
    "N": str,
    "BOOL": lambda content: "true" if content else "false",
    "NULL": lambda content: "null",
    "L": lambda content: _render_list([_render_value(element) for element in content]),
    "M": _render_map,
    "B": lambda content: f'{{"{BINARY}": {_encode_text(content)}}}',
    "SS": lambda content: f'{{"{STRINGS}": {_render_list([_encode_text(element) for element in content])}}}',
    "NS": lambda content: f'{{"{NUMBERS}": {_render_list([str(element) for element in content])}}}',
    "BS": lambda content: f'{{"{BINARIES}": {_render_list([_encode_text(element) for element in content])}}}',
}


def parse_plain_item(parsed: Any) -> Item:
    """Return a parsed object as an item; its numbers are `NumberText`."""
    if type(parsed) is not dict:
        raise ImportRecordMalformed(f"an item must be a JSON object, not {_kind(parsed)}")
    return {name: parse_plain_value(member) for name, member in parsed.items()}


def parse_plain_value(parsed: Any) -> Value:
    """Return parsed JSON as an attribute value."""
    match parsed:
        case NumberText():
            return {"N": str(parsed)}
        case str():
            return {"S": parsed}
        case bool():
            return {"BOOL": parsed}
        case None:
            return {"NULL": True}
        case list():
            return {"L": [parse_plain_value(element) for element in parsed]}
        case dict() if len(parsed) == 1 and next(iter(parsed)) in _WRAPPERS:
            return _parse_wrapped(*next(iter(parsed.items())))
        case dict():
            return {"M": {name: parse_plain_value(member) for name, member in parsed.items()}}
        case _:
            raise ImportRecordMalformed(f"{_kind(parsed)} is not a value")


def _parse_wrapped(word: str, content: Any) -> Value:
    if word == MAP:
        if type(content) is not dict:
            raise ImportRecordMalformed(f"{MAP} needs an object, not {_kind(content)}")
        return {"M": {name: parse_plain_value(member) for name, member in content.items()}}
    if word == BINARY:
        if type(content) is not str:
            raise ImportRecordMalformed(f"{BINARY} needs base64 text, not {_kind(content)}")
        return {"B": content}
    kind: type[str] = NumberText if word == NUMBERS else str
    if type(content) is not list or any(type(element) is not kind for element in content):
        noun = "numbers" if word == NUMBERS else "strings"
        raise ImportRecordMalformed(f"{word} needs a list of {noun}")
    return {{STRINGS: "SS", NUMBERS: "NS", BINARIES: "BS"}[word]: [str(element) for element in content]}


def _kind(parsed: Any) -> str:
    names = {dict: "an object", list: "a list", NumberText: "a number", str: "a string", bool: "a boolean"}
    return "null" if parsed is None else names.get(type(parsed), "something else")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names: set[str] = set()
        duplicate = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]  # add is for its effect
        raise ImportRecordMalformed(f"duplicate name {duplicate!r} in one object")
    return members


def _reject_constant(text: str) -> Any:
    raise ImportRecordMalformed(f"{text} is not a JSON number")


def _reject_bare_number(text: str) -> Any:
    raise ImportRecordMalformed(f"{text[:40]} is a bare number; DynamoDB JSON has numbers in quotes")


DYNAMODB_JSON = json.JSONDecoder(
    parse_int=_reject_bare_number,
    parse_float=_reject_bare_number,
    parse_constant=_reject_constant,
    object_pairs_hook=_unique_members,
)
"""Decodes DynamoDB JSON; bare numbers and duplicate names are errors."""

EXACT_JSON = json.JSONDecoder(
    parse_int=NumberText,
    parse_float=NumberText,
    parse_constant=_reject_constant,
    object_pairs_hook=_unique_members,
)
"""Decodes JSON with numbers as `NumberText`; duplicate names are errors."""
