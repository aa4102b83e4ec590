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

from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult, SampleItem
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
_UNKNOWN_SETTINGS = ("ttl", "stream", "recovery", "deletion_protection", "encryption", "table_class", "tags")
SERVICE = "Amazon DynamoDB"
VERSIONS = re.compile(r"[123](\.[0-9]+)*")
_WORDS = {
    "KeySchema": "KeyAttributes",
    "AttributeDefinitions": "KeyAttributes",
    "HASH": "KeyAttributes.PartitionKey",
    "RANGE": "KeyAttributes.SortKey",
}

_NOT_DESIGN = frozenset(  # metadata of the model
    ("ModelName", "Author", "DateCreated", "DateLastModified", "Description", "ServiceRole")
)
DATA_ACCESS: Mapping[str, Any] = {"MySql": {}}


def is_workbench(raw: Any) -> bool:
    """Return whether data is a Workbench model, for DynamoDB or another service."""
    return isinstance(raw, Mapping) and (
        ("ModelName" in raw and "DataModel" in raw) or isinstance(raw.get("ModelMetadata"), Mapping)
    )


def read_workbench(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a model, with its sample items."""
    report = ImportReport()
    watch = TrackedMapping(raw)
    _check_metadata(watch, report)
    models = watch.get("DataModel")
    if not isinstance(models, list) or not any(isinstance(model, Mapping) for model in models):
        raise FormatError(
            "DataModel contains no table; add one in NoSQL Workbench and export the model again"
        )
    tables: list[TableDesign] = []
    samples: list[SampleItem] = []
    taken: set[str] = set()
    for position, table in enumerate(models):
        place = f"DataModel[{position}]"
        if not isinstance(table, Mapping):
            report.add(place, f"ignored {show_value(table)}: expected a table")
            continue
        table_design, items = _ModelTableReader(table, place, report, taken).table()
        taken |= {entity.name for entity in table_design.entities}
        tables.append(table_design)
        samples += items
        _report_unread_members(table, table_design.name, report)
        as_plain_data(table)  # marks every member as read: the rest is reported above
    unique_tables = give_tables_unique_names(tables, report)
    _report_unread_members(watch, "the model", report)
    report.add(
        "",
        "Workbench models have no access patterns, so the design has none. TTL, stream, recovery, encryption and tags are unknown.",
    )
    report.add(
        "", "ModelName and ModelMetadata are not part of a design; they are kept when you export to this file"
    )
    return ImportResult(Design(unique_tables), report.notes, FORMAT, tuple(samples), dict(raw))


def _report_unread_members(raw: Mapping[str, Any], place: str, report: ImportReport) -> None:
    report_unread(
        raw, place, report, ignore=_NOT_DESIGN, why="not imported; kept when you export to this file"
    )


def _check_metadata(raw: Mapping[str, Any], report: ImportReport) -> None:
    metadata = raw.get("ModelMetadata")
    if not isinstance(metadata, Mapping):
        report.add("ModelMetadata", "missing; reading the file as a DynamoDB model")
        return
    service = metadata.get("AWSService", SERVICE)
    if service != SERVICE:
        raise FormatError(
            f"the model is for {as_text(service) or show_value(service)}; Tavola reads models for {SERVICE}",
            "ModelMetadata.AWSService",
        )
    version = as_text(metadata.get("Version"))
    if version is None or not VERSIONS.fullmatch(version):
        report.add("ModelMetadata.Version", f"unknown version {show_value(version)}; reading the file as 3.0")


class _ModelTableReader:
    """One table of a model."""

    def __init__(self, raw: Mapping[str, Any], place: str, report: ImportReport, taken: set[str]) -> None:
        self.raw = raw
        self.report = report
        self.read = ValueReader(report)
        self.name = require_name(raw, "TableName", place)
        self.place = self.name
        self.taken = taken  # entity names of other tables
        self.types: dict[str, str] = {}

    def table(self) -> tuple[TableDesign, list[SampleItem]]:
        self._access(self.raw, self.place)
        schema = self._keys(self.raw.get("KeyAttributes"), f"{self.place}.KeyAttributes")
        keys = tuple(element["AttributeName"] for element in schema)
        key_types = dict(self.types)
        attributes = self._attributes(keys)
        body: dict[str, Any] = {
            "TableName": self.name,
            "KeySchema": schema,
            "GlobalSecondaryIndexes": self._indexes(),
            **self._capacity(),
        }
        indexed = {
            element["AttributeName"]
            for index in body["GlobalSecondaryIndexes"]
            for element in index["KeySchema"]
        }
        body["AttributeDefinitions"] = [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in {**self.types, **key_types}.items()
            if name in keys or name in indexed
        ]
        table = self._add_scaling(read_table(body, self.place, self.report, names=_WORDS))
        facets, loose = self._facets(attributes)
        reader = EntitiesReader(table, attributes, self.report, self.taken)
        entities = reader.entities(facets, self._data(table, facets, loose), self.raw)
        unknown = tuple(word for word in _UNKNOWN_SETTINGS if word != "ttl" or reader.settings.ttl is None)
        return replace(
            table, settings=replace(reader.settings, unknown=unknown), entities=entities[0]
        ), entities[1]

    def _access(self, raw: Mapping[str, Any], place: str) -> None:
        """Mark `DataAccess` as read; it is empty in every known model."""
        self.read.object(raw.get("DataAccess"), f"{place}.DataAccess").get("MySql")

    def _keys(self, raw: Any, place: str) -> list[dict[str, str]]:
        keys = self.read.object(raw, place)
        schema: list[dict[str, str]] = []
        for member, kind in (("PartitionKey", "HASH"), ("SortKey", "RANGE")):
            key = self.read.object(keys.get(member), f"{place}.{member}")
            if key:
                name = require_name(key, "AttributeName", f"{place}.{member}")
                known_type = self.types.setdefault(name, as_text(key.get("AttributeType")) or "S")
                if known_type != (as_text(key.get("AttributeType")) or "S"):
                    self.report.add(
                        f"{place}.{member}", f"{name!r} has another type elsewhere; using {known_type}"
                    )
                schema.append({"AttributeName": name, "KeyType": kind})
        return schema

    def _attributes(self, keys: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the attributes outside the table's key."""
        types: dict[str, str] = {}
        place = f"{self.place}.NonKeyAttributes"
        for raw in self.read.objects(self.raw.get("NonKeyAttributes"), place):
            name, kind = as_text(raw.get("AttributeName")), as_text(raw.get("AttributeType"))
            if not name:
                self.report.add(place, "ignored an attribute without AttributeName")
            elif name in keys:
                self.report.add(place, f"ignored {name!r}: it is part of the table's key")
            elif name in types:
                self.report.add(place, f"{name!r} is declared twice; using the first")
            else:
                if kind not in TAGS:
                    self.report.add(place, f"{name!r} has unknown type {show_value(kind)}; using S")
                    kind = "S"
                types[name] = kind
        self.types |= types
        return types

    def _indexes(self) -> list[dict[str, Any]]:
        indexes: list[dict[str, Any]] = []
        place = f"{self.place}.GlobalSecondaryIndexes"
        for position, raw in enumerate(self.read.objects(self.raw.get("GlobalSecondaryIndexes"), place)):
            where = as_text(raw.get("IndexName")) or f"{place}[{position}]"
            projection = self.read.object(raw.get("Projection"), f"{where}.Projection")
            schema = self._keys(raw.get("KeyAttributes"), f"{where}.KeyAttributes")
            indexes.append({"IndexName": raw.get("IndexName"), "KeySchema": schema, "Projection": projection})
        return indexes

    def _capacity(self) -> dict[str, Any]:
        mode = as_text(self.raw.get("BillingMode"))
        settings = self.read.object(
            self.raw.get("ProvisionedCapacitySettings"), f"{self.place}.ProvisionedCapacitySettings"
        )
        if mode is None:
            mode = "PROVISIONED" if settings else "PAY_PER_REQUEST"
            self.report.add(self.place, f"BillingMode is missing; using {mode}")
        elif mode == "PAY_PER_REQUEST" and settings:
            as_plain_data(settings)  # marks every member as read
            self.report.add(self.place, "on demand; ignored ProvisionedCapacitySettings")
        units = self.read.object(settings.get("ProvisionedThroughput"), f"{self.place}.ProvisionedThroughput")
        return {"BillingMode": mode, "ProvisionedThroughput": units}

    def _add_scaling(self, table: TableDesign) -> TableDesign:
        settings = self.read.object(self.raw.get("ProvisionedCapacitySettings"), self.place)
        targets: list[ScalingTarget] = []
        for word in ("Read", "Write"):
            place = f"{self.place}.AutoScaling{word}"
            raw = self.read.object(settings.get(f"AutoScaling{word}"), place)
            if not raw or table.settings.read_units is None:
                continue
            bounds = self.read.object(raw.get("ScalableTargetRequest"), place)
            policy = self.read.object(raw.get("ScalingPolicyConfiguration"), place)
            targets.append(
                ScalingTarget(
                    place,
                    f"table/{table.name}",
                    f"dynamodb:table:{word}CapacityUnits",
                    self.read.integer(bounds.get("MinCapacity"), place, 1),
                    self.read.integer(bounds.get("MaxCapacity"), place, 1),
                    self.read.integer(policy.get("TargetValue"), place, 1),
                )
            )
        (scaled,) = add_scaling([table], targets, self.report, require_indexes=False)
        return scaled

    def _facets(self, attributes: Mapping[str, str]) -> tuple[list[Facet], set[str]]:
        """Return the facets, and the attributes that belong to none of them."""
        facets_by_name: dict[str, Facet] = {}
        place = f"{self.place}.TableFacets"
        for position, raw in enumerate(self.read.objects(self.raw.get("TableFacets"), place)):
            name = require_name(raw, "FacetName", f"{place}[{position}]")
            self._access(raw, name)
            if name in facets_by_name:
                self.report.add(
                    f"{place}[{position}]", f"an earlier facet is also named {name!r}; not imported"
                )
                continue
            alias = self.read.object(raw.get("KeyAttributeAlias"), f"{name}.KeyAttributeAlias")
            names = self.read.texts(raw.get("NonKeyAttributes"), f"{name}.NonKeyAttributes")
            for attribute_name in names:
                if attribute_name not in attributes:
                    self.report.add(
                        name, f"attribute {attribute_name!r} is not in the table's NonKeyAttributes; using S"
                    )
            facets_by_name[name] = Facet(
                name,
                as_text(alias.get("PartitionKeyAlias")) or "",
                as_text(alias.get("SortKeyAlias")) or "",
                names,
                raw,
            )
        in_facets = {attribute for facet in facets_by_name.values() for attribute in facet.attributes}
        return list(facets_by_name.values()), set(attributes) - in_facets

    def _data(self, table: TableDesign, facets: list[Facet], loose: set[str]) -> list[SampleItem]:
        """Return the sample items of the table and of its facets, each key once."""
        facet_names: dict[int, str] = {}
        read: list[tuple[str, Item]] = []
        owners = [*((facet.name, facet.raw) for facet in facets), ("", self.raw)]
        for owner, raw in owners:
            place = f"{owner or self.place}.TableData"
            for position, entry in enumerate(self.read.objects(raw.get("TableData"), place)):
                item = read_item(entry, f"{place}[{position}]", self.report)
                if item is not None:
                    facet_names[id(item)] = owner
                    read.append((f"{place}[{position}]", item))
        if facets and loose:
            self.report.add(
                self.place, f"no facet contains {', '.join(sorted(loose))}; imported only if an index uses it"
            )
        return [
            SampleItem(self.name, item, facet_names[id(item)])
            for item in select_storable(read, table, self.report)
        ]
