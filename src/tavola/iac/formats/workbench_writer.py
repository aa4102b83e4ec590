"""NoSQL Workbench: a design written as a data model, and what of the design the model cannot hold.

Written onto the file that a design came from, whatever did not change stays there as it was, to the last key that
only the Workbench understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tavola.iac.formats.import_result import FormatNote, ImportReport, SampleItem
from tavola.iac.formats.sample_items import key_text
from tavola.iac.formats.workbench import DATA_ACCESS, SERVICE, read_workbench
from tavola.iac.formats.workbench_losses import note_losses
from tavola.iac.formats.workbench_merging import merge_models
from tavola.model.document import Design, EntityDesign, IndexDesign, SourceDesign, TableDesign
from tavola.values import Item

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
    """Return a design as a model, and notes on what the model cannot hold.

    `onto` is the model that the design came from: its name, its metadata and every table that did not change stay.
    Without `samples` those of `onto` stay too. `date` is what a new model says of its making.
    """
    report = ImportReport()
    former = None if onto is None else read_workbench(onto)
    told = list(samples if samples is not None else () if former is None else former.samples)
    shown = told if samples is not None else ()
    model = _model(design, told, name or _name(design), date, report)
    note_losses(design, {sample.entity for sample in shown}, report, guesses=onto is None)
    if onto is None or former is None:
        return model, report.notes
    now = {table.name for table in design.tables}
    for gone in (table.name for table in former.design.tables if table.name not in now):
        report.add(gone, "it is no table of the design, so it is left out, with its items")
    before = _model(former.design, list(former.samples), model["ModelName"], date, ImportReport())
    return merge_models(before, model, onto), report.notes


def _name(design: Design) -> str:
    return design.tables[0].label if design.tables else "Design"


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
        "DataModel": [_TableWriter(table, samples, report).write() for table in design.tables],
    }


class _TableWriter:
    """One table as the Workbench has it."""

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
                if field.attribute not in self._in_keys_alone(entity):
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
                f"{attribute!r} is of type {known} elsewhere and of {tag} here; the Workbench has {known} for both",
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
                "a key of several attributes is none that a model has; each is shown as one attribute of joined text",
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
        assert entity.key is not None, "what lives in a table has a key"
        alias = {"PartitionKeyAlias": alias_of(entity.key.hash[0])}
        if entity.key.range:
            alias["SortKeyAlias"] = alias_of(entity.key.range[0])
        alone = self._in_keys_alone(entity)
        names = [field.attribute for field in entity.fields if field.attribute not in alone]
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

    def _in_keys_alone(self, entity: EntityDesign) -> set[str]:
        """Return the attributes that only stand inside keys: samples have them nowhere."""
        items = [sample.item for sample in self.samples if sample.entity == entity.name]
        if not items:
            return set()
        sources = [source for key in (entity.key, *entity.keys) if key is not None for source in key.sources]
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
                    self.table.name, f"{name!r} is null in an item, which the Workbench does not take"
                )
                continue
            own = self.table.key_types.get(name) if name in self.table.settings.key_names else None
            wanted = own or self.types.setdefault(name, tag)
            if wanted == tag:
                yield name, value
            elif wanted == "S" and tag == "N":
                self.report.add(
                    self.table.name, f"{name!r} is a number in an item and text elsewhere; text is written"
                )
                yield name, {"S": key_text(value)}
            else:
                self.report.add(
                    self.table.name,
                    f"{name!r} is of type {tag} in an item and of {wanted} elsewhere; left out there",
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
    """Return how a facet shows a key: its template, the field that it is, or in quotes what is always the same."""
    if source.template is None:
        return source.field or source.attribute
    return source.template.source if source.template.fields else f'"{source.template.source}"'


def facet_name(table: TableDesign, entity: EntityDesign) -> str:
    """Return what an entity's facet is called."""
    return entity.tag if table.settings.tag is None else entity.name


def is_generic(table: TableDesign) -> bool:
    """Tell whether a table's one entity says no more than the table, so that it needs no facet."""
    if len(table.entities) != 1:
        return not table.entities
    (entity,) = table.entities
    sources = () if entity.key is None else entity.key.sources
    plain = all(source.field == source.attribute for source in sources)
    indexed = {name for index in table.indexes if not index.local for name in index.attributes}
    told = {field.attribute for field in entity.fields} - set(table.settings.key_names)
    if not indexed - set(table.settings.key_names) <= told or told <= indexed:
        return False
    return entity.name == entity.tag == table.label and plain and table.settings.tag is None
