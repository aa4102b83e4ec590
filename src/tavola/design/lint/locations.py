"""Source locations: the file and line of each place in a design.

Python modules are searched for declarations, design documents by JSON path, Terraform files for the table's resource, and files
of other tools for the first line with the name. A place that has no line gets the line of its container, or the first line of the first file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tavola.design.findings import DesignPath
from tavola.model.document import declarations_in

JsonPath = tuple[str | int, ...]

_DECODER = json.JSONDecoder()
_SPACES = " \t\r\n"
_RESOURCE = r'(?m)^resource\s+"aws_dynamodb_table"\s+"{}"'  # Terraform's declaration of a table


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that declares a design, with its text."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A file and a line number, counted from 1."""

    file: str
    line: int


def find_locations(sources: Sequence[SourceFile]) -> Mapping[str, SourceLocation]:
    """Return where each place is declared, by its name; the first source that declares it wins."""
    locations: dict[str, SourceLocation] = {}
    for source in sources:
        for name, line in _declared_lines(source):
            locations.setdefault(name, SourceLocation(source.file, line))
    return locations


def locate_place(
    place: DesignPath, locations: Mapping[str, SourceLocation], sources: Sequence[SourceFile]
) -> SourceLocation | None:
    """Return the location of a place or of its container; None without sources."""
    outer = place.name.partition(": ")[0].partition(".")[0]
    for name in (place.name, outer, *([place.table] if place.table else [])):
        if name in locations:
            return locations[name]
    for source in sources:
        for name in (place.name, place.table):
            if (
                name
                and source.file.endswith(".tf")
                and (line := _line_of(_RESOURCE.format(re.escape(name)), source.text))
            ):
                return SourceLocation(source.file, line)
    for source in sources:
        for name in (place.name.rpartition(".")[2], place.table):
            if name and not source.file.endswith(".py") and (line := _first_mention(source.text, name)):
                return SourceLocation(source.file, line)
    return SourceLocation(sources[0].file, 1) if sources else None


def _first_mention(text: str, name: str) -> int:
    """Return the number of the first line that has the name as a whole word; 0 if none has."""
    return _line_of(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)


def _line_of(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return 0 if match is None else text.count("\n", 0, match.start()) + 1


def json_lines(text: str) -> dict[JsonPath, int]:
    """Return the line on which the value of each JSON path begins. The text must be valid JSON."""
    offsets: dict[JsonPath, int] = {}
    _walk(text, 0, (), offsets)
    return {path: text.count("\n", 0, offset) + 1 for path, offset in offsets.items()}


def _declared_lines(source: SourceFile) -> Iterator[tuple[str, int]]:
    if not source.file.endswith(".json"):
        for declared in declarations_in(source.text):
            yield declared.place, declared.first
        return
    try:
        document = json.loads(source.text)
    except ValueError:
        return
    if isinstance(document, dict) and "format" in document:
        lines = json_lines(source.text)
        for name, path in _document_paths(document):
            if path in lines:
                yield name, lines[path]


def _document_paths(document: Mapping[str, Any]) -> Iterator[tuple[str, JsonPath]]:
    """Yield the places in a design document, each with its JSON path."""
    for word in ("needs", "policies"):
        for position, part in enumerate(document.get(word, ())):
            yield part["name"], (word, position)
    for number, table in enumerate(document.get("tables", ())):
        path: JsonPath = ("tables", number)
        yield table["label"], path
        yield table["settings"]["name"], path
        for position, index in enumerate(table.get("indexes", ())):
            yield f"{table['label']}.{index['label']}", (*path, "indexes", position)
        for word in ("collections", "consumers"):
            for position, part in enumerate(table.get(word, ())):
                yield part["name"], (*path, word, position)
        for position, entity in enumerate(table.get("entities", ())):
            yield from _entity_paths(entity, (*path, "entities", position))


def _entity_paths(entity: Mapping[str, Any], path: JsonPath) -> Iterator[tuple[str, JsonPath]]:
    name = entity["name"]
    yield name, path
    for position, field in enumerate(entity.get("fields", ())):
        yield f"{name}.{field['name']}", (*path, "fields", position)
    if entity.get("primary"):
        yield f"{name}.{entity['primary']['name']}", (*path, "primary")
    for position, pattern in enumerate(entity.get("patterns", ())):
        yield f"{name}.{pattern['name']}", (*path, "patterns", position)
    for position, write in enumerate(entity.get("writes", ())):
        yield f"{name}: {write['title']}", (*path, "writes", position)


def _walk(text: str, offset: int, path: JsonPath, offsets: dict[JsonPath, int]) -> int:
    """Record the offset of each value in `offsets`; return where this value ends."""
    offset = _skip_spaces(text, offset)
    offsets[path] = offset
    if text[offset] == "{":
        offset = _skip_spaces(text, offset + 1)
        while text[offset] != "}":
            key, offset = _DECODER.raw_decode(text, offset)
            offset = _skip_spaces(text, _walk(text, _skip_spaces(text, offset) + 1, (*path, key), offsets))
            offset = _skip_spaces(text, offset + 1) if text[offset] == "," else offset
        return offset + 1
    if text[offset] == "[":
        offset = _skip_spaces(text, offset + 1)
        number = 0
        while text[offset] != "]":
            offset = _skip_spaces(text, _walk(text, offset, (*path, number), offsets))
            offset = _skip_spaces(text, offset + 1) if text[offset] == "," else offset
            number += 1
        return offset + 1
    return _DECODER.raw_decode(text, offset)[1]


def _skip_spaces(text: str, offset: int) -> int:
    while offset < len(text) and text[offset] in _SPACES:
        offset += 1
    return offset
