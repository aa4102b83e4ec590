"""Read a NoSQL Workbench data model.

A facet is an entity. Without facets, an attribute that holds the item type separates entities; without that there is one entity. A facet's
alias is display text in which people write templates; if it is not one, the keys of the sample items are examined. The format is
known from files only: whatever else a file contains is reported, and preserved when writing back to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tavola.iac.formats.import_result import FormatRefused, ImportReport, ImportResult, SampleItem
from tavola.iac.formats.related_resources import ScalingTarget, add_scaling
from tavola.iac.formats.sample_items import read_item, select_storable
from tavola.iac.formats.source_values import (
    TrackedMapping,
    ValueReader,
    as_plain_data,
    as_text,
    report_unread,
    require_name,
    show_value,
)
from tavola.iac.formats.table_definitions import give_tables_unique_names, read_table
from tavola.iac.formats.workbench_entities import EntitiesReader, Facet
from tavola.model.document import Design, TableDesign
from tavola.values import TAGS, Item

FORMAT = "workbench"
_UNTOLD = ("ttl", "stream", "recovery", "deletion_protection", "encryption", "table_class", "tags")
SERVICE = "Amazon DynamoDB"
VERSIONS = re.compile(r"[123](\.[0-9]+)*")

_BESIDE = frozenset(  # what a model says of itself, and no design does
    ("ModelName", "Author", "DateCreated", "DateLastModified", "Description", "ServiceRole")
)
DATA_ACCESS: Mapping[str, Any] = {"MySql": {}}


def is_workbench(raw: Any) -> bool:
    """Tell whether data is a model of the Workbench, of DynamoDB or of another service."""
    return isinstance(raw, Mapping) and (
        ("ModelName" in raw and "DataModel" in raw) or isinstance(raw.get("ModelMetadata"), Mapping)
    )


def read_workbench(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a model, with its sample items."""
    report = ImportReport()
    watch = TrackedMapping(raw)
    _check_metadata(watch, report)
    models = watch.get("DataModel")
    if not isinstance(models, list) or not any(isinstance(each, Mapping) for each in models):
        raise FormatRefused("there is no table in its DataModel; give the model a table and export it again")
    tables: list[TableDesign] = []
    samples: list[SampleItem] = []
    taken: set[str] = set()
    for at, table in enumerate(models):
        place = f"DataModel[{at}]"
        if not isinstance(table, Mapping):
            report.add(place, f"{show_value(table)} is no table, so it is left out")
            continue
        made, items = _TableReader(table, place, report, taken).table()
        taken |= {entity.name for entity in made.entities}
        tables.append(made)
        samples += items
        _tell(table, made.name, report)
        as_plain_data(table)  # which is told now, in its own names
    kept = give_tables_unique_names(tables, report)
    _tell(watch, "the model", report)
    report.add(
        "",
        "a model says nothing of access patterns, so the design has none; TTL, stream, recovery, encryption and tags are unknown",
    )
    report.add("", "ModelName and ModelMetadata are no part of a design; written onto this file they stay")
    return ImportResult(Design(kept), report.notes, FORMAT, tuple(samples), dict(raw))


def _tell(raw: Mapping[str, Any], place: str, report: ImportReport) -> None:
    report_unread(raw, place, report, ignore=_BESIDE, why="not understood; written onto this file it stays")


def _check_metadata(raw: Mapping[str, Any], report: ImportReport) -> None:
    metadata = raw.get("ModelMetadata")
    if not isinstance(metadata, Mapping):
        report.add("ModelMetadata", "it is missing; the model is taken for one of DynamoDB")
        return
    service = metadata.get("AWSService", SERVICE)
    if service != SERVICE:
        raise FormatRefused(
            f"the model is of {as_text(service) or show_value(service)}; name one of {SERVICE}",
            "ModelMetadata.AWSService",
        )
    version = as_text(metadata.get("Version"))
    if version is None or not VERSIONS.fullmatch(version):
        report.add(
            "ModelMetadata.Version", f"{show_value(version)} is no version that is known; it is read as 3.0"
        )


class _TableReader:
    """One table of a model."""

    def __init__(self, raw: Mapping[str, Any], place: str, report: ImportReport, taken: set[str]) -> None:
        self.raw = raw
        self.report = report
        self.read = ValueReader(report)
        self.name = require_name(raw, "TableName", place)
        self.place = self.name
        self.taken = taken  # names that entities of other tables have
        self.types: dict[str, str] = {}

    def table(self) -> tuple[TableDesign, list[SampleItem]]:
        self._access(self.raw, self.place)
        schema = self._keys(self.raw.get("KeyAttributes"), f"{self.place}.KeyAttributes")
        keys = tuple(each["AttributeName"] for each in schema)
        key_types = dict(self.types)
        attributes = self._attributes(keys)
        body: dict[str, Any] = {
            "TableName": self.name,
            "KeySchema": schema,
            "GlobalSecondaryIndexes": self._indexes(),
            **self._capacity(),
        }
        indexed = {
            each["AttributeName"] for index in body["GlobalSecondaryIndexes"] for each in index["KeySchema"]
        }
        body["AttributeDefinitions"] = [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in {**self.types, **key_types}.items()
            if name in keys or name in indexed
        ]
        table = self._scaled(read_table(body, self.place, self.report))
        facets, loose = self._facets(attributes)
        reader = EntitiesReader(table, attributes, self.report, self.taken)
        found = reader.entities(facets, self._data(table, facets, loose), self.raw)
        untold = tuple(word for word in _UNTOLD if word != "ttl" or reader.settings.ttl is None)
        return replace(table, settings=replace(reader.settings, unknown=untold), entities=found[0]), found[1]

    def _access(self, raw: Mapping[str, Any], place: str) -> None:
        """Look at `DataAccess`, which is the same and empty in every model that there is."""
        self.read.object(raw.get("DataAccess"), f"{place}.DataAccess").get("MySql")

    def _keys(self, raw: Any, place: str) -> list[dict[str, str]]:
        keys = self.read.object(raw, place)
        found: list[dict[str, str]] = []
        for member, kind in (("PartitionKey", "HASH"), ("SortKey", "RANGE")):
            told = self.read.object(keys.get(member), f"{place}.{member}")
            if told:
                name = require_name(told, "AttributeName", f"{place}.{member}")
                kept = self.types.setdefault(name, as_text(told.get("AttributeType")) or "S")
                if kept != (as_text(told.get("AttributeType")) or "S"):
                    self.report.add(
                        f"{place}.{member}", f"{name!r} has another type elsewhere; {kept} is taken"
                    )
                found.append({"AttributeName": name, "KeyType": kind})
        return found

    def _attributes(self, keys: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the attributes that are not of the table's key."""
        found: dict[str, str] = {}
        place = f"{self.place}.NonKeyAttributes"
        for raw in self.read.objects(self.raw.get("NonKeyAttributes"), place):
            name, kind = as_text(raw.get("AttributeName")), as_text(raw.get("AttributeType"))
            if not name:
                self.report.add(place, "an attribute has no name, so it is left out")
            elif name in keys:
                self.report.add(place, f"{name!r} is of the table's key, so it is left out here")
            elif name in found:
                self.report.add(place, f"{name!r} is declared twice; the first is taken")
            else:
                if kind not in TAGS:
                    self.report.add(
                        place, f"{name!r} is of type {show_value(kind)}, which there is not; S is taken"
                    )
                    kind = "S"
                found[name] = kind
        self.types |= found
        return found

    def _indexes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        place = f"{self.place}.GlobalSecondaryIndexes"
        for at, raw in enumerate(self.read.objects(self.raw.get("GlobalSecondaryIndexes"), place)):
            where = as_text(raw.get("IndexName")) or f"{place}[{at}]"
            projection = self.read.object(raw.get("Projection"), f"{where}.Projection")
            schema = self._keys(raw.get("KeyAttributes"), f"{where}.KeyAttributes")
            found.append({"IndexName": raw.get("IndexName"), "KeySchema": schema, "Projection": projection})
        return found

    def _capacity(self) -> dict[str, Any]:
        mode = as_text(self.raw.get("BillingMode"))
        settings = self.read.object(
            self.raw.get("ProvisionedCapacitySettings"), f"{self.place}.ProvisionedCapacitySettings"
        )
        if mode is None:
            mode = "PROVISIONED" if settings else "PAY_PER_REQUEST"
            self.report.add(self.place, f"it says no BillingMode; {mode} is taken")
        elif mode == "PAY_PER_REQUEST" and settings:
            as_plain_data(settings)  # it is read, to the last member, and told as a whole
            self.report.add(
                self.place, "it is on demand and has ProvisionedCapacitySettings, which are left out"
            )
        units = self.read.object(settings.get("ProvisionedThroughput"), f"{self.place}.ProvisionedThroughput")
        return {"BillingMode": mode, "ProvisionedThroughput": units}

    def _scaled(self, table: TableDesign) -> TableDesign:
        settings = self.read.object(self.raw.get("ProvisionedCapacitySettings"), self.place)
        targets: list[ScalingTarget] = []
        for word in ("Read", "Write"):
            place = f"{self.place}.AutoScaling{word}"
            raw = self.read.object(settings.get(f"AutoScaling{word}"), place)
            if not raw or table.settings.read_units is None:
                continue
            bounds = self.read.object(raw.get("ScalableTargetRequest"), place)
            aim = self.read.object(raw.get("ScalingPolicyConfiguration"), place)
            targets.append(
                ScalingTarget(
                    place,
                    f"table/{table.name}",
                    f"dynamodb:table:{word}CapacityUnits",
                    self.read.integer(bounds.get("MinCapacity"), place, 1),
                    self.read.integer(bounds.get("MaxCapacity"), place, 1),
                    self.read.integer(aim.get("TargetValue"), place, 1),
                )
            )
        return add_scaling([table], targets, self.report, require_indexes=False)[
            0
        ]  # a model tells the table's

    def _facets(self, attributes: Mapping[str, str]) -> tuple[list[Facet], set[str]]:
        """Return the facets, and the attributes that are in none of them."""
        found: dict[str, Facet] = {}
        place = f"{self.place}.TableFacets"
        for at, raw in enumerate(self.read.objects(self.raw.get("TableFacets"), place)):
            name = require_name(raw, "FacetName", f"{place}[{at}]")
            self._access(raw, name)
            if name in found:
                self.report.add(f"{place}[{at}]", f"a facet before it is called {name!r} too; it is left out")
                continue
            alias = self.read.object(raw.get("KeyAttributeAlias"), f"{name}.KeyAttributeAlias")
            names = self.read.texts(raw.get("NonKeyAttributes"), f"{name}.NonKeyAttributes")
            for each in names:
                if each not in attributes:
                    self.report.add(name, f"its attribute {each!r} is not declared by the table; S is taken")
            found[name] = Facet(
                name,
                as_text(alias.get("PartitionKeyAlias")) or "",
                as_text(alias.get("SortKeyAlias")) or "",
                names,
                raw,
            )
        told = {each for facet in found.values() for each in facet.attributes}
        return list(found.values()), set(attributes) - told

    def _data(self, table: TableDesign, facets: list[Facet], loose: set[str]) -> list[SampleItem]:
        """Return the sample items of the table and of its facets, each key once."""
        whose: dict[int, str] = {}
        read: list[tuple[str, Item]] = []
        owners = [*((facet.name, facet.raw) for facet in facets), ("", self.raw)]
        for owner, raw in owners:
            place = f"{owner or self.place}.TableData"
            for at, each in enumerate(self.read.objects(raw.get("TableData"), place)):
                item = read_item(each, f"{place}[{at}]", self.report)
                if item is not None:
                    whose[id(item)] = owner
                    read.append((f"{place}[{at}]", item))
        if facets and loose:
            self.report.add(
                self.place, f"no facet has {', '.join(sorted(loose))}; left out unless an index needs it"
            )
        return [
            SampleItem(self.name, item, whose[id(item)]) for item in select_storable(read, table, self.report)
        ]
