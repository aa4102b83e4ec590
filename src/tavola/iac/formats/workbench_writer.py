"""Write a design as a NoSQL Workbench data model, and note what the model cannot express.

When the design was imported from a model, `merge_models` writes only the changes into it and keeps everything else,
including members that only Workbench understands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from tavola.iac.formats.entity_builder import FIELD_TYPES
from tavola.iac.formats.import_result import FormatNote, ImportReport, SampleItem
from tavola.iac.formats.sample_items import canonical_key, guess_delimiter, key_text, read_item
from tavola.iac.formats.source_values import python_label
from tavola.iac.formats.workbench import DATA_ACCESS, SERVICE, read_workbench
from tavola.iac.formats.workbench_entities import is_constant
from tavola.model.document import (
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    SourceDesign,
    TableDesign,
)
from tavola.values import Item

_SETTINGS = {
    "ttl": "TTL",
    "stream": "the stream",
    "recovery": "point-in-time recovery",
    "encryption": "the KMS key",
    "deletion_protection": "deletion protection",
    "tags": "tags",
    "replicas": "replicas",
}
_ENTITY = {
    "description": "the description",
    "immutable": "immutability",
    "items": "the number of items",
    "patterns": "access patterns",
    "writes": "writes",
}
_WRITTEN_OF_FIELDS = ("name", "attribute", "type", "tags", "required", "nullable", "key_kind")


def note_losses(
    design: Design, sampled: Collection[str], report: ImportReport, *, guesses: bool = True
) -> None:
    """Note what a model cannot express; `sampled` are entities with sample items, which show more.

    Without `guesses` the model keeps the aliases from which keys were guessed, so no guess is lost.
    """
    for table in design.tables:
        _note_table(table, report)
        for entity in table.entities:
            _note_entity(table, entity, entity.name in sampled, report, guesses=guesses)
    report.note_unwritten(design, "a Workbench model")


def _note_table(table: TableDesign, report: ImportReport) -> None:
    settings = table.settings
    lost = [words for name, words in _SETTINGS.items() if getattr(settings, name)]
    if settings.table_class != "STANDARD":
        lost.append("the table class")
    if settings.recovery_days != 35:
        lost.append("the recovery period")
    if settings.tag is not None:
        lost.append("the entity type attribute")
    for what, several in (("stream consumers", table.consumers), ("collections", table.collections)):
        if several:
            lost.append(what)
    if table.description:
        lost.append("the description")
    if table.label != python_label(table.name):
        lost.append(f"the label {table.label}")
    if not table.foreign:
        lost.append("Tavola's key encoding")
    aliases = [
        source.template.source if source.template is not None else source.field or ""
        for entity in table.entities
        if entity.key is not None
        for source in entity.key.sources
    ]
    if guess_delimiter(aliases) != settings.delimiter:
        lost.append(f"the delimiter {settings.delimiter}")
    if lost:
        report.add(table.name, f"a Workbench model cannot hold {', '.join(lost)}; not written")
    for index in table.indexes:
        if index.local:
            report.add(index.name, "a Workbench model cannot hold local indexes; not written")
        elif index.label != python_label(index.name, "index"):
            report.add(index.name, f"a Workbench model cannot hold the label {index.label}; not written")


def _note_entity(
    table: TableDesign, entity: EntityDesign, sampled: bool, report: ImportReport, *, guesses: bool
) -> None:
    lost = [words for name, words in _ENTITY.items() if getattr(entity, name)]
    if entity.version != 1:
        lost.append("the schema version")
    if entity.stale != "read":
        lost.append("the policy for stale keys")
    if entity.primary is not None and (entity.primary.access is not None or entity.primary.name != "Key"):
        lost.append("the access rate of its key")
    ranges = () if entity.key is None else entity.key.range
    lost += [
        f"that {source.field} is a field"
        for source in ranges
        if source.field not in (None, source.attribute) and is_constant(source.field or "")
    ]
    if entity.name != python_label(entity.tag):
        lost.append("the tag")
    for key in entity.all_keys:
        lost += _key_losses(key)
        if guesses and any(each.guessed for each in key.sources):
            lost.append("that its key is a guess")
    shown = [each for key in entity.keys for each in _sample_only(table, key)]
    absent = [each.name for each in entity.fields if each.nullable or not each.required]
    if absent:
        shown.append(f"that {', '.join(absent)} may be absent")
    if sampled and shown:
        report.add(entity.name, f"only the sample items show {', '.join(shown)}")
    elif shown:
        lost += shown
    typed = sorted({each.type for each in entity.fields if _has_own_type(each)})
    if typed:
        lost.append(f"the types {', '.join(typed)}")
    more = [each.name for each in entity.fields if _has_more_settings(each)]
    if more:
        lost.append(f"further settings of {', '.join(more)}")
    if lost:
        report.add(
            entity.name, f"a Workbench model cannot hold {', '.join(dict.fromkeys(lost))}; not written"
        )


def _key_losses(key: KeyDesign) -> Iterable[str]:
    if key.shards is not None:
        yield "shards"
    if key.members:
        yield f"the condition for membership in {key.index}"


def _sample_only(table: TableDesign, key: KeyDesign) -> Iterable[str]:
    """Yield the properties of a key that only sample items can show."""
    if key.sparse:
        yield f"that it may be absent from {key.index}"
    for source in key.sources:
        if source.template is not None and source.attribute not in table.settings.key_names:
            yield f"the template of {source.attribute}, {source.template.source}"


def _has_own_type(field: FieldDesign) -> bool:
    return len(field.tags) != 1 or field.type != FIELD_TYPES.get(field.tags[0])


def _has_more_settings(field: FieldDesign) -> bool:
    default: Any = FieldDesign("", "", "", ())
    return (field.name != field.attribute and not field.attribute.isidentifier()) or any(
        getattr(field, each.name) != getattr(default, each.name)
        for each in fields(FieldDesign)
        if each.name not in _WRITTEN_OF_FIELDS
    )


_NAMES = {
    "DataModel": "TableName",
    "NonKeyAttributes": "AttributeName",
    "GlobalSecondaryIndexes": "IndexName",
    "TableFacets": "FacetName",
}
_ABSENT: Any = object()

Name = Callable[[Any], Hashable]
"""Returns the identity of an element in its list; None if it has none."""


def merge_models(
    before: Mapping[str, Any], after: Mapping[str, Any], onto: Mapping[str, Any]
) -> dict[str, Any]:
    """Apply the changes from `before` to `after` to `onto`, and keep everything else in it (a three-way merge)."""
    return _merge_objects(before, after, onto, ())


def _merge_values(member: str, before: Any, after: Any, onto: Any, keys: tuple[str, ...]) -> Any:
    if before == after:
        return onto
    if isinstance(after, Mapping) and isinstance(before, Mapping) and isinstance(onto, Mapping):
        return _merge_objects(before, after, onto, keys)
    if isinstance(after, list) and isinstance(before, list) and isinstance(onto, list):
        return _merge_lists(before, after, onto, _naming(member, keys), keys)
    return after


def _merge_objects(
    before: Mapping[str, Any], after: Mapping[str, Any], onto: Mapping[str, Any], keys: tuple[str, ...]
) -> dict[str, Any]:
    own = _keys_of(after)
    merged = dict(onto)
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            merged.pop(name, None)
            continue
        found = _merge_values(
            name, before.get(name, _ABSENT), after[name], onto.get(name, _ABSENT), own or keys
        )
        if found is not _ABSENT:
            merged[name] = found
    return merged


def _merge_lists(
    before: list[Any], after: list[Any], onto: list[Any], name: Name, keys: tuple[str, ...]
) -> list[Any]:
    """Merge list elements by name; an element of `onto` without a name, or in neither model, is kept."""
    old = {name(each): each for each in before}
    new = {name(each): each for each in after}
    merged: list[Any] = []
    seen: set[Hashable] = set()
    for each in onto:
        own = name(each)
        if own is None or (own not in old and own not in new) or own in seen:
            if own not in seen or own in new:
                merged.append(each)
            continue
        seen.add(own)
        if own in new:
            merged.append(_merge_values("", old.get(own, _ABSENT), new[own], each, keys))
    return [*merged, *(each for own, each in new.items() if own not in seen and old.get(own) != each)]


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
    """Return the key attributes of a table; empty if the object is not a table."""
    found = table.get("KeyAttributes") if "TableName" in table else None
    return tuple(each["AttributeName"] for each in found.values()) if isinstance(found, Mapping) else ()


def _item_key(raw: Any, keys: tuple[str, ...]) -> Hashable:
    item = read_item(raw, "", ImportReport()) or {}
    if not keys or not all(name in item for name in keys):
        return None
    return json.dumps([canonical_key(item[name]) for name in keys])


VERSION = "3.0"
_ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
_JOINT = "#"


def write_workbench(
    design: Design,
    samples: Iterable[SampleItem] | None = None,
    *,
    onto: Mapping[str, Any] | None = None,
    name: str = "",
    date: str = "",
) -> tuple[dict[str, Any], tuple[FormatNote, ...]]:
    """Return a design as a model, and notes on what the model cannot express.

    `onto` is the model that the design was imported from: its name, its metadata and unchanged tables are kept.
    Without `samples` its sample items are kept too. `date` is the creation date of a new model.
    """
    report = ImportReport()
    former = None if onto is None else read_workbench(onto)
    written = list(samples if samples is not None else () if former is None else former.samples)
    shown = written if samples is not None else ()
    model = _model(
        design, written, name or (design.tables[0].label if design.tables else "Design"), date, report
    )
    note_losses(design, {sample.entity for sample in shown}, report, guesses=onto is None)
    if onto is None or former is None:
        return model, report.notes
    now = {table.name for table in design.tables}
    for gone in (table.name for table in former.design.tables if table.name not in now):
        report.add(gone, "not in the design; removed together with its items")
    before = _model(former.design, list(former.samples), model["ModelName"], date, ImportReport())
    return merge_models(before, model, onto), report.notes


def _model(
    design: Design, samples: list[SampleItem], name: str, date: str, report: ImportReport
) -> dict[str, Any]:
    return {
        "ModelName": name,
        "ModelMetadata": {
            "Author": "",
            "DateCreated": date,
            "DateLastModified": date,
            "Description": "",
            "AWSService": SERVICE,
            "Version": VERSION,
        },
        "DataModel": [_ModelTableWriter(table, samples, report).write() for table in design.tables],
    }


class _ModelTableWriter:
    """Writes one table of a model."""

    def __init__(self, table: TableDesign, samples: list[SampleItem], report: ImportReport) -> None:
        self.table = table
        self.report = report
        self.samples = [sample for sample in samples if sample.table == table.name]
        self.types: dict[str, str] = {}

    def write(self) -> dict[str, Any]:
        table, settings = self.table, self.table.settings
        indexes = [self._index(index) for index in table.indexes if not index.local]
        facets = [] if is_generic(table) else [self._facet(entity) for entity in table.entities]
        for entity in table.entities:
            for field in entity.fields:
                if field.attribute not in self._key_only_attributes(entity):
                    self._declare(field.attribute, field.tags[0] if field.tags else "S", entity.name)
        for index in table.indexes:
            for attribute in () if index.local else index.attributes:
                self._declare(attribute, table.key_types[attribute], index.name)
        owned = {entity.name for entity in table.entities} if facets else set()
        loose = [each.item for each in self.samples if each.entity not in owned]
        made: dict[str, Any] = {
            "TableName": table.name,
            "KeyAttributes": self._key((settings.hash,), () if settings.range is None else (settings.range,)),
            "NonKeyAttributes": [],
            "TableFacets": facets,
            "GlobalSecondaryIndexes": indexes,
            "TableData": self._items(loose),
            "DataAccess": dict(DATA_ACCESS),
            "BillingMode": "PAY_PER_REQUEST" if settings.read_units is None else "PROVISIONED",
        }
        for facet, entity in zip(facets, table.entities, strict=False):
            facet["TableData"] = self._items(
                [each.item for each in self.samples if each.entity == entity.name]
            )
        made["NonKeyAttributes"] = [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in self.types.items()
            if name not in settings.key_names
        ]
        if settings.read_units is not None:
            made["ProvisionedCapacitySettings"] = self._capacity()
        return made

    def _declare(self, attribute: str, tag: str, place: str) -> None:
        known = self.types.setdefault(attribute, tag)
        if known != tag:
            self.report.add(
                place,
                f"{attribute!r} has type {known} elsewhere and {tag} here; Workbench allows one type, using {known}",
            )

    def _key(self, hash_: tuple[str, ...], range_: tuple[str, ...]) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        for member, attributes in (("PartitionKey", hash_), ("SortKey", range_)):
            if attributes:
                name = _JOINT.join(attributes)
                kind = self.table.key_types[name] if len(attributes) == 1 else "S"
                keys[member] = {"AttributeName": name, "AttributeType": kind}
                if len(attributes) > 1:
                    self._declare(name, "S", self.table.name)
        return keys

    def _index(self, index: IndexDesign) -> dict[str, Any]:
        if len(index.hash) > 1 or len(index.range) > 1:
            self.report.add(
                index.name,
                "a Workbench model cannot hold multi-attribute keys; written as one attribute of joined text",
            )
        projection: dict[str, Any] = {"ProjectionType": index.projection}
        if isinstance(index.projection, tuple):
            projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
        return {
            "IndexName": index.name,
            "KeyAttributes": self._key(index.hash, index.range),
            "Projection": projection,
        }

    def _facet(self, entity: EntityDesign) -> dict[str, Any]:
        assert entity.key is not None, "an entity of a table has a key"
        alias = {"PartitionKeyAlias": alias_of(entity.key.hash[0])}
        if entity.key.range:
            alias["SortKeyAlias"] = alias_of(entity.key.range[0])
        key_only = self._key_only_attributes(entity)
        names = [field.attribute for field in entity.fields if field.attribute not in key_only]
        names += [source.attribute for key in entity.keys for source in key.sources]
        return {
            "FacetName": facet_name(self.table, entity),
            "KeyAttributeAlias": alias,
            "NonKeyAttributes": [
                name for name in dict.fromkeys(names) if name not in self.table.settings.key_names
            ],
            "TableData": [],
            "DataAccess": dict(DATA_ACCESS),
        }

    def _key_only_attributes(self, entity: EntityDesign) -> set[str]:
        """Return the attributes that occur only inside keys, in no sample item."""
        items = [sample.item for sample in self.samples if sample.entity == entity.name]
        if not items:
            return set()
        sources = [source for key in entity.all_keys for source in key.sources]
        inside = {name for source in sources if source.template is not None for name in source.fields}
        attributes = {field.attribute for field in entity.fields if field.name in inside}
        return {name for name in attributes if not any(name in item for item in items)}

    def _items(self, items: Iterable[Item]) -> list[Item]:
        return [dict(self._attributes(item)) for item in items]

    def _attributes(self, item: Item) -> Iterator[tuple[str, Any]]:
        for name, value in item.items():
            tag = next(iter(value))
            if tag == "NULL":
                self.report.add(
                    self.table.name,
                    f"{name!r} is null in an item; Workbench does not support null, not written",
                )
                continue
            own = self.table.key_types.get(name) if name in self.table.settings.key_names else None
            declared = own or self.types.setdefault(name, tag)
            if declared == tag:
                yield name, value
            elif declared == "S" and tag == "N":
                self.report.add(
                    self.table.name, f"{name!r} is a number in an item and text elsewhere; written as text"
                )
                yield name, {"S": key_text(value)}
            else:
                self.report.add(
                    self.table.name,
                    f"{name!r} has type {tag} in an item and {declared} elsewhere; not written in that item",
                )
        for index in self.table.indexes:
            for attributes in (index.hash, index.range):
                texts = [key_text(item.get(name)) for name in attributes]
                if len(attributes) > 1 and None not in texts:
                    yield _JOINT.join(attributes), {"S": _JOINT.join(text or "" for text in texts)}

    def _capacity(self) -> dict[str, Any]:
        settings = self.table.settings
        made: dict[str, Any] = {
            "ProvisionedThroughput": {
                "ReadCapacityUnits": settings.read_units,
                "WriteCapacityUnits": settings.write_units,
            }
        }
        scaling = settings.scaling
        if scaling is not None:
            for word, least, most in (
                ("Read", scaling.read_min, scaling.read_max),
                ("Write", scaling.write_min, scaling.write_max),
            ):
                made[f"AutoScaling{word}"] = {
                    "ScalableTargetRequest": {
                        "MinCapacity": least,
                        "MaxCapacity": most,
                        "ServiceRole": _ROLE,
                    },
                    "ScalingPolicyConfiguration": {"TargetValue": scaling.target},
                }
        return made


def alias_of(source: SourceDesign) -> str:
    """Return the alias of a key attribute: its template, its field's name, or a constant in quotes."""
    if source.template is None:
        return source.field or source.attribute
    return source.template.source if source.template.fields else f'"{source.template.source}"'


def facet_name(table: TableDesign, entity: EntityDesign) -> str:
    """Return the name of an entity's facet."""
    return entity.tag if table.settings.tag is None else entity.name


def is_generic(table: TableDesign) -> bool:
    """Return whether a table's only entity adds nothing to the table, so that it needs no facet."""
    if len(table.entities) != 1:
        return not table.entities
    (entity,) = table.entities
    sources = () if entity.key is None else entity.key.sources
    plain = all(source.field == source.attribute for source in sources)
    indexed = {name for index in table.indexes if not index.local for name in index.attributes}
    attributes = {field.attribute for field in entity.fields} - set(table.settings.key_names)
    if not indexed - set(table.settings.key_names) <= attributes or attributes <= indexed:
        return False
    return entity.name == entity.tag == table.label and plain and table.settings.tag is None
