"""Entities of a Workbench model: from its facets, from what its items say they are, or one for all."""

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
    """What a model says of one kind of items."""

    name: str
    hash_alias: str
    range_alias: str
    attributes: tuple[str, ...]
    raw: Mapping[str, Any]
    templates: Mapping[str, str] = field(
        default_factory=dict
    )  # by attribute, where another part of the file says them
    tag: str = ""


class EntitiesReader:
    """Makes the entities of one table."""

    def __init__(
        self, table: TableDesign, attributes: Mapping[str, str], report: ImportReport, taken: set[str]
    ) -> None:
        self.table = table
        self.settings = table.settings
        self.attributes = attributes  # of the table's items, by type; those of its key left out
        self.report = report
        self.taken = set(taken)
        self.keys = set(table.key_types)

    def entities(
        self, facets: list[Facet], samples: list[SampleItem], raw: Mapping[str, Any]
    ) -> tuple[tuple[EntityDesign, ...], list[SampleItem]]:
        """Return the entities, and the samples with the entity that each belongs to."""
        items = [sample.item for sample in samples]
        told = [
            text
            for item in items
            for name in self.settings.key_names
            if (text := item.get(name, {}).get("S"))
        ]
        aliases = [alias for facet in facets for alias in (facet.hash_alias, facet.range_alias)]
        self.settings = replace(
            self.settings, delimiter=guess_delimiter(told or [each for each in aliases if each])
        )
        groups = {
            facet.name: [each.item for each in samples if each.entity == facet.name] for facet in facets
        }
        if not facets:
            facets = self._models(raw)
        if not facets:
            facets, groups = self._split_by_discriminator(items)
            whose = {id(item): name for name, group in groups.items() for item in group}
            samples = [replace(sample, entity=whose[id(sample.item)]) for sample in samples]
        elif groups:
            self._find_tag(facets, groups)
        names: dict[str, str] = {}
        made: list[EntityDesign] = []
        for facet in facets:
            name = names[facet.name] = self._name(facet.name)
            made.append(self._entity(facet, name, groups.get(facet.name, []), several=len(facets) > 1))
        return tuple(made), [replace(each, entity=names.get(each.entity, "")) for each in samples]

    def _name(self, wanted: str) -> str:
        name = python_label(wanted, "Entity")
        while name in self.taken:
            name += "_"
        if name != wanted:
            self.report.add(wanted, f"the entity is called {name}")
        self.taken.add(name)
        return name

    def _split_by_discriminator(self, items: list[Item]) -> tuple[list[Facet], dict[str, list[Item]]]:
        """Return a facet for each kind of items that says what it is; one for all if none does."""
        indexed = {name for index in self.table.indexes for name in index.attributes}
        if not items and set(self.attributes) <= indexed:
            return [], {}  # nothing is said of what is in the table
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
                tuple(each for each in self.attributes if any(each in item for item in group)),
                {},
            )
            for name, group in groups.items()
        ]
        self.report.add(self.table.name, f"it has no facets; {tag} tells {len(groups)} entities apart")
        return facets, groups

    def _find_tag(self, facets: list[Facet], groups: Mapping[str, list[Item]]) -> None:
        """Take the attribute by which items say what they are, if it does so facet by facet."""
        tag = find_discriminator([item for group in groups.values() for item in group], self.keys)
        if tag is None:
            return
        told = {name: {key_text(item.get(tag)) for item in group} for name, group in groups.items()}
        values = [next(iter(each)) for each in told.values() if len(each) == 1]
        if len(values) == len(facets) == len(set(values)) and None not in values:
            self.settings = replace(self.settings, tag=tag)
            facets[:] = [replace(facet, tag=next(iter(told[facet.name])) or "") for facet in facets]

    def _models(self, raw: Mapping[str, Any]) -> list[Facet]:
        """Return a facet for each model of a `ModelSchema`, which writes keys as `${attribute}`."""
        schema = raw.get("ModelSchema")
        models = schema.get("models") if isinstance(schema, Mapping) else None
        found: list[Facet] = []
        for name, model in models.items() if isinstance(models, Mapping) else ():
            if not isinstance(model, Mapping):
                continue
            templates = {
                attribute: _convert_placeholders(value)
                for attribute, told in model.items()
                if isinstance(told, Mapping) and (value := as_text(told.get("value"))) is not None
            }
            attributes = tuple(each for each in model if each not in self.settings.key_names)
            found.append(Facet(name, "", "", attributes, {}, templates))
        if found:
            self.report.add(self.table.name, "its entities and keys are those of its ModelSchema")
        return found

    def _entity(self, facet: Facet, name: str, items: list[Item], *, several: bool) -> EntityDesign:
        tag = facet.tag or facet.name
        types = {**self.attributes, **self.table.key_types}
        maker = EntityBuilder(name, tag, self.settings.delimiter, facet.name, self.report, types)
        has = dict.fromkeys((*facet.attributes, *self.settings.key_names))
        indexes = [index for index in self.table.indexes if all(each in has for each in index.attributes)]
        told = [each for index in indexes for each in index.attributes if each not in self.settings.key_names]
        fed = [each for each in has if each in told]
        templates = {each: text for each in fed if (text := self._index_text(facet, each, items)) is not None}
        for attribute in facet.attributes:
            if attribute not in templates and attribute not in self.settings.key_names:
                maker.field(attribute)
        sources: dict[str, SourceDesign] = {}
        for attribute, alias in zip(
            self.settings.key_names, (facet.hash_alias, facet.range_alias), strict=False
        ):
            made = self._key_text(facet, attribute, alias, items, maker, several=several)
            sources[attribute] = maker.source(
                attribute,
                self.table.key_types[attribute],
                made.template,
                f"{facet.name}.{attribute}",
                made.name,
                guessed=made.guessed,
            )
        for attribute in fed:
            text = templates.get(attribute)
            place = f"{facet.name}.{attribute}"
            sources[attribute] = maker.source(
                attribute,
                self.table.key_types[attribute],
                text,
                place,
                guessed=attribute not in facet.templates,
            )
        absent = {each for each in facet.attributes if any(each not in item for item in items)}
        for attribute in absent:
            if attribute not in sources or sources[attribute].template is None:
                maker.update_field(attribute, required=False, nullable=True)
        names = self.settings.key_names
        own = KeyDesign(None, (sources[names[0]],), tuple(sources[each] for each in names[1:]))
        keys = [
            KeyDesign(
                index.name,
                tuple(sources[each] for each in index.hash),
                tuple(sources[each] for each in index.range),
                sparse=any(each in absent for each in index.attributes),
            )
            for index in indexes
        ]
        entity = maker.entity(own, keys)
        last = [each for each in entity.fields if each.attribute in names]
        return replace(entity, fields=(*(each for each in entity.fields if each not in last), *last))

    def _candidates(self, facet: Facet) -> list[str]:
        """Return the attributes that a part of a key may be."""
        return [
            each
            for each in facet.attributes
            if each != self.settings.tag
            and self.attributes.get(each, "S") in ("S", "N")
            and each not in self.keys
            and not set(each) & set("{}:")
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
        maker: EntityBuilder | None,
        *,
        constant: bool,
    ) -> str | None:
        """Return the template that the samples of a key show; `maker` knows the fields of the keys before it."""
        candidates = self._candidates(facet)
        own = None if maker is None else maker.find(self.settings.hash)
        if own is not None and own.attribute == self.settings.hash:
            candidates.append(self.settings.hash)  # a sort key may repeat it
        found = guess_template(
            attribute,
            items,
            self.settings.delimiter,
            candidates,
            {*self.attributes, *self.settings.key_names},
            constant=constant,
        )
        if found is None:
            return None
        text, made = found
        beside = f"; only the key holds {', '.join(made)}" if made else ""
        self.report.add(
            f"{facet.name}.{attribute}", f"by its sample items it is {text}, which is a guess{beside}"
        )
        return text

    def _key_text(
        self,
        facet: Facet,
        attribute: str,
        alias: str,
        items: Sequence[Item],
        maker: EntityBuilder,
        *,
        several: bool,
    ) -> _KeyText:
        """Return what a model says of a table's key attribute, or what its alias and its samples seem to say."""
        if attribute in facet.templates:
            return _KeyText(facet.templates[attribute])
        free = alias.isidentifier() and maker.find(alias) is None and alias not in self.settings.key_names
        if self.table.key_types[attribute] != "S":
            return _KeyText(None, alias if free else "")
        if len(alias) > 2 and alias[0] == alias[-1] == '"':  # as we write what is always the same
            return _KeyText(alias[1:-1])
        told = _convert_placeholders(alias)
        if re.search(r"(?<!\{)\{[^{}]+\}", told):
            return _KeyText(told)
        place = f"{facet.name}.{attribute}"
        tokens = alias.split(self.settings.delimiter)
        if len(tokens) > 1:
            rows = [(key_text(item.get(attribute)) or "").split(self.settings.delimiter) for item in items]
            text = self._alias_text(facet, tokens, rows)
            if text is not None:
                return self._by_alias(text, place)
            self.report.add(place, f"its items have not the form of its alias {alias!r}")
            free = False
        elif alias in self._candidates(facet):
            return self._by_alias(f"{{{alias}}}", place)
        elif alias and alias != attribute and not free:
            self.report.add(place, f"its alias {alias!r} is display text; it is left out")
        sorts = attribute == self.settings.range
        guess = self._guess(facet, attribute, items, maker, constant=several and sorts)
        if guess is not None:
            return _KeyText(guess, guessed=True)
        if not free:
            return _KeyText(None)
        if not items and is_constant(alias) and sorts:
            return self._by_alias(alias, place)  # such as PROFILE
        self.report.add(place, f"by its alias it is called {alias}")
        return _KeyText(None, alias)

    def _by_alias(self, text: str, place: str) -> _KeyText:
        self.report.add(place, f"by its alias it is {text}, which is a guess")
        return _KeyText(text, guessed=True)

    def _alias_text(self, facet: Facet, tokens: list[str], rows: list[list[str]]) -> str | None:
        """Return the template that an alias such as `ORDER#orderId` stands for; None if the samples have not its form.

        A part is a field if it is an attribute of the facet, or where samples differ there. Without samples it is one
        also if a word stands before it, which then says what it is; any other part is what it says.
        """
        known = {each.casefold(): each for each in self._candidates(facet)}
        if any(len(row) < len(tokens) for row in rows):
            return None
        parts: list[str] = []
        after_word = False
        for at, token in enumerate(tokens):
            constant = bool(rows) and all(row[at] == token for row in rows)
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
    """What a key attribute is made by, None if nobody says, and what its own field is called then."""

    template: str | None
    name: str = ""
    guessed: bool = False


def is_constant(alias: str) -> bool:
    """Tell whether an alias reads as what a sort key always is, and not as a name."""
    return alias.isupper() and len(alias) > 2 and alias.isalpha()


def _convert_placeholders(text: str) -> str:
    """Return placeholders of other tools, `${name}` and `<name>`, as ours."""
    return _DOLLAR.sub(lambda found: f"{{{found[1] or found[2]}}}", text)
