"""Read a table in the form of CreateTable into a table of a design.

CloudFormation, DescribeTable and Terraform describe the same in three spellings; each reader translates to the API's, and this module makes the
design. What the file does not say about items stays empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from tavola.iac.formats.import_result import FormatRefused, ImportReport
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
from tavola.model.key_types import KeyTag
from tavola.model.tables import StreamView

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]

DELIMITER = "#"
MANAGED_KEY = "alias/aws/dynamodb"
NO_ENTITIES = "it says nothing of entities and access patterns, so the design has none; declare them to have them judged"


def read_table(
    raw: Mapping[str, Any],
    place: str,
    report: ImportReport,
    label: str = "",
    words: Mapping[str, str] | None = None,
) -> TableDesign:
    """Return the table that a CreateTable body describes, with TTL, recovery, tags and replicas.

    `words` are the file's own names of the members.
    """
    return _Definition(raw, place, report, words or {}).table(label)


class _Definition:
    """One table's definition, read member by member."""

    def __init__(
        self, raw: Mapping[str, Any], place: str, report: ImportReport, words: Mapping[str, str]
    ) -> None:
        self.raw = raw
        self.place = place
        self.words = words
        self.report = report
        self.read = ValueReader(report)
        self.types = self._types()

    def at(self, member: str) -> str:
        """Return a member's place, as the file calls it."""
        return f"{self.place}.{self.words.get(member, member)}"

    def table(self, label: str) -> TableDesign:
        name = require_name(self.raw, "TableName", self.place, spelling=self.words.get("TableName", ""))
        hash_, range_ = self.schema(self.raw.get("KeySchema"), self.place)
        if len(hash_) > 1 or len(range_) > 1:
            raise FormatRefused("the key of a table is one partition and one sort attribute", self.place)
        settings = self.settings(name, hash_[0], range_[0] if range_ else None)
        indexes = tuple(self.indexes(settings.key_names))
        used = dict.fromkeys((*settings.key_names, *(each for index in indexes for each in index.attributes)))
        for attribute in self.types:
            if attribute not in used:
                self.report.add(
                    self.at("AttributeDefinitions"), f"{attribute!r} is in no key, so it is left out"
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
        table_class = self._word("TableClass", ("STANDARD", "STANDARD_INFREQUENT_ACCESS"), "STANDARD")
        ttl = self._ttl()
        if ttl is not None and ttl in (hash_, range_):
            self.report.add(self.place, f"TTL is on {ttl!r}, an attribute of the key, so it is left out")
            ttl = None
        restorable, days = self._recovery()
        protected = read.setting(raw.get("DeletionProtectionEnabled"), self.at("DeletionProtectionEnabled"))
        encryption, encrypted = self._encryption()
        told = {"recovery": restorable, "deletion_protection": protected, "encryption": encrypted}
        unknown = [word for word, on in told.items() if on is None]
        if as_text(raw.get("MultiRegionConsistency")) == "STRONG":
            self.report.add(
                self.at("Replicas"),
                "its regions agree strongly, which a design does not say; it needs no stream for them",
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
                for each in read.objects(raw.get("Replicas"), self.at("Replicas"))
                if (region := as_text(each.get("RegionName"))) is not None
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
                f"{days} days cannot be, only {RECOVERY_DAYS_MIN} to {RECOVERY_DAYS_MAX}; {RECOVERY_DAYS_MAX} are taken",
            )
            days = None
        return on, RECOVERY_DAYS_MAX if days is None else days

    def indexes(self, table_key: tuple[str, ...]) -> Iterator[IndexDesign]:
        seen: set[str] = set()
        for member, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
            for at, raw in enumerate(self.read.objects(self.raw.get(member), self.at(member))):
                place = f"{self.at(member)}[{at}]"
                name = require_name(raw, "IndexName", place, spelling=self.words.get("IndexName", ""))
                if as_text(raw.get("IndexStatus")) == "DELETING":
                    as_plain_data(raw)  # it is read, to the last member, and is no more
                    self.report.add(place, f"{name} is being deleted, so it is left out")
                    continue
                if name in seen:
                    raise FormatRefused(f"a second index is called {name!r}; give it its own name", place)
                seen.add(name)
                hash_, range_ = self.schema(raw.get("KeySchema"), place)
                if local and (hash_ != table_key[:1] or len(range_) != 1):
                    raise FormatRefused(
                        f"the local index {name!r} has not the table's partition key and one sort key", place
                    )
                if units := raw.get("ProvisionedThroughput"):
                    self._note_units(name, place, units)
                projection = read_projection(
                    raw.get("Projection"), (*table_key, *hash_, *range_), place, self.report
                )
                native = len(hash_) > 1 or len(range_) > 1
                yield IndexDesign(name, python_label(name, "index"), local, hash_, range_, projection, native)

    def schema(self, raw: Any, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the partition and sort attributes of a key schema."""
        found: dict[str, list[str]] = {"HASH": [], "RANGE": []}
        for at, element in enumerate(self.read.objects(raw, f"{place}.KeySchema")):
            where = f"{place}.KeySchema[{at}]"
            name = require_name(element, "AttributeName", where)
            kind = as_text(element.get("KeyType"))
            if kind not in found:
                raise FormatRefused(f"KeyType is {show_value(kind)}; give HASH or RANGE", where)
            found[kind].append(name)
        names = [*found["HASH"], *found["RANGE"]]
        if not found["HASH"]:
            raise FormatRefused(
                "it has no partition key; give its KeySchema an attribute of KeyType HASH", place
            )
        if len(set(names)) < len(names):
            raise FormatRefused(f"its key has an attribute twice: {', '.join(names)}", place)
        return tuple(found["HASH"]), tuple(found["RANGE"])

    def type_of(self, attribute: str) -> KeyTag:
        found = self.types.get(attribute)
        if found is None:
            self.report.add(
                self.at("AttributeDefinitions"), f"{attribute!r} of a key has no type there; S is taken"
            )
            return "S"
        return found

    def _types(self) -> dict[str, KeyTag]:
        found: dict[str, KeyTag] = {}
        place = self.at("AttributeDefinitions")
        for raw in self.read.objects(self.raw.get("AttributeDefinitions"), place):
            name, kind = as_text(raw.get("AttributeName")), as_text(raw.get("AttributeType"))
            if not name:
                self.report.add(place, "an attribute has no name, so it is left out")
            elif kind in get_args(KeyTag):
                found[name] = cast(KeyTag, kind)
            else:
                self.report.add(
                    place, f"{name!r} is of type {show_value(kind)}, which no key has; S is taken"
                )
                found[name] = "S"
        return found

    def _word(self, member: str, words: tuple[str, ...], meant: str) -> str:
        told = as_text(self.raw.get(member))
        if told is None or told in words:
            return told or meant
        self.report.add(
            self.at(member), f"{show_value(self.raw.get(member))} cannot be told; {meant} is taken"
        )
        return meant

    def _units(self) -> tuple[int | None, int | None]:
        mode = as_text(self.raw.get("BillingMode"))
        raw = self.read.object(self.raw.get("ProvisionedThroughput"), self.at("ProvisionedThroughput"))
        told = [raw.get(word) for word in ("ReadCapacityUnits", "WriteCapacityUnits")]
        if mode not in ("PROVISIONED", "PAY_PER_REQUEST", None):
            taken = "PROVISIONED" if all(told) else "PAY_PER_REQUEST"
            why = "as it has units" if all(told) else "as it has no units"
            self.report.add(
                self.at("BillingMode"),
                f"{show_value(self.raw.get('BillingMode'))} cannot be told; {taken} is taken, {why}",
            )
            mode = taken
        if mode == "PAY_PER_REQUEST":
            return None, None
        reads = self.read.integer(told[0], self.at("ReadCapacityUnits"))
        writes = self.read.integer(told[1], self.at("WriteCapacityUnits"))
        if mode == "PROVISIONED" and not (reads and writes):
            self.report.add(
                self.place,
                "it is provisioned, and its units cannot be told; 1 is taken where they are missing",
            )
            return reads or 1, writes or 1
        return (reads, writes) if reads and writes else (None, None)

    def _note_units(self, name: str, place: str, raw: Any) -> None:
        units = self.read.object(raw, place)
        told = [units.get(word) for word in ("ReadCapacityUnits", "WriteCapacityUnits")]
        if any(as_text(each) not in (None, "0") for each in told):
            self.report.add(
                place, f"the units of the index {name} are its own; a design has the table's alone"
            )

    def _stream(self) -> StreamView | None:
        place = self.at("StreamSpecification")
        raw = self.read.object(self.raw.get("StreamSpecification"), place)
        if not raw or ("StreamEnabled" in raw and not self.read.flag(raw["StreamEnabled"], place)):
            return None
        told = as_text(raw.get("StreamViewType"))
        if told in get_args(StreamView):
            return cast(StreamView, told)
        self.report.add(place, f"the stream's view is {show_value(told)}; NEW_AND_OLD_IMAGES is taken")
        return "NEW_AND_OLD_IMAGES"

    def _encryption(self) -> tuple[str | None, bool | None]:
        """Return the key, and whether there is one of the account's own at all."""
        place = self.at("SSESpecification")
        raw = self.read.object(self.raw.get("SSESpecification"), place)
        on = self.read.setting(raw.get("SSEEnabled"), place)
        return (self.read.text(raw.get("KMSMasterKeyId"), place) or MANAGED_KEY if on else None), on

    def _ttl(self) -> str | None:
        place = self.at("TimeToLiveSpecification")
        raw = self.read.object(self.raw.get("TimeToLiveSpecification"), place)
        if not raw or ("Enabled" in raw and not self.read.flag(raw["Enabled"], place)):
            return None
        return self.read.text(raw.get("AttributeName"), place) or None

    def _tags(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for raw in self.read.objects(self.raw.get("Tags"), self.at("Tags")):
            key = as_text(raw.get("Key"))
            value = self.read.text(raw.get("Value"), self.at("Tags"))
            if key and value is not None:
                found[key] = value
        return found


def read_projection(raw: Any, keys: tuple[str, ...], place: str, report: ImportReport) -> Projection:
    """Return what an index projects; `keys` are projected anyway and removed from its list."""
    read = ValueReader(report)
    told = read.object(raw, f"{place}.Projection")
    kind = as_text(told.get("ProjectionType"))
    listed = read.texts(told.get("NonKeyAttributes"), f"{place}.Projection.NonKeyAttributes")
    if kind not in ("ALL", "KEYS_ONLY", "INCLUDE"):
        report.add(
            f"{place}.Projection",
            f"its type is {show_value(kind)}; {'INCLUDE' if listed else 'ALL'} is taken",
        )
        kind = "INCLUDE" if listed else "ALL"
    if kind != "INCLUDE":
        if listed:
            report.add(
                f"{place}.Projection", f"it lists attributes, which {kind} has no use for; they are left out"
            )
        return cast(Projection, kind)
    kept = tuple(name for name in listed if name not in keys)
    if len(kept) < len(listed):
        own = ", ".join(name for name in listed if name in keys)
        report.add(
            f"{place}.Projection",
            f"{own} is in the keys, which an index carries anyway; left out of the list",
        )
    if not kept:
        report.add(f"{place}.Projection", "INCLUDE of nothing beside the keys is KEYS_ONLY, and read so")
        return "KEYS_ONLY"
    return kept


def give_tables_unique_names(tables: list[TableDesign], report: ImportReport) -> tuple[TableDesign, ...]:
    """Return tables with unique names and labels.

    A table whose name occurred before is left out; one whose label occurred before is labelled by its name. Both are
    noted.
    """
    found: dict[str, TableDesign] = {}
    labels: set[str] = set()
    for table in tables:
        if table.name in found:
            report.add(
                table.label, f"a table before it is called {table.name!r} too, so this one is left out"
            )
            continue
        label, number = table.label, 1
        while label in labels:
            label = python_label(table.name) if number == 1 else f"{python_label(table.name)}_{number}"
            number += 1
        if label != table.label:
            report.add(table.name, f"a table before it is labelled {table.label} too; this one is {label}")
        labels.add(label)
        found[table.name] = replace(table, label=label)
    return tuple(found.values())
