"""Read the entities of a Workbench model: from its facets, from a type attribute of its items, or one for all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tavola.iac.formats.entity_builder import EntityBuilder, escape_braces
from tavola.iac.formats.import_result import ImportReport, SampleItem
from tavola.iac.formats.sample_items import find_discriminator, guess_delimiter, guess_template, key_text
from tavola.iac.formats.source_values import as_text, python_label
from tavola.model.document import EntityDesign, KeyDesign, SourceDesign, TableDesign
from tavola.values import Item

_DOLLAR = re.compile(r"\$\{([^{}]+)\}|<([^<>{}]+)>")


@dataclass(frozen=True, slots=True)
class Facet:
    """One kind of item, as a model describes it."""

    name: str
    hash_alias: str
    range_alias: str
    attributes: tuple[str, ...]
    raw: Mapping[str, Any]
    templates: Mapping[str, str] = field(default_factory=dict)  # by attribute, from ModelSchema
    tag: str = ""


class EntitiesReader:
    """Builds the entities of one table."""

    def __init__(
        self, table: TableDesign, attributes: Mapping[str, str], report: ImportReport, taken: set[str]
    ) -> None:
        self.table = table
        self.settings = table.settings
        self.attributes = attributes  # types by name, without the table's key
        self.report = report
        self.taken = set(taken)
        self.keys = set(table.key_types)

    def entities(
        self, facets: list[Facet], samples: list[SampleItem], raw: Mapping[str, Any]
    ) -> tuple[tuple[EntityDesign, ...], list[SampleItem]]:
        """Return the entities, and the samples with the entity that each belongs to."""
        items = [sample.item for sample in samples]
        key_texts = [
            text
            for item in items
            for name in self.settings.key_names
            if (text := item.get(name, {}).get("S"))
        ]
        aliases = [alias for facet in facets for alias in (facet.hash_alias, facet.range_alias)]
        self.settings = replace(
            self.settings, delimiter=guess_delimiter(key_texts or [alias for alias in aliases if alias])
        )
        groups = {
            facet.name: [sample.item for sample in samples if sample.entity == facet.name] for facet in facets
        }
        if not facets:
            facets = self._models(raw)
        if not facets:
            facets, groups = self._split_by_discriminator(items)
            entity_names = {id(item): name for name, group in groups.items() for item in group}
            samples = [replace(sample, entity=entity_names[id(sample.item)]) for sample in samples]
        elif groups:
            self._find_tag(facets, groups)
        names: dict[str, str] = {}
        designs: list[EntityDesign] = []
        for facet in facets:
            name = names[facet.name] = self._name(facet.name)
            designs.append(self._entity(facet, name, groups.get(facet.name, []), several=len(facets) > 1))
        return tuple(designs), [replace(sample, entity=names.get(sample.entity, "")) for sample in samples]

    def _name(self, preferred: str) -> str:
        name = python_label(preferred, "Entity")
        while name in self.taken:
            name += "_"
        if name != preferred:
            self.report.add(preferred, f"imported as entity {name}")
        self.taken.add(name)
        return name

    def _split_by_discriminator(self, items: list[Item]) -> tuple[list[Facet], dict[str, list[Item]]]:
        """Return a facet for each value of the type attribute; one for all items if there is no such attribute."""
        indexed = {name for index in self.table.indexes for name in index.attributes}
        if not items and set(self.attributes) <= indexed:
            return [], {}  # the model does not describe any items
        tag = find_discriminator(items, self.keys)
        if tag is None:
            name = self.table.label
            return [Facet(name, "", "", tuple(self.attributes), {})], {name: items}
        self.settings = replace(self.settings, tag=tag)
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(key_text(item.get(tag)) or self.table.label, []).append(item)
        facets = [
            Facet(
                name,
                "",
                "",
                tuple(attribute for attribute in self.attributes if any(attribute in item for item in group)),
                {},
            )
            for name, group in groups.items()
        ]
        self.report.add(self.table.name, f"no facets; {tag} separates the items into {len(groups)} entities")
        return facets, groups

    def _find_tag(self, facets: list[Facet], groups: Mapping[str, list[Item]]) -> None:
        """Set the type attribute, if each facet's items share one value of it that no other facet has."""
        tag = find_discriminator([item for group in groups.values() for item in group], self.keys)
        if tag is None:
            return
        values_by_facet = {
            name: {key_text(item.get(tag)) for item in group} for name, group in groups.items()
        }
        values = [next(iter(value)) for value in values_by_facet.values() if len(value) == 1]
        if len(values) == len(facets) == len(set(values)) and None not in values:
            self.settings = replace(self.settings, tag=tag)
            facets[:] = [
                replace(facet, tag=next(iter(values_by_facet[facet.name])) or "") for facet in facets
            ]

    def _models(self, raw: Mapping[str, Any]) -> list[Facet]:
        """Return a facet for each model of a `ModelSchema`, which writes keys as `${attribute}`."""
        schema = raw.get("ModelSchema")
        models = schema.get("models") if isinstance(schema, Mapping) else None
        facets_found: list[Facet] = []
        for name, model in models.items() if isinstance(models, Mapping) else ():
            if not isinstance(model, Mapping):
                continue
            templates = {
                attribute: _convert_placeholders(value)
                for attribute, field_schema in model.items()
                if isinstance(field_schema, Mapping)
                and (value := as_text(field_schema.get("value"))) is not None
            }
            attributes = tuple(attribute for attribute in model if attribute not in self.settings.key_names)
            facets_found.append(Facet(name, "", "", attributes, {}, templates))
        if facets_found:
            self.report.add(self.table.name, "using the entities and keys of ModelSchema")
        return facets_found

    def _entity(self, facet: Facet, name: str, items: list[Item], *, several: bool) -> EntityDesign:
        tag = facet.tag or facet.name
        types = {**self.attributes, **self.table.key_types}
        builder = EntityBuilder(name, tag, self.settings.delimiter, facet.name, self.report, types)
        has = dict.fromkeys((*facet.attributes, *self.settings.key_names))
        indexes = [
            index for index in self.table.indexes if all(attribute in has for attribute in index.attributes)
        ]
        indexed = [
            attribute
            for index in indexes
            for attribute in index.attributes
            if attribute not in self.settings.key_names
        ]
        index_attributes = [attribute for attribute in has if attribute in indexed]
        templates = {
            index_attribute: text
            for index_attribute in index_attributes
            if (text := self._index_text(facet, index_attribute, items)) is not None
        }
        for attribute in facet.attributes:
            if attribute not in templates and attribute not in self.settings.key_names:
                builder.field(attribute)
        sources: dict[str, SourceDesign] = {}
        for attribute, alias in zip(
            self.settings.key_names, (facet.hash_alias, facet.range_alias), strict=False
        ):
            source_text = self._key_text(facet, attribute, alias, items, builder, several=several)
            sources[attribute] = builder.source(
                attribute,
                self.table.key_types[attribute],
                source_text.template,
                f"{facet.name}.{attribute}",
                source_text.name,
                guessed=source_text.guessed,
            )
        for attribute in index_attributes:
            text = templates.get(attribute)
            place = f"{facet.name}.{attribute}"
            sources[attribute] = builder.source(
                attribute,
                self.table.key_types[attribute],
                text,
                place,
                guessed=attribute not in facet.templates,
            )
        absent = {attribute for attribute in facet.attributes if any(attribute not in item for item in items)}
        for attribute in absent:
            if attribute not in sources or sources[attribute].template is None:
                builder.update_field(attribute, required=False, nullable=True)
        names = self.settings.key_names
        primary_key = KeyDesign(None, (sources[names[0]],), tuple(sources[name] for name in names[1:]))
        keys = [
            KeyDesign(
                index.name,
                tuple(sources[attribute] for attribute in index.hash),
                tuple(sources[attribute] for attribute in index.range),
                sparse=any(attribute in absent for attribute in index.attributes),
            )
            for index in indexes
        ]
        entity = builder.entity(primary_key, keys)
        last = [entity_field for entity_field in entity.fields if entity_field.attribute in names]
        return replace(
            entity,
            fields=(*(entity_field for entity_field in entity.fields if entity_field not in last), *last),
        )

    def _candidates(self, facet: Facet) -> list[str]:
        """Return the attributes whose values a key part may contain."""
        return [
            attribute
            for attribute in facet.attributes
            if attribute != self.settings.tag
            and self.attributes.get(attribute, "S") in ("S", "N")
            and attribute not in self.keys
            and not set(attribute) & set("{}:")
        ]

    def _index_text(self, facet: Facet, attribute: str, items: Sequence[Item]) -> str | None:
        if attribute in facet.templates:
            return facet.templates[attribute]
        if self.table.key_types[attribute] != "S":
            return None
        delimiter = self.settings.delimiter
        if not any(delimiter in (key_text(item.get(attribute)) or "") for item in items):
            return None
        return self._guess(facet, attribute, items, None, constant=False)

    def _guess(
        self,
        facet: Facet,
        attribute: str,
        items: Sequence[Item],
        builder: EntityBuilder | None,
        *,
        constant: bool,
    ) -> str | None:
        """Return the template that fits a key's sample values; `builder` has the fields of the preceding keys."""
        candidates = self._candidates(facet)
        hash_field = None if builder is None else builder.find(self.settings.hash)
        if hash_field is not None and hash_field.attribute == self.settings.hash:
            candidates.append(self.settings.hash)  # a sort key may repeat it
        guess = guess_template(
            attribute,
            items,
            self.settings.delimiter,
            candidates,
            {*self.attributes, *self.settings.key_names},
            constant=constant,
        )
        if guess is None:
            return None
        text, field_names = guess
        only_in_key = f"; {', '.join(field_names)} exists only in the key" if field_names else ""
        self.report.add(f"{facet.name}.{attribute}", f"guessed {text} from the sample items{only_in_key}")
        return text

    def _key_text(
        self,
        facet: Facet,
        attribute: str,
        alias: str,
        items: Sequence[Item],
        builder: EntityBuilder,
        *,
        several: bool,
    ) -> _KeyText:
        """Return the template of a table's key attribute: as the model states it, or guessed from alias and samples."""
        if attribute in facet.templates:
            return _KeyText(facet.templates[attribute])
        free = alias.isidentifier() and builder.find(alias) is None and alias not in self.settings.key_names
        if self.table.key_types[attribute] != "S":
            return _KeyText(None, alias if free else "")
        if len(alias) > 2 and alias[0] == alias[-1] == '"':  # a constant, as Tavola exports it
            return _KeyText(alias[1:-1])
        template = _convert_placeholders(alias)
        if re.search(r"(?<!\{)\{[^{}]+\}", template):
            return _KeyText(template)
        place = f"{facet.name}.{attribute}"
        tokens = alias.split(self.settings.delimiter)
        if len(tokens) > 1:
            rows = [(key_text(item.get(attribute)) or "").split(self.settings.delimiter) for item in items]
            text = self._alias_text(facet, tokens, rows)
            if text is not None:
                return self._guess_from_alias(text, place)
            self.report.add(place, f"the sample items do not match the alias {alias!r}")
            free = False
        elif alias in self._candidates(facet):
            return self._guess_from_alias(f"{{{alias}}}", place)
        elif alias and alias != attribute and not free:
            self.report.add(place, f"alias {alias!r} is display text; not imported")
        sorts = attribute == self.settings.range
        guess = self._guess(facet, attribute, items, builder, constant=several and sorts)
        if guess is not None:
            return _KeyText(guess, guessed=True)
        if not free:
            return _KeyText(None)
        if not items and is_constant(alias) and sorts:
            return self._guess_from_alias(alias, place)  # such as PROFILE
        self.report.add(place, f"named {alias}, after its alias")
        return _KeyText(None, alias)

    def _guess_from_alias(self, text: str, place: str) -> _KeyText:
        self.report.add(place, f"guessed {text} from the alias")
        return _KeyText(text, guessed=True)

    def _alias_text(self, facet: Facet, tokens: list[str], rows: list[list[str]]) -> str | None:
        """Return the template of an alias such as `ORDER#orderId`; None if the samples do not match it.

        A part becomes a field if it names an attribute of the facet, if the samples differ there, or, without samples,
        if a literal word precedes it. Any other part is a literal.
        """
        known = {candidate.casefold(): candidate for candidate in self._candidates(facet)}
        if any(len(row) < len(tokens) for row in rows):
            return None
        parts: list[str] = []
        after_word = False
        for position, token in enumerate(tokens):
            constant = bool(rows) and all(row[position] == token for row in rows)
            nameable = token.isidentifier() and not token.isupper() and (bool(rows) or after_word)
            after_word = False
            if not constant and token.casefold() in known:
                parts.append(f"{{{known[token.casefold()]}}}")
            elif not constant and nameable:
                parts.append(f"{{{token}}}")
            elif constant or not rows:
                parts.append(escape_braces(token))
                after_word = bool(token)
            else:
                return None
        return self.settings.delimiter.join(parts)


@dataclass(frozen=True, slots=True)
class _KeyText:
    """The template of a key attribute (None if unknown), and the name of its own field without one."""

    template: str | None
    name: str = ""
    guessed: bool = False


def is_constant(alias: str) -> bool:
    """Return whether an alias reads as a constant sort key, such as PROFILE, rather than as a name."""
    return alias.isupper() and len(alias) > 2 and alias.isalpha()


def _convert_placeholders(text: str) -> str:
    """Return a text with `${name}` and `<name>` as Tavola's `{name}`."""
    return _DOLLAR.sub(lambda match: f"{{{match[1] or match[2]}}}", text)
