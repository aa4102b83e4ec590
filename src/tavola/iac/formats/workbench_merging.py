"""Write a changed design back into the Workbench model it came from.

Two models are rendered: the design as it was read, and as it is now. Whatever is equal in both did not change and stays in the file, including
members that only the Workbench understands; what differs is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.sample_items import canonical_key, read_item

_NAMES = {
    "DataModel": "TableName",
    "NonKeyAttributes": "AttributeName",
    "GlobalSecondaryIndexes": "IndexName",
    "TableFacets": "FacetName",
}
_ABSENT: Any = object()

Name = Callable[[Any], Hashable]
"""What tells an element of a list from the others; None of one that has no name."""


def merge_models(
    before: Mapping[str, Any], after: Mapping[str, Any], onto: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a model with the changes that lead from `before` to `after`, and all else as it is in `onto`."""
    return _objects(before, after, onto, ())


def _merged(member: str, before: Any, after: Any, onto: Any, keys: tuple[str, ...]) -> Any:
    if before == after:
        return onto
    if isinstance(after, Mapping) and isinstance(before, Mapping) and isinstance(onto, Mapping):
        return _objects(before, after, onto, keys)
    if isinstance(after, list) and isinstance(before, list) and isinstance(onto, list):
        return _lists(before, after, onto, _naming(member, keys), keys)
    return after


def _objects(
    before: Mapping[str, Any], after: Mapping[str, Any], onto: Mapping[str, Any], keys: tuple[str, ...]
) -> dict[str, Any]:
    own = _keys_of(after)
    merged = dict(onto)
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            merged.pop(name, None)
            continue
        found = _merged(name, before.get(name, _ABSENT), after[name], onto.get(name, _ABSENT), own or keys)
        if found is not _ABSENT:
            merged[name] = found
    return merged


def _lists(
    before: list[Any], after: list[Any], onto: list[Any], name: Name, keys: tuple[str, ...]
) -> list[Any]:
    """Return a list whose elements are merged by their names; what has none, or is in neither model, stays."""
    old = {name(each): each for each in before}
    new = {name(each): each for each in after}
    merged: list[Any] = []
    met: set[Hashable] = set()
    for each in onto:
        own = name(each)
        if own is None or (own not in old and own not in new) or own in met:
            if own not in met or own in new:
                merged.append(each)
            continue
        met.add(own)
        if own in new:
            merged.append(_merged("", old.get(own, _ABSENT), new[own], each, keys))
    return [*merged, *(each for own, each in new.items() if own not in met and old.get(own) != each)]


def _naming(member: str, keys: tuple[str, ...]) -> Name:
    if member == "TableData":
        return lambda each: _item_key(each, keys)
    word = _NAMES.get(member, "")

    def name(each: Any) -> Hashable:
        if isinstance(each, Mapping):
            found = each.get(word)
            return found if isinstance(found, str) else None
        return each if isinstance(each, str) else None

    return name


def _keys_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the attributes of a table's key; none of what is no table."""
    found = table.get("KeyAttributes") if "TableName" in table else None
    return tuple(each["AttributeName"] for each in found.values()) if isinstance(found, Mapping) else ()


def _item_key(raw: Any, keys: tuple[str, ...]) -> Hashable:
    item = read_item(raw, "", ImportReport()) or {}
    if not keys or not all(name in item for name in keys):
        return None
    return json.dumps([canonical_key(item[name]) for name in keys])
