"""Find everything wrong with an item being edited, each issue with its path.

DynamoDB reports only the first error and not where it is. Here every attribute is validated by itself, and inside a rejected
one the offending member is located, so a user sees all errors at once. The texts are DynamoDB's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from tavola.errors import TavolaError
from tavola.keys import KeyRefused, KeySchema
from tavola.limits import HASH_KEY_BYTES_MAX, ITEM_BYTES_MAX, NESTING_LEVELS_MAX, RANGE_KEY_BYTES_MAX
from tavola.studio.table_layouts import TableLayout
from tavola.values import TAGS, Item, ValueMalformed, ValueRefused, admit_item, admit_value

Severity = Literal["error", "warning"]
ISSUES_MAX = 100  # of one item; a person mends the first few and looks again

_NAMES = {"S": "text (S)", "N": "number (N)", "B": "binary (B)"}
_INVALID = "One or more parameter values were invalid: "


@dataclass(frozen=True, slots=True)
class ItemIssue:
    """Something wrong with an item: where, as names of members and places in lists; what; and how bad it is."""

    path: tuple[str, ...]  # none: the item as a whole
    text: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class ValidatedItem:
    """An item as DynamoDB would store it, with its bytes; or what is wrong with it."""

    item: Item
    bytes: int
    issues: tuple[ItemIssue, ...]


def validate_item(raw_item: Mapping[str, Any]) -> ValidatedItem:
    """Return an item admitted, with every flaw of its values; of one with flaws the bytes are a guess."""
    # A copy, because admission rewrites numbers in place; by way of JSON, which is ten times as fast as deepcopy.
    item: Item = msgspec.json.decode(msgspec.json.encode(raw_item))
    try:
        size = admit_item(item)
        flaws: list[ItemIssue] = []
    except (ValueRefused, ValueMalformed):
        size = 0
        flaws = []
        for name, value in list(item.items()):
            try:
                size += admit_item({name: value})
            except (ValueRefused, ValueMalformed) as error:
                size += _estimate_bytes(name) + _estimate_bytes(value)
                flaws += _locate_issues((name,), value, error)
    return ValidatedItem(item, size, tuple(flaws[:ISSUES_MAX]))


def size_issues(size: int) -> Iterator[ItemIssue]:
    """Give what is wrong with an item of so many bytes."""
    if size > ITEM_BYTES_MAX:
        yield ItemIssue((), f"It has {size:,} bytes, and an item has at most {ITEM_BYTES_MAX:,} (400 KB).")


def _estimate_bytes(value: Any) -> int:
    """Return about how many bytes something counts for that is no value."""
    if isinstance(value, Mapping):
        return sum(_estimate_bytes(name) + _estimate_bytes(each) for name, each in value.items())
    if isinstance(value, list):
        return sum(map(_estimate_bytes, value))
    return len(str(value).encode(errors="replace"))


def _locate_issues(path: tuple[str, ...], value: Any, error: TavolaError) -> Iterator[ItemIssue]:
    """Give what is wrong inside a value that was refused: the members that are, or the value itself."""
    located = False
    # What is too deep is so at the first container beyond the limit, and not at the innermost.
    for step, member in _members(value) if len(path) <= NESTING_LEVELS_MAX else ():
        try:
            # Deep in the item it may be refused for its depth, which the copy here has not.
            admit_value(deepcopy(member), len(path))
        except (ValueRefused, ValueMalformed) as inner:
            located = True
            yield from _locate_issues((*path, step), member, inner)
    if not located:
        yield ItemIssue(path, _sentence(error))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or len(value) != 1:
        return
    ((tag, content),) = value.items()
    if tag == "M" and isinstance(content, dict):
        yield from content.items()
    elif tag == "L" and isinstance(content, list):
        yield from ((str(place), member) for place, member in enumerate(content))
    elif tag in ("SS", "NS", "BS") and isinstance(content, list):
        # A member is admitted as the scalar that it is; that it stands there twice is the set's flaw.
        yield from ((str(place), {tag[0]: member}) for place, member in enumerate(content))


def _sentence(error: TavolaError) -> str:
    text = str(error).removeprefix(_INVALID)
    return f"{text}; the types are {', '.join(TAGS)}." if "datatype" in text else _with_full_stop(text)


def _with_full_stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def key_issues(layout: TableLayout, item: Item) -> Iterator[ItemIssue]:
    """Give what is wrong with the attributes of keys: the table's must be there, an index's must fit if they are."""
    for attribute in layout.schema.attributes:
        if attribute.name not in item:
            text = f"It is part of the table's key and must be there, as a {_NAMES[attribute.type]}."
            yield ItemIssue((attribute.name,), text)
    reported: set[tuple[str, str]] = set()
    for schema, place in (
        (layout.schema, "the table's key"),
        *((index.schema, f"the key of {index.index}") for index in layout.indexes),
    ):
        for flaw in _schema_issues(schema, place, item):
            if (flaw.path[0], flaw.text) not in reported:
                reported.add((flaw.path[0], flaw.text))
                yield flaw


def _schema_issues(schema: KeySchema, place: str, item: Item) -> Iterator[ItemIssue]:
    wrong = False
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is None or not isinstance(value, Mapping):
            continue
        content = value.get(attribute.type)
        if content is None:
            wrong = True
            actual_type = next((tag for tag in value if tag in TAGS), "nothing")
            text = f"{place[0].upper()}{place[1:]} wants a {_NAMES[attribute.type]} here, and it is {actual_type}."
            yield ItemIssue((attribute.name,), text)
        elif not content:
            wrong = True
            yield ItemIssue((attribute.name,), f"An attribute of {place} cannot be empty.")
    if wrong:
        return
    try:
        schema.entry_of(item)
    except KeyRefused as refused:
        if refused.reason == "hash-size":
            text = f"A partition key has at most {HASH_KEY_BYTES_MAX:,} bytes, and this one has more."
        elif refused.reason == "range-size":
            text = f"A sort key has at most {RANGE_KEY_BYTES_MAX:,} bytes, and this one has more."
        else:
            text = _with_full_stop(str(refused))
        yield ItemIssue((refused.name,), text)
    except (ValueRefused, ValueMalformed, ValueError, AttributeError):
        return  # what stands there is no value, which is told already
