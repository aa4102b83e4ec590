"""Find everything wrong with an item being edited, each issue with its path.

DynamoDB reports only the first error, and not its location. Here each attribute is validated separately, and inside a rejected
attribute the offending member is located, so that a user sees all errors at once. The messages are DynamoDB's.
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
ISSUES_MAX = 100  # per item

_NAMES = {"S": "string (S)", "N": "number (N)", "B": "binary (B)"}
_INVALID = "One or more parameter values were invalid: "


@dataclass(frozen=True, slots=True)
class ItemIssue:
    """A problem in an item, and the path of the offending value."""

    path: tuple[str, ...]  # attribute names and list positions; empty: the whole item
    text: str
    severity: Severity = "error"

    def __str__(self) -> str:
        place = ".".join(self.path)
        return f"{place}: {self.text}" if place else self.text


@dataclass(frozen=True, slots=True)
class ValidatedItem:
    """An item as DynamoDB would store it, with its size and issues."""

    item: Item
    bytes: int
    issues: tuple[ItemIssue, ...]


def validate_item(raw_item: Mapping[str, Any]) -> ValidatedItem:
    """Return a normalised item and all issues of its values; if there are any, the size is an estimate."""
    # A copy, because admission rewrites numbers in place; through JSON, ten times as fast as deepcopy.
    item: Item = msgspec.json.decode(msgspec.json.encode(raw_item))
    try:
        size = admit_item(item)
        issues: list[ItemIssue] = []
    except (ValueRefused, ValueMalformed):
        size = 0
        issues = []
        for name, value in list(item.items()):
            try:
                size += admit_item({name: value})
            except (ValueRefused, ValueMalformed) as error:
                size += _estimate_bytes(name) + _estimate_bytes(value)
                issues += _locate_issues((name,), value, error)
    return ValidatedItem(item, size, tuple(issues[:ISSUES_MAX]))


def size_issues(size: int) -> Iterator[ItemIssue]:
    """Yield an issue if an item is too large."""
    if size > ITEM_BYTES_MAX:
        yield ItemIssue((), f"The item is {size:,} bytes; the maximum is {ITEM_BYTES_MAX:,} (400 KB).")


def _estimate_bytes(value: Any) -> int:
    """Return the approximate size of an invalid value."""
    if isinstance(value, Mapping):
        return sum(_estimate_bytes(name) + _estimate_bytes(member) for name, member in value.items())
    if isinstance(value, list):
        return sum(map(_estimate_bytes, value))
    return len(str(value).encode(errors="replace"))


def _locate_issues(path: tuple[str, ...], value: Any, error: TavolaError) -> Iterator[ItemIssue]:
    """Yield the issues inside an invalid value: of its members, or else of the value itself."""
    located = False
    # Excessive nesting is reported at the first container beyond the limit, not at the innermost.
    for step, member in _members(value) if len(path) <= NESTING_LEVELS_MAX else ():
        try:
            # The member's depth in the item counts towards the nesting limit.
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
        yield from ((str(position), member) for position, member in enumerate(content))
    elif tag in ("SS", "NS", "BS") and isinstance(content, list):
        # Members are validated as scalars; a duplicate is an issue of the set.
        yield from ((str(position), {tag[0]: member}) for position, member in enumerate(content))


def _sentence(error: TavolaError) -> str:
    text = str(error).removeprefix(_INVALID)
    return f"{text}; the types are {', '.join(TAGS)}." if "datatype" in text else _with_full_stop(text)


def _with_full_stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def key_issues(layout: TableLayout, item: Item) -> Iterator[ItemIssue]:
    """Yield the issues of key attributes: the primary key is required, index keys must have the right type if present."""
    for attribute in layout.schema.attributes:
        if attribute.name not in item:
            text = f"It is part of the primary key and required, as a {_NAMES[attribute.type]}."
            yield ItemIssue((attribute.name,), text)
    reported: set[tuple[str, str]] = set()
    for schema, place in (
        (layout.schema, "the primary key"),
        *((index.schema, f"the key of {index.index}") for index in layout.indexes),
    ):
        for issue in _schema_issues(schema, place, item):
            if (issue.path[0], issue.text) not in reported:
                reported.add((issue.path[0], issue.text))
                yield issue


def _schema_issues(schema: KeySchema, place: str, item: Item) -> Iterator[ItemIssue]:
    has_issue = False
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is None or not isinstance(value, Mapping):
            continue
        content = value.get(attribute.type)
        if content is None:
            has_issue = True
            actual_type = next((tag for tag in value if tag in TAGS), "nothing")
            text = f"{place[0].upper()}{place[1:]} needs a {_NAMES[attribute.type]} here, not {actual_type}."
            yield ItemIssue((attribute.name,), text)
        elif not content:
            has_issue = True
            yield ItemIssue((attribute.name,), f"An attribute of {place} must not be empty.")
    if has_issue:
        return
    try:
        schema.entry_of(item)
    except KeyRefused as refused:
        if refused.reason == "hash-size":
            text = f"A partition key has at most {HASH_KEY_BYTES_MAX:,} bytes."
        elif refused.reason == "range-size":
            text = f"A sort key has at most {RANGE_KEY_BYTES_MAX:,} bytes."
        else:
            text = _with_full_stop(str(refused))
        yield ItemIssue((refused.name,), text)
    except (ValueRefused, ValueMalformed, ValueError, AttributeError):
        return  # not a valid value, which `validate_item` reports
