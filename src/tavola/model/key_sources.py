"""Key sources: where each attribute of an entity's keys comes from, bound from its template or its field.

What keys of the table and of indexes have in common: their templates name fields that a key's text can hold, the
arguments are those of the templates, and no attribute has two writers.
"""

from __future__ import annotations

from tavola.keys import BoundTemplate, Template, TemplateRefused, part_for
from tavola.model.base import EntityBase
from tavola.model.errors import ModelError
from tavola.model.part_types import check_part_types, word_of
from tavola.model.queries import KeyDeclaration
from tavola.model.shapes import SHARD, FieldShape, KeySource
from tavola.model.tables import Shards, Table

KEY_TAGS = frozenset({"S", "N", "B"})


class KeyBinder:
    """Binds one key or query class of an entity; `place` is how its refusals name it."""

    def __init__(
        self, cls: type[EntityBase], table: type[Table], fields: dict[str, FieldShape], name: str
    ) -> None:
        self.cls = cls
        self.table = table
        self.fields = fields
        self.name = name
        self.place = f"{cls.__name__}.{name}"
        self.own = {found.attribute: found.name for found in fields.values()}

    def refusal(self, problem: str) -> ModelError:
        """Return the refusal of what is being bound."""
        return ModelError(self.place, problem)

    def source(
        self, attribute: str, text: str, *, shards: Shards | None = None, sharded: bool = False
    ) -> KeySource:
        """Return where a key attribute comes from: the field of its name, or a template."""
        own = self.fields.get(text[1:-1]) if text.startswith("{") and text.endswith("}") else None
        if own is not None and own.attribute == attribute and not sharded:
            if len(own.converter.tags) != 1 or not own.converter.tags <= KEY_TAGS:
                raise self.refusal(
                    f"{own.name} is stored as {' or '.join(sorted(own.converter.tags))}, and a key is one of text (S), "
                    "number (N) and binary (B); give the field such a type"
                )
            return KeySource(attribute, (own.name,), next(iter(own.converter.tags)), own, None)
        taken = self.own.get(attribute)
        if taken is not None:
            raise self.refusal(
                f"the key attribute {attribute!r} would be written by {text!r} and by the field {taken}; "
                f'make the template "{{{taken}}}", or rename one of them'
            )
        if sharded:
            time = shards is not None and shards.by == "time"
            text += self.table.settings.delimiter + (
                f"{{{shards.of[0]}:{shards.bucket}}}" if time and shards else f"{{{SHARD}:04}}"
            )
        template = self._template(text, sharded)
        return KeySource(attribute, template.fields, "S", None, template)

    def _template(self, text: str, sharded: bool) -> BoundTemplate:
        parsed = self.parse_template(text)
        parts = {SHARD: part_for("int")} if sharded else {}
        try:
            for name in parsed.fields:
                if name in parts:
                    continue
                found = self.fields.get(name)
                if found is None:
                    known = ", ".join(sorted(self.fields))
                    raise self.refusal(
                        f"{text!r} names {name!r}, and {self.cls.__name__} has no such field; it has {known}"
                    )
                if found.converter.key_kind is None:
                    raise self.refusal(
                        f"{name} is {word_of(found.annotation)}, which cannot be part of a key's text; text, int, "
                        "Decimal, datetime, date, bool, enums and UUIDs can"
                    )
                parts[name] = part_for(found.converter.key_kind, choices=found.converter.choices)
            return parsed.bind(parts)
        except TemplateRefused as error:
            raise self.refusal(str(error)) from error

    def parse_template(self, text: str) -> Template:
        """Return a template's structure."""
        try:
            return Template.parse(text, self.table.settings.delimiter)
        except TemplateRefused as error:
            raise self.refusal(str(error)) from error

    def template_of_fields(self, names: tuple[str, ...]) -> str:
        """Return a template of the entity's name and the fields after it."""
        word = self.cls.__name__.upper()
        return self.table.settings.delimiter.join([word, *(f"{{{name}}}" for name in names)])

    def check_types(self, declared: KeyDeclaration) -> None:
        """Refuse parts of other types than their fields."""
        check_part_types(self.place, self.cls, self.fields, declared.types, declared.scope, declared.sorts)

    def check_parts(self, declared: tuple[str, ...], needed: tuple[str, ...], word: str) -> None:
        """Refuse parts that are not those of the templates."""
        absent = [name for name in needed if name not in declared]
        if absent:
            raise self.refusal(f"its key is made of {', '.join(absent)} too; declare it among the {word}")
        beyond = [name for name in declared if name not in needed]
        if beyond:
            raise self.refusal(
                f"{beyond[0]} is among its {word}, and no template has it there; leave it out, or put it into the "
                "template"
            )

    def check_fields(self, names: tuple[str, ...], word: str) -> None:
        """Refuse names that are no fields."""
        for name in names:
            if name not in self.fields:
                raise self.refusal(
                    f"{word} names {name!r}, and {self.cls.__name__} has no such field; it has "
                    f"{', '.join(self.fields)}"
                )
