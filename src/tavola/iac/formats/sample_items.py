"""Read sample items in DynamoDB JSON, tolerant of common deviations, and guess key templates from them."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tavola.iac.formats.entity_builder import escape_braces
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.source_values import python_label, show_value
from tavola.model.document import TableDesign
from tavola.values import TAGS, Item, NumberRefused, Value, canonical_number

DELIMITERS = "#|^~:"
DISCRIMINATORS = ("Type", "type", "entityType", "EntityType", "entity_type", "_entity")
_DISTINCT_MAX = 50
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")


def guess_delimiter(texts: Iterable[str]) -> str:
    """Return the delimiter of key parts: the first candidate that most texts contain."""
    text_list = list(texts)
    for sign in DELIMITERS:
        if text_list and 2 * sum(sign in text for text in text_list) > len(text_list):
            return sign
    return "#"


def find_discriminator(items: Sequence[Item], keys: Collection[str]) -> str | None:
    """Return the attribute that names an item's type; None if there is none."""
    for name in DISCRIMINATORS:
        values = {item[name]["S"] for item in items if "S" in item.get(name, {})}
        everywhere = sum(name in item for item in items) * 2 > len(items)
        if name not in keys and everywhere and 1 <= len(values) <= _DISTINCT_MAX and "" not in values:
            return name
    return None


def guess_template(
    attribute: str,
    items: Sequence[Item],
    delimiter: str,
    candidates: Sequence[str],
    taken: Collection[str],
    *,
    constant: bool,
) -> tuple[str, tuple[str, ...]] | None:
    """Return the template that fits an attribute's values, and the new fields that it needs.

    Each value is split at the delimiter, and each part becomes the first of these that fits every item: a candidate
    attribute with the same value, a literal (the same word everywhere), or a new field whose name is not in `taken`:

        ORDER#17#2024     order_id=17, year=2024
        ORDER#18#2025     order_id=18, year=2025      ->  ORDER#{order_id}#{year}

    A value without a delimiter is a literal only if all items share it and `constant` is set.
    """
    rows = [item[attribute]["S"].split(delimiter) for item in items if "S" in item.get(attribute, {})]
    having = [item for item in items if "S" in item.get(attribute, {})]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    texts = [{name: key_text(item.get(name)) for name in candidates} for item in having]
    if len(rows[0]) == 1:
        return _single([row[0] for row in rows], texts, candidates, constant=constant)
    parts: list[str] = []
    segments: list[str] = []
    literals = 0
    for position in range(len(rows[0])):
        tokens = [row[position] for row in rows]
        same = len(set(tokens)) == 1
        match = _matching_attribute(tokens, texts, candidates)
        named = position > 0 and not parts[-1].startswith("{")  # the literal before it names this part
        word = _WORD.fullmatch(tokens[0]) is not None
        if tokens[0] == "" and same:
            parts.append("")
        elif match is not None and (not same or named or not word):
            parts.append(f"{{{match}}}")
        elif same and (word or (len(rows) > 1 and not named)):
            parts.append(escape_braces(tokens[0]))
            literals += 1
        else:
            before = (
                rows[0][position - 1] if position and len({row[position - 1] for row in rows}) == 1 else ""
            )
            name = _new_name(
                f"{python_label(before).lower()}_id" if before else f"{attribute}_{position + 1}",
                {*taken, *segments},
            )
            segments.append(name)
            parts.append(f"{{{name}}}")
    if not literals and segments:
        return None  # only new fields and no literal: nothing identifies the entity
    return delimiter.join(parts), tuple(segments)


def _single(
    values: list[str], texts: Sequence[Mapping[str, str | None]], candidates: Sequence[str], *, constant: bool
) -> tuple[str, tuple[str, ...]] | None:
    match = _matching_attribute(values, texts, candidates) if len(set(values)) > 1 else None
    if match is not None:
        return f"{{{match}}}", ()
    if constant and len(set(values)) == 1 and _WORD.fullmatch(values[0]):
        return escape_braces(values[0]), ()
    return None


def _matching_attribute(
    tokens: Sequence[str], texts: Sequence[Mapping[str, str | None]], candidates: Sequence[str]
) -> str | None:
    """Return the attribute that equals the part in every item."""
    for name in candidates:
        if all(text[name] == token for token, text in zip(tokens, texts, strict=True)):
            return name
    return None


def _new_name(preferred: str, taken: Collection[str]) -> str:
    name = python_label(preferred, "part")
    while name in taken:
        name += "_"
    return name


_WRAPPED = ("M", "L", "S", "N")


class _Malformed(Exception):
    """A value that is not valid DynamoDB JSON."""


def read_item(raw: Any, place: str, report: ImportReport) -> Item | None:
    """Return an item; invalid attributes are dropped and noted."""
    if not isinstance(raw, Mapping):
        report.add(place, f"ignored {show_value(raw)}: expected an item")
        return None
    item: Item = {}
    for name, value in raw.items():
        try:
            item[name] = _value(value)
        except _Malformed as wrong:
            unwrapped = _unwrap(value)
            if unwrapped is None:
                report.add(f"{place}.{name}", f"{wrong}; attribute not imported")
                continue
            item[name] = unwrapped
            report.add(f"{place}.{name}", "the value is wrapped in two type descriptors; imported as one")
        else:
            if _looks_doubly_wrapped(item[name]):
                report.add(
                    f"{place}.{name}",
                    "a map whose only key is a type descriptor; was the value wrapped twice?",
                )
    return item


def _unwrap(raw: Any) -> Value | None:
    """Return the inner value of one that is wrapped twice; None if it is not."""
    inner = raw.get("M") if isinstance(raw, Mapping) and len(raw) == 1 else None
    if not isinstance(inner, Mapping) or len(inner) != 1 or next(iter(inner)) not in TAGS:
        return None
    try:
        return _value(inner)
    except _Malformed:
        return None


def _value(raw: Any) -> Value:
    if not isinstance(raw, Mapping) or len(raw) != 1:
        raise _Malformed(
            f'{show_value(raw)} is not DynamoDB JSON; expected one type descriptor, as in {{"S": "text"}}'
        )
    tag, inner = next(iter(raw.items()))
    match tag, inner:
        case "S", str():
            return {tag: inner}
        case "B", str():
            return {tag: _bytes(inner)}
        case "N", str() | int() | float() if not isinstance(inner, bool):
            return {"N": _number(inner)}
        case "BOOL", bool():
            return {"BOOL": inner}
        case "BOOL", "true" | "false":
            return {"BOOL": inner == "true"}
        case "NULL", _:
            return {"NULL": True}
        case "M", Mapping():
            return {"M": {str(name): _value(element) for name, element in inner.items()}}
        case "L", list():
            return {"L": [_value(element) for element in inner]}
        case "SS" | "BS", list() if inner and all(isinstance(element, str) for element in inner):
            return {tag: list(dict.fromkeys(inner if tag == "SS" else map(_bytes, inner)))}
        case "NS", list() if inner:
            numbers = [_number(element) for element in inner]
            return {
                "NS": list({canonical_number(element): element for element in reversed(numbers)}.values())[
                    ::-1
                ]
            }
    problem = (
        "an empty set" if inner == [] else f"not a value of type {tag}" if tag in TAGS else "of unknown type"
    )
    raise _Malformed(f"{show_value(raw)} is {problem}")


def _number(raw: Any) -> str:
    """Return a number as text; a bare JSON number becomes its text."""
    text = raw if isinstance(raw, str) else show_value(raw)
    try:
        canonical_number(text)
    except NumberRefused as refused:
        raise _Malformed(f"{show_value(raw)} is not a number") from refused
    return text


def _bytes(raw: str) -> str:
    try:
        b64decode(raw, validate=True)
    except ValueError as error:
        raise _Malformed(f"{show_value(raw)} is not base64") from error
    return raw


def _looks_doubly_wrapped(value: Value) -> bool:
    inner: Any = value.get("M")
    return isinstance(inner, dict) and len(inner) == 1 and next(iter(inner)) in _WRAPPED


def select_storable(
    items: Iterable[tuple[str, Item]], table: TableDesign, report: ImportReport
) -> list[Item]:
    """Return the items that a table can store, each key once; the places of dropped items are noted.

    DynamoDB refuses an item whose index key attribute is empty or of the wrong type, so such attributes are dropped.
    """
    items_by_key: dict[tuple[str, ...], Item] = {}
    keys = table.settings.key_names
    for place, item in items:
        wrong = [problem for name in keys if (problem := _key_problem(item.get(name), name, table))]
        if wrong:
            report.add(place, f"item not imported: its key {'; '.join(wrong)}")
            continue
        for name in table.key_types:
            problem = _key_problem(item[name], name, table) if name in item and name not in keys else None
            if problem:
                report.add(f"{place}.{name}", f"attribute not imported: its index key {problem}")
                del item[name]
        key = tuple(canonical_key(item[name]) for name in keys)
        if key in items_by_key and items_by_key[key] != item:
            report.add(place, "item not imported: an earlier item has the same key")
        else:
            items_by_key.setdefault(key, item)
    return list(items_by_key.values())


def _key_problem(value: Value | None, name: str, table: TableDesign) -> str | None:
    """Return why a value cannot be a key attribute's; None if it can."""
    if value is None:
        return f"has no {name}"
    tag, inner = next(iter(value.items()))
    if tag != table.key_types[name]:
        return f"has {name} of type {tag} instead of {table.key_types[name]}"
    return f"has an empty {name}" if inner == "" else None


def canonical_key(value: Value) -> str:
    """Return a key value in canonical form, so that equal values are equal texts."""
    tag, inner = next(iter(value.items()))
    return f"{tag}:{canonical_number(str(inner)) if tag == 'N' else inner}"


def key_text(value: Value | None) -> str | None:
    """Return a value as a part of a key: text, or the digits of a number."""
    if value is None:
        return None
    tag, inner = next(iter(value.items()))
    return str(inner) if tag in ("S", "N") else None
