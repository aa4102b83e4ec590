"""Convert a CreateTable request to a table of a design.

CloudFormation, DescribeTable and Terraform describe tables with different names; each reader translates them to CreateTable's,
and this module builds the design. Such files do not describe items, so the table has no entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from tavola.iac.formats.import_result import FormatError, ImportReport
from tavola.iac.formats.source_values import (
    ValueReader,
    as_plain_data,
    as_text,
    python_label,
    require_name,
    show_value,
)
from tavola.limits import RECOVERY_DAYS_MAX, RECOVERY_DAYS_MIN
from tavola.model import TableSettings
from tavola.model.document import IndexDesign, TableDesign
from tavola.model.tables import KeyTag, StreamView

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]

DELIMITER = "#"
MANAGED_KEY = "alias/aws/dynamodb"
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
NO_ENTITIES = (
    "This format has no entities or access patterns. Add them to the design so that Tavola can check them."
)


def key_schema(partition: Iterable[str], sort: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return a key as CreateTable lists it."""
    halves = ((partition, "HASH"), (sort, "RANGE"))
    return [{"AttributeName": name, "KeyType": kind} for names, kind in halves for name in names]


def read_table(
    raw: Mapping[str, Any],
    place: str,
    report: ImportReport,
    label: str = "",
    names: Mapping[str, str] | None = None,
) -> TableDesign:
    """Return the table that a CreateTable body describes, with TTL, recovery, tags and replicas.

    `names` are the file's own names for members of CreateTable, and for the partition key (HASH) and sort key (RANGE).
    """
    return _Definition(raw, place, report, names or {}).table(label)


class _Definition:
    """One table's definition, read member by member."""

    def __init__(
        self, raw: Mapping[str, Any], place: str, report: ImportReport, names: Mapping[str, str]
    ) -> None:
        self.raw = raw
        self.place = place
        self.names = names
        self.report = report
        self.read = ValueReader(report)
        self.types = self._types()

    def name_of(self, member: str) -> str:
        """Return the file's name for a member of CreateTable."""
        return self.names.get(member, member)

    def at(self, member: str) -> str:
        """Return the place of a member, in the file's names."""
        return f"{self.place}.{self.name_of(member)}"

    def table(self, label: str) -> TableDesign:
        name = require_name(self.raw, "TableName", self.place, spelling=self.name_of("TableName"))
        if "$" not in name and name != self.place and not _TABLE_NAME.fullmatch(name):
            self.report.add(
                self.at("TableName"),
                f"{name!r} is not a valid table name; use 3 to 255 letters, digits, _, - and .",
            )
        hash_, range_ = self.schema(self.raw.get("KeySchema"), self.place)
        if len(hash_) > 1 or len(range_) > 1:
            raise FormatError(
                "the table's key has too many attributes; use one partition key and at most one sort key",
                self.place,
            )
        settings = self.settings(name, hash_[0], range_[0] if range_ else None)
        indexes = tuple(self.indexes(settings.key_names))
        used = dict.fromkeys(
            (*settings.key_names, *(attribute for index in indexes for attribute in index.attributes))
        )
        for attribute in self.types:
            if attribute not in used:
                self.report.add(
                    self.at("AttributeDefinitions"), f"{attribute!r} is not used in a key; not imported"
                )
        return TableDesign(
            label or python_label(name),
            settings,
            {attribute: self.type_of(attribute) for attribute in used},
            indexes,
            foreign=True,
        )

    def settings(self, name: str, hash_: str, range_: str | None) -> TableSettings:
        raw, read = self.raw, self.read
        units = self._units()
        table_class = self._choice("TableClass", ("STANDARD", "STANDARD_INFREQUENT_ACCESS"), "STANDARD")
        ttl = self._ttl()
        if ttl is not None and ttl in (hash_, range_):
            self.report.add(self.place, f"TTL is set on the key attribute {ttl!r}; not imported")
            ttl = None
        restorable, days = self._recovery()
        protected = read.setting(raw.get("DeletionProtectionEnabled"), self.at("DeletionProtectionEnabled"))
        encryption, encrypted = self._encryption()
        switches = {"recovery": restorable, "deletion_protection": protected, "encryption": encrypted}
        unknown = [word for word, on in switches.items() if on is None]
        if as_text(raw.get("MultiRegionConsistency")) == "STRONG":
            self.report.add(
                self.at("Replicas"),
                "strong multi-Region consistency has no equivalent in a design; not imported",
            )
            unknown.append("stream")
        return TableSettings(
            name=name,
            hash=hash_,
            range=range_,
            ttl=ttl,
            tag=None,
            delimiter=DELIMITER,
            stream=self._stream(),
            recovery=bool(restorable),
            recovery_days=days,
            encryption=encryption,
            table_class=cast(Any, table_class),
            deletion_protection=bool(protected),
            read_units=units[0],
            write_units=units[1],
            tags=self._tags(),
            replicas=tuple(
                region
                for entry in read.objects(raw.get("Replicas"), self.at("Replicas"))
                if (region := as_text(entry.get("RegionName"))) is not None
            ),
            unknown=tuple(unknown),
        )

    def _recovery(self) -> tuple[bool | None, int]:
        place = self.at("PointInTimeRecoverySpecification")
        raw = self.read.object(self.raw.get("PointInTimeRecoverySpecification"), place)
        on = self.read.setting(raw.get("PointInTimeRecoveryEnabled"), place)
        days = self.read.integer(raw.get("RecoveryPeriodInDays"), self.at("RecoveryPeriodInDays"), 1)
        if days is not None and not RECOVERY_DAYS_MIN <= days <= RECOVERY_DAYS_MAX:
            self.report.add(
                self.at("RecoveryPeriodInDays"),
                f"{days} is outside {RECOVERY_DAYS_MIN} to {RECOVERY_DAYS_MAX} days; using {RECOVERY_DAYS_MAX}",
            )
            days = None
        return on, RECOVERY_DAYS_MAX if days is None else days

    def indexes(self, table_key: tuple[str, ...]) -> Iterator[IndexDesign]:
        seen: set[str] = set()
        for member, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
            for position, raw in enumerate(self.read.objects(self.raw.get(member), self.at(member))):
                place = f"{self.at(member)}[{position}]"
                name = require_name(raw, "IndexName", place, spelling=self.name_of("IndexName"))
                if as_text(raw.get("IndexStatus")) == "DELETING":
                    as_plain_data(raw)  # marks every member as read
                    self.report.add(place, f"index {name} is being deleted; not imported")
                    continue
                if name in seen:
                    raise FormatError(f"the table has two indexes named {name!r}; rename one", place)
                seen.add(name)
                hash_, range_ = self.schema(raw.get("KeySchema"), place)
                if local and (hash_ != table_key[:1] or len(range_) != 1):
                    raise FormatError(
                        f"local index {name!r} needs the table's partition key ({table_key[0]}) and one sort key of its own"
                        f"; set {self.names.get('RANGE', 'both in KeySchema')}",
                        place,
                    )
                if units := raw.get("ProvisionedThroughput"):
                    self._note_units(name, place, units)
                projection = read_projection(
                    raw.get("Projection"),
                    (*table_key, *hash_, *range_),
                    f"{place}.{self.name_of('Projection')}",
                    self.report,
                )
                native = len(hash_) > 1 or len(range_) > 1
                yield IndexDesign(name, python_label(name, "index"), local, hash_, range_, projection, native)

    def schema(self, raw: Any, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the partition and sort attributes of a key schema."""
        names_by_kind: dict[str, list[str]] = {"HASH": [], "RANGE": []}
        elements = raw if isinstance(raw, list) else [raw]
        invalid = next((element for element in elements if not isinstance(element, Mapping | None)), None)
        if invalid is not None:
            raise FormatError(
                f"{self.name_of('KeySchema')} contains {show_value(invalid)}; expected "
                f"{self.name_of('AttributeName')} and {self.name_of('KeyType')} for each key attribute",
                place,
            )
        for position, element in enumerate(self.read.objects(raw, f"{place}.{self.name_of('KeySchema')}")):
            where = f"{place}.{self.name_of('KeySchema')}[{position}]"
            name = require_name(
                element,
                "AttributeName",
                where,
                spelling=self.name_of("AttributeName"),
                what="the name of an attribute",
            )
            kind = as_text(element.get("KeyType"))
            if kind not in names_by_kind:
                raise FormatError(
                    f"{self.name_of('KeyType')} is {show_value(kind)}; use HASH or RANGE", where
                )
            names_by_kind[kind].append(name)
        names = [*names_by_kind["HASH"], *names_by_kind["RANGE"]]
        if not names_by_kind["HASH"]:
            raise FormatError(
                f"no partition key; set {self.names.get('HASH', 'KeySchema with one element of KeyType HASH')}",
                place,
            )
        if len(set(names)) < len(names):
            raise FormatError(f"the key uses an attribute twice: {', '.join(names)}", place)
        return tuple(names_by_kind["HASH"]), tuple(names_by_kind["RANGE"])

    def type_of(self, attribute: str) -> KeyTag:
        known_type = self.types.get(attribute)
        if known_type is None:
            self.report.add(
                self.at("AttributeDefinitions"),
                f"{attribute!r} is used in a key but its type is not declared here; using S (string)",
            )
            return "S"
        return known_type

    def _types(self) -> dict[str, KeyTag]:
        types: dict[str, KeyTag] = {}
        place = self.at("AttributeDefinitions")
        for raw in self.read.objects(self.raw.get("AttributeDefinitions"), place):
            name, kind = as_text(raw.get("AttributeName")), as_text(raw.get("AttributeType"))
            if not name:
                self.report.add(place, "ignored an attribute without a name")
            elif kind in get_args(KeyTag):
                types[name] = cast(KeyTag, kind)
            else:
                self.report.add(
                    place, f"{name!r} has type {show_value(kind)}; a key attribute is S, N or B; using S"
                )
                types[name] = "S"
        return types

    def _choice(self, member: str, choices: tuple[str, ...], default: str) -> str:
        choice = as_text(self.raw.get(member))
        if self.raw.get(member) is None or choice in choices:
            return choice or default
        self.report.add(
            self.at(member),
            f"{show_value(self.raw.get(member))} is not one of {', '.join(choices)}; using {default}",
        )
        return default

    def _units(self) -> tuple[int | None, int | None]:
        mode = as_text(self.raw.get("BillingMode"))
        raw = self.read.object(self.raw.get("ProvisionedThroughput"), self.at("ProvisionedThroughput"))
        units = [raw.get(word) for word in ("ReadCapacityUnits", "WriteCapacityUnits")]
        if mode not in ("PROVISIONED", "PAY_PER_REQUEST") and self.raw.get("BillingMode") is not None:
            mode = "PROVISIONED" if all(units) else "PAY_PER_REQUEST"
            why = "has" if all(units) else "has no"
            self.report.add(
                self.at("BillingMode"),
                f"{show_value(self.raw.get('BillingMode'))} is not PROVISIONED or PAY_PER_REQUEST; using {mode}, "
                f"because the table {why} capacity units",
            )
        if mode == "PAY_PER_REQUEST":
            return None, None
        reads = self.read.integer(units[0], self._units_place("ReadCapacityUnits"))
        writes = self.read.integer(units[1], self._units_place("WriteCapacityUnits"))
        if mode == "PROVISIONED" and not (reads and writes):
            self.report.add(
                self.place, "provisioned, but without read or write capacity; using 1 where it is missing"
            )
            return reads or 1, writes or 1
        return (reads, writes) if reads and writes else (None, None)

    def _units_place(self, member: str) -> str:
        """Return the place of a capacity member, which CreateTable and CloudFormation nest and Terraform does not."""
        return f"{self.place}.{self.names.get(member) or f'ProvisionedThroughput.{member}'}"

    def _note_units(self, name: str, place: str, raw: Any) -> None:
        units = self.read.object(raw, place)
        declared_units = [units.get(word) for word in ("ReadCapacityUnits", "WriteCapacityUnits")]
        if any(as_text(units) not in (None, "0") for units in declared_units):
            self.report.add(
                place,
                f"index {name} has capacity of its own; not imported, a design uses the table's capacity for all",
            )

    def _stream(self) -> StreamView | None:
        place = self.at("StreamSpecification")
        raw = self.read.object(self.raw.get("StreamSpecification"), place)
        if not raw or ("StreamEnabled" in raw and not self.read.flag(raw["StreamEnabled"], place)):
            return None
        view = as_text(raw.get("StreamViewType"))
        if view in get_args(StreamView):
            return cast(StreamView, view)
        self.report.add(place, f"unknown stream view type {show_value(view)}; using NEW_AND_OLD_IMAGES")
        return "NEW_AND_OLD_IMAGES"

    def _encryption(self) -> tuple[str | None, bool | None]:
        """Return the KMS key, and whether the table uses one (None if unknown)."""
        place = self.at("SSESpecification")
        raw = self.read.object(self.raw.get("SSESpecification"), place)
        on = self.read.setting(raw.get("SSEEnabled"), place)
        return (self.read.text(raw.get("KMSMasterKeyId"), place) or MANAGED_KEY if on else None), on

    def _ttl(self) -> str | None:
        place = self.at("TimeToLiveSpecification")
        raw = self.read.object(self.raw.get("TimeToLiveSpecification"), place)
        if not raw or ("Enabled" in raw and not self.read.flag(raw["Enabled"], place)):
            return None
        attribute = self.read.text(raw.get("AttributeName"), place) or None
        if attribute is None:
            self.report.add(place, "TTL is enabled without an attribute; not imported")
        return attribute

    def _tags(self) -> dict[str, str]:
        tags: dict[str, str] = {}
        for raw in self.read.objects(self.raw.get("Tags"), self.at("Tags")):
            key = as_text(raw.get("Key"))
            value = self.read.text(raw.get("Value"), self.at("Tags"))
            if key and value is not None:
                tags[key] = value
        return tags


def read_projection(raw: Any, keys: tuple[str, ...], place: str, report: ImportReport) -> Projection:
    """Return the projection of an index; `keys` are removed from its list, because they are always projected."""
    read = ValueReader(report)
    projection = read.object(raw, place)
    kind = as_text(projection.get("ProjectionType"))
    listed = read.texts(projection.get("NonKeyAttributes"), place)
    if kind not in ("ALL", "KEYS_ONLY", "INCLUDE"):
        report.add(
            place,
            f"no projection type; using {'INCLUDE' if listed else 'ALL'}"
            if kind is None
            else f"projection type {show_value(kind)} is not ALL, KEYS_ONLY or INCLUDE; using {'INCLUDE' if listed else 'ALL'}",
        )
        kind = "INCLUDE" if listed else "ALL"
    if kind != "INCLUDE":
        if listed:
            report.add(place, f"ignored the listed attributes: {kind} takes none")
        return cast(Projection, kind)
    projected = tuple(name for name in listed if name not in keys)
    if len(projected) < len(listed):
        projected_keys = ", ".join(name for name in listed if name in keys)
        report.add(
            place,
            f"ignored {projected_keys}: key attributes are always projected",
        )
    if not projected:
        report.add(place, "INCLUDE lists no attribute besides keys; imported as KEYS_ONLY")
        return "KEYS_ONLY"
    return projected


def give_tables_unique_names(tables: list[TableDesign], report: ImportReport) -> tuple[TableDesign, ...]:
    """Return tables with unique names and labels.

    A table whose name occurred before is skipped; one whose label occurred before is labelled by its name. Both are
    reported.
    """
    tables_by_name: dict[str, TableDesign] = {}
    labels: set[str] = set()
    for table in tables:
        if table.name in tables_by_name:
            report.add(
                table.label, f"an earlier table is also named {table.name!r}; this one is not imported"
            )
            continue
        label, number = table.label, 1
        while label in labels:
            label = python_label(table.name) if number == 1 else f"{python_label(table.name)}_{number}"
            number += 1
        if label != table.label:
            report.add(
                table.name, f"an earlier table is also labelled {table.label}; this one is labelled {label}"
            )
        labels.add(label)
        tables_by_name[table.name] = replace(table, label=label)
    return tuple(tables_by_name.values())
