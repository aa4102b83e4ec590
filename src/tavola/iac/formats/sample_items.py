"""Read sample items in DynamoDB JSON as people and tools write it, normalized without changing values."""

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
    """Return what stands between the parts of keys: the sign that most of them have."""
    several = list(texts)
    for sign in DELIMITERS:
        if several and 2 * sum(sign in text for text in several) > len(several):
            return sign
    return "#"


def find_discriminator(items: Sequence[Item], keys: Collection[str]) -> str | None:
    """Return the attribute by which items say what they are; None if there is none."""
    for name in DISCRIMINATORS:
        told = {item[name]["S"] for item in items if "S" in item.get(name, {})}
        everywhere = sum(name in item for item in items) * 2 > len(items)
        if name not in keys and everywhere and 1 <= len(told) <= _DISTINCT_MAX and "" not in told:
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
    """Return the template that an attribute's values seem to be made by, and the fields that only it knows.

    `candidates` are the attributes that a part may be; `taken` are names that a new field may not have. A value
    without a delimiter is a literal only where it is the same in all and `constant` says that such keys are expected.
    """
    rows = [item[attribute]["S"].split(delimiter) for item in items if "S" in item.get(attribute, {})]
    having = [item for item in items if "S" in item.get(attribute, {})]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    texts = [{name: key_text(item.get(name)) for name in candidates} for item in having]
    if len(rows[0]) == 1:
        return _single([row[0] for row in rows], texts, candidates, constant=constant)
    parts: list[str] = []
    made: list[str] = []
    literals = 0
    for at in range(len(rows[0])):
        tokens = [row[at] for row in rows]
        same = len(set(tokens)) == 1
        match = _matching_attribute(tokens, texts, candidates)
        named = at > 0 and not parts[-1].startswith("{")  # the part before says what this one is
        word = _WORD.fullmatch(tokens[0]) is not None
        if tokens[0] == "" and same:
            parts.append("")
        elif match is not None and (not same or named or not word):
            parts.append(f"{{{match}}}")
        elif same and (word or (len(rows) > 1 and not named)):
            parts.append(escape_braces(tokens[0]))
            literals += 1
        else:
            before = rows[0][at - 1] if at and len({row[at - 1] for row in rows}) == 1 else ""
            name = _new_name(
                f"{python_label(before).lower()}_id" if before else f"{attribute}_{at + 1}", {*taken, *made}
            )
            made.append(name)
            parts.append(f"{{{name}}}")
    if not literals and made:
        return None  # parts that nobody can name, with nothing to know them by
    return delimiter.join(parts), tuple(made)


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
    """Return the attribute that has in every item what the part has."""
    for name in candidates:
        if all(text[name] == token for token, text in zip(tokens, texts, strict=True)):
            return name
    return None


def _new_name(wanted: str, taken: Collection[str]) -> str:
    name = python_label(wanted, "part")
    while name in taken:
        name += "_"
    return name


_WRAPPED = ("M", "L", "S", "N")


class _Malformed(Exception):
    """A value that DynamoDB JSON has not."""


def read_item(raw: Any, place: str, report: ImportReport) -> Item | None:
    """Return an item; attributes that are none are left out and told."""
    if not isinstance(raw, Mapping):
        report.add(place, f"{show_value(raw)} is no item, so it is left out")
        return None
    item: Item = {}
    for name, value in raw.items():
        try:
            item[name] = _value(value)
        except _Malformed as wrong:
            unwrapped = _unwrap(value)
            if unwrapped is None:
                report.add(f"{place}.{name}", f"{wrong}, so the attribute is left out")
                continue
            item[name] = unwrapped
            report.add(f"{place}.{name}", "it is wrapped in its type twice; it is read as if it were once")
        else:
            if _looks_doubly_wrapped(item[name]):
                report.add(f"{place}.{name}", "it is a map of one member, called as a type; a mistake?")
    return item


def _unwrap(raw: Any) -> Value | None:
    """Return the value inside a map whose one member is called as a type, where that alone makes sense of it."""
    inner = raw.get("M") if isinstance(raw, Mapping) and len(raw) == 1 else None
    if not isinstance(inner, Mapping) or len(inner) != 1 or next(iter(inner)) not in TAGS:
        return None
    try:
        return _value(inner)
    except _Malformed:
        return None


def _value(raw: Any) -> Value:
    if not isinstance(raw, Mapping) or len(raw) != 1:
        raise _Malformed(f"{show_value(raw)} is no value of DynamoDB, which has one type and its content")
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
            return {"M": {str(name): _value(each) for name, each in inner.items()}}
        case "L", list():
            return {"L": [_value(each) for each in inner]}
        case "SS" | "BS", list() if inner and all(isinstance(each, str) for each in inner):
            return {tag: list(dict.fromkeys(inner if tag == "SS" else map(_bytes, inner)))}
        case "NS", list() if inner:
            numbers = [_number(each) for each in inner]
            return {"NS": list({canonical_number(each): each for each in reversed(numbers)}.values())[::-1]}
    known = "an empty set" if inner == [] else "not of that type" if tag in TAGS else "of no type there is"
    raise _Malformed(f"{show_value(raw)} is {known}")


def _number(raw: Any) -> str:
    """Return a number as the text it stands in; bare numbers of JSON are taken for their text."""
    text = raw if isinstance(raw, str) else show_value(raw)
    try:
        canonical_number(text)
    except NumberRefused as refused:
        raise _Malformed(f"{show_value(raw)} is no number") from refused
    return text


def _bytes(raw: str) -> str:
    try:
        b64decode(raw, validate=True)
    except ValueError as error:
        raise _Malformed(f"{show_value(raw)} is no base64") from error
    return raw


def _looks_doubly_wrapped(value: Value) -> bool:
    inner: Any = value.get("M")
    return isinstance(inner, dict) and len(inner) == 1 and next(iter(inner)) in _WRAPPED


def select_storable(
    items: Iterable[tuple[str, Item]], table: TableDesign, report: ImportReport
) -> list[Item]:
    """Return the items that a table can hold, each key once; given with their places, for what is left out is told.

    An attribute that is of an index's key and is not of its type, or empty, would keep the item out of the table: it
    is left out of the item.
    """
    found: dict[tuple[str, ...], Item] = {}
    keys = table.settings.key_names
    for place, item in items:
        wrong = [problem for name in keys if (problem := _key_problem(item.get(name), name, table))]
        if wrong:
            report.add(place, f"its key {'; '.join(wrong)}, so it is left out")
            continue
        for name in table.key_types:
            problem = _key_problem(item[name], name, table) if name in item and name not in keys else None
            if problem:
                report.add(f"{place}.{name}", f"its index key {problem}, so the attribute is left out")
                del item[name]
        key = tuple(canonical_key(item[name]) for name in keys)
        if key in found and found[key] != item:
            report.add(place, "an item before it has the same key and differs, so it is left out")
        else:
            found.setdefault(key, item)
    return list(found.values())


def _key_problem(value: Value | None, name: str, table: TableDesign) -> str | None:
    """Return why a value can be none of a key's attribute; None if it can."""
    if value is None:
        return f"lacks {name}"
    tag, inner = next(iter(value.items()))
    if tag != table.key_types[name]:
        return f"has {name} of type {tag}, and not {table.key_types[name]}"
    return f"has an empty {name}" if inner == "" else None


def canonical_key(value: Value) -> str:
    """Return a value of a key so that equal ones are equal."""
    tag, inner = next(iter(value.items()))
    return f"{tag}:{canonical_number(str(inner)) if tag == 'N' else inner}"


def key_text(value: Value | None) -> str | None:
    """Return a value as it would stand in a key: text, or the digits of a number."""
    if value is None:
        return None
    tag, inner = next(iter(value.items()))
    return str(inner) if tag in ("S", "N") else None
