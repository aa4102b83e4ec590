"""Items as plain JSON that reads back equal.

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
_WORDS = frozenset({BINARY, STRINGS, NUMBERS, BINARIES, MAP})
_TEXT = json.JSONEncoder(ensure_ascii=False).encode


class RecordMalformed(ValueError):
    """Plain JSON that stands for no value, as a sentence."""


class NumberText(str):
    """A JSON number as it was written."""

    __slots__ = ()


def render_plain_item(item: Mapping[str, Any]) -> str:
    """Return an item as one line of plain JSON."""
    return "{" + ", ".join(f"{_TEXT(name)}: {_value(value)}" for name, value in item.items()) + "}"


def _value(value: Mapping[str, Any]) -> str:
    ((tag, content),) = value.items()
    return _WRITERS[tag](content)


def _list(texts: list[str]) -> str:
    return "[" + ", ".join(texts) + "]"


def _object(content: Mapping[str, Any]) -> str:
    text = render_plain_item(content)
    return f'{{"{MAP}": {text}}}' if len(content) == 1 and _WORDS.issuperset(content) else text


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "S": _TEXT,
    "N": str,
    "BOOL": lambda content: "true" if content else "false",
    "NULL": lambda content: "null",
    "L": lambda content: _list([_value(each) for each in content]),
    "M": _object,
    "B": lambda content: f'{{"{BINARY}": {_TEXT(content)}}}',
    "SS": lambda content: f'{{"{STRINGS}": {_list([_TEXT(each) for each in content])}}}',
    "NS": lambda content: f'{{"{NUMBERS}": {_list([str(each) for each in content])}}}',
    "BS": lambda content: f'{{"{BINARIES}": {_list([_TEXT(each) for each in content])}}}',
}


def parse_plain_item(parsed: Any) -> Item:
    """Return the item that a parsed object stands for; numbers in it are `NumberText`."""
    if type(parsed) is not dict:
        raise RecordMalformed(f"an item is a JSON object, and this is {_kind(parsed)}")
    return {name: parse_plain_value(each) for name, each in parsed.items()}


def parse_plain_value(parsed: Any) -> Value:
    """Return the value that parsed JSON stands for."""
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
            return {"L": [parse_plain_value(each) for each in parsed]}
        case dict() if len(parsed) == 1 and next(iter(parsed)) in _WORDS:
            return _parse_wrapped(*next(iter(parsed.items())))
        case dict():
            return {"M": {name: parse_plain_value(each) for name, each in parsed.items()}}
        case _:
            raise RecordMalformed(f"{_kind(parsed)} stands for no value")


def _parse_wrapped(word: str, content: Any) -> Value:
    if word == MAP:
        if type(content) is not dict:
            raise RecordMalformed(f"{MAP} is followed by an object, and this is {_kind(content)}")
        return {"M": {name: parse_plain_value(each) for name, each in content.items()}}
    if word == BINARY:
        if type(content) is not str:
            raise RecordMalformed(f"{BINARY} is followed by base64 text, and this is {_kind(content)}")
        return {"B": content}
    kind: type[str] = NumberText if word == NUMBERS else str
    if type(content) is not list or any(type(each) is not kind for each in content):
        noun = "numbers" if word == NUMBERS else "texts"
        raise RecordMalformed(f"{word} is followed by a list of {noun}")
    return {{STRINGS: "SS", NUMBERS: "NS", BINARIES: "BS"}[word]: [str(each) for each in content]}


def _kind(parsed: Any) -> str:
    names = {dict: "an object", list: "a list", NumberText: "a number", str: "a text", bool: "true or false"}
    return "null" if parsed is None else names.get(type(parsed), "something else")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]  # add is for its effect
        raise RecordMalformed(f"{twice!r} stands there twice in one object")
    return members


def _constant(text: str) -> Any:
    raise RecordMalformed(f"{text} is no number of JSON's")


def _bare_number(text: str) -> Any:
    raise RecordMalformed(f"{text[:40]} is a bare number; in DynamoDB JSON a number is text in quotes")


DYNAMODB_JSON = json.JSONDecoder(
    parse_int=_bare_number, parse_float=_bare_number, parse_constant=_constant, object_pairs_hook=_pairs
)
"""Reads DynamoDB JSON, which has no numbers of JSON's, and no member twice."""

EXACT_JSON = json.JSONDecoder(
    parse_int=NumberText, parse_float=NumberText, parse_constant=_constant, object_pairs_hook=_pairs
)
"""Reads JSON with every number as the text that it was written in, and no member twice."""
