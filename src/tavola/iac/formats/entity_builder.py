"""Build entities from other tools' files: fields by attribute, and keys as far as the file describes them.

A key attribute holds a field's value, or is rendered from a template if Tavola's templates can express it. If not, the key attribute becomes a plain field and the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.source_values import python_label
from tavola.keys import Template, TemplateRefused, part_for
from tavola.model.document import (
    EntityDesign,
    FieldDesign,
    KeyDesign,
    PatternDesign,
    SourceDesign,
    WritePattern,
)

FIELD_TYPES: Mapping[str, str] = {
    "S": "text",
    "N": "decimal",
    "B": "bytes",
    "BOOL": "bool",
    "NULL": "null",
    "M": "map[text, any]",
    "L": "list[any]",
    "SS": "set[text]",
    "NS": "set[decimal]",
    "BS": "set[bytes]",
}
_PLACEHOLDER = re.compile(r"(?<!\{)\{([^{}:]+)(:[^{}]*)?\}")


class EntityBuilder:
    """An entity under construction."""

    def __init__(
        self,
        name: str,
        tag: str,
        delimiter: str,
        place: str,
        report: ImportReport,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.tag = tag
        self.delimiter = delimiter
        self.place = place
        self.report = report
        self._types = types or {}  # types of known attributes, fields or not
        self._fields: dict[str, FieldDesign] = {}  # by attribute
        self._attributes: dict[str, str] = {}  # by field

    def field(self, attribute: str, tag: str | None = None, **settings: Any) -> FieldDesign:
        """Return the field of an attribute, created if needed."""
        existing = self._fields.get(attribute)
        if existing is None:
            tag = tag or self._types.get(attribute, "S")
            name = self._free(settings.pop("name", None) or attribute)
            kind = "text" if tag in ("S", "N") else None
            arguments = {"type": FIELD_TYPES.get(tag, "any"), "tags": (tag,), "key_kind": kind, **settings}
            existing = self._fields[attribute] = FieldDesign(name, attribute, **arguments)
            self._attributes[existing.name] = attribute
        return existing

    def find(self, name: str) -> FieldDesign | None:
        """Return a field by its name or its attribute's."""
        return self._fields.get(self._attributes.get(name, name))

    def update_field(self, attribute: str, **settings: Any) -> None:
        """Change settings of an existing field."""
        self._fields[attribute] = replace(self._fields[attribute], **settings)

    def source(
        self, attribute: str, tag: Any, text: str | None, place: str, name: str = "", *, guessed: bool = False
    ) -> SourceDesign:
        """Return the source of a key attribute: a template, or a field."""
        template = None if text is None else self._parse_template(attribute, tag, text, place)
        if isinstance(template, FieldDesign):
            return SourceDesign(attribute, tag, field=template.name)
        if template is not None:
            return SourceDesign(attribute, tag, template=template, guessed=guessed)
        key_field = self.field(attribute, tag, name=name or None)
        return SourceDesign(attribute, tag, field=key_field.name)

    def entity(
        self,
        key: KeyDesign,
        keys: Iterable[KeyDesign] = (),
        writes: Iterable[WritePattern] = (),
        description: str = "",
    ) -> EntityDesign:
        """Return the entity with its keys."""
        return EntityDesign(
            self.name,
            self.tag,
            tuple(self._fields.values()),
            key,
            tuple(keys),
            PatternDesign("Key", None, *_key_fields(key), result=self.name),
            writes=tuple(writes),
            description=description,
        )

    def _free(self, preferred: str) -> str:
        name = preferred if preferred.isidentifier() else python_label(preferred, "field")
        while name in self._attributes:
            name += "_"
        return name

    def _parse_template(
        self, attribute: str, tag: str, text: str, place: str
    ) -> Template | FieldDesign | None:
        """Parse a key's text: a template, or a field if it is one placeholder; None, with a note, if neither."""
        only_placeholder = _PLACEHOLDER.fullmatch(text)
        if only_placeholder is not None and only_placeholder[2] is None:
            field = self.find(only_placeholder[1]) or self.field(
                only_placeholder[1], self._types.get(only_placeholder[1], tag)
            )
            if field.attribute == attribute or tag != "S":
                return field
        if tag != "S":
            self.report.add(
                place,
                f"template {text!r} makes text, but {attribute!r} has type {tag}; imported as a plain field",
            )
            return None
        before = set(self._fields)
        try:
            return self._bind_template(text)
        except TemplateRefused as refused:
            for added in set(self._fields) - before:
                del self._attributes[self._fields.pop(added).name]
            self.report.add(
                place,
                f"{text!r} cannot be a key template ({refused.reason}); {attribute!r} is imported as a plain field",
            )
            return None

    def _bind_template(self, text: str) -> Template:
        renamed = _PLACEHOLDER.sub(lambda match: f"{{{self._field_name(match[1])}{match[2] or ''}}}", text)
        template = Template.parse(renamed, self.delimiter)
        for name in template.fields:
            field = self.find(name) or self.field(name)
            if field.key_kind is None:
                self.update_field(field.attribute, key_kind="text")
        parts = {name: part_for(self._kind(name)) for name in template.fields}
        try:
            template.bind(parts)
        except TemplateRefused:
            # A field is not followed by the delimiter. Other tools allow that, so the value is used without escaping.
            raw = _PLACEHOLDER.sub(lambda match: f"{{{match[1]}{match[2] or ':raw'}}}", renamed)
            template = Template.parse(raw, self.delimiter)
            template.bind(parts)
        return template

    def _kind(self, name: str) -> str:
        field = self.find(name)
        return "text" if field is None or field.key_kind is None else field.key_kind

    def _field_name(self, placeholder: str) -> str:
        """Return the name of the field that a placeholder refers to."""
        name = placeholder.strip()
        matching_field = self.find(name) or next(
            (field for field in self._fields.values() if field.attribute.casefold() == name.casefold()), None
        )
        return (matching_field or self.field(name)).name


def _key_fields(key: KeyDesign) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a key: those of its partition key, then the others of its sort key."""
    partition = tuple(dict.fromkeys(name for source in key.hash for name in source.fields))
    sorts = dict.fromkeys(name for source in key.range for name in source.fields)
    return partition, tuple(name for name in sorts if name not in partition)


def escape_braces(text: str) -> str:
    """Return a literal text escaped for a template."""
    return text.replace("{", "{{").replace("}", "}}")
