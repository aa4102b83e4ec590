"""All known versions of an item and who made them.

With point-in-time recovery every version inside the recovery window is known. Otherwise the stream has the last day. The
author comes from the item itself or from the audit row written with the version, which the design can locate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from tavola.client.stream_changes import RawChange
from tavola.errors import TavolaError
from tavola.model.document import EntityDesign, TableDesign
from tavola.protocol.faults import Fault
from tavola.studio.changes import Actors
from tavola.studio.differences import ItemComparison, ItemDifference, compare_items, same_item
from tavola.studio.field_values import FieldUnreadable, field_values
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import KeyReading, Recogniser
from tavola.studio.studio import Studio
from tavola.studio.types import Item
from tavola.values import item_size

VERSIONS_MAX = 500  # returned for one item; the latest
BYTES_MAX = 8 * 1024 * 1024  # of all returned versions
RECORDS_MAX = 50_000  # stream records searched for one item
TRAIL_MAX = 100  # audit rows read with one request

_AUDIT = frozenset({"version", "kind", "actor", "at", "why"})
_NO_PAST = frozenset({"PointInTimeRecoveryUnavailableException", "UnknownOperationException"})
_NOTHING = ItemComparison((), 0)

Source = Literal["recovery", "stream"]


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """An item's state in a period of time."""

    since: str | None  # None: since before the recorded history
    until: str | None  # None: the current version
    item: Item | None  # None: the item did not exist, or its content is unknown
    made: bool  # this version created the item
    compared: bool  # `differences` are known
    unknown: bool  # the item was written, but the stream has no images
    bytes: int
    differences: tuple[ItemDifference, ...]  # from the previous version
    total: int  # number of differences, including those left out
    expired: bool = False  # removed by its time to live
    actor: str | None = None
    why: str = ""  # from the audit row


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """An item's versions, newest first."""

    table: str
    key: Item
    entity: str | None
    parts: tuple[KeyReading, ...]
    source: Source
    versions: tuple[KeptVersion, ...]
    earlier: int  # number of older versions that are left out
    complete: bool  # the source was read to its end


@dataclass(frozen=True, slots=True)
class _Version:
    since: datetime | None
    item: Item | None
    expired: bool = False
    unknown: bool = False

    @property
    def bytes(self) -> int:
        return 0 if self.item is None else item_size(mutable_item(self.item))


class _LatestVersions:
    """The latest versions of an item plus the one before them, to compare with; older ones are only counted."""

    def __init__(self) -> None:
        self.versions: deque[_Version] = deque()
        self.count = 0
        self._bytes = 0

    def add(self, version: _Version) -> None:
        """Add a version, and drop the oldest if there are too many."""
        self.versions.append(version)
        self.count += 1
        self._bytes += version.bytes
        while len(self.versions) > VERSIONS_MAX + 1 or (self._bytes > BYTES_MAX and len(self.versions) > 2):
            self._bytes -= self.versions.popleft().bytes

    def add_change(self, change: RawChange) -> None:
        """Add the version that a change made; a missing image may follow from the next change's old image."""
        if change.old is not None and self.unsure:
            self.resolve(change.old)
        if not self.count and (change.kind == "inserted" or change.old is not None):
            self.add(_Version(None, change.old))
        unknown = change.new is None and change.kind != "removed"
        self.add(_Version(change.at, change.new, change.expired, unknown))

    @property
    def unsure(self) -> bool:
        """Whether the content of the latest version is unknown."""
        return bool(self.versions) and self.versions[-1].unknown

    def resolve(self, item: Item | None) -> None:
        """Set the content of the latest version."""
        last = self.versions.pop()
        self.count -= 1
        self.add(replace(last, item=item, unknown=False))


async def read_history(studio: Studio, table: str, key: Item, recogniser: Recogniser) -> ItemHistory:
    """Return the versions of an item from point-in-time recovery, or else from the table's stream."""
    source: Source = "recovery"
    complete = True
    try:
        versions = _LatestVersions()
        async for version in studio.db.history(table, key):
            versions.add(_Version(version.since, version.item, version.expired))
    except Fault as fault:
        if fault.code not in _NO_PAST:
            raise
        source = "stream"
        versions, complete = await _from_stream(studio, table, key, fault)
    design = studio.table_design(table)
    rendered = _render_versions(versions.versions, recogniser, Actors(design, studio.where.region))
    if versions.count > len(rendered):
        del rendered[0]  # it was only needed for comparison
    if design is not None:
        rendered = await _add_audit_rows(studio, design, recogniser, rendered)
    image = next((version.item for version in reversed(rendered) if version.item is not None), key)
    return ItemHistory(
        table=table,
        key=key,
        entity=recogniser.recognise(image).entity,
        parts=recogniser.parse_keys({**image, **key}),
        source=source,
        versions=tuple(reversed(rendered)),
        earlier=versions.count - len(rendered),
        complete=complete,
    )


async def _from_stream(studio: Studio, table: str, key: Item, refusal: Fault) -> tuple[_LatestVersions, bool]:
    """Return the versions of an item in the stream, and whether the stream was read to its end."""
    try:
        subscription = await studio.db.subscribe(table, from_="start", follow=False, on_loss="continue")
    except TavolaError as error:
        raise RequestRefused(
            "past-off",
            "This table has no recorded history",
            f"{refusal.message or refusal.code}; its stream cannot be read either: {error}",
            "Turn on point-in-time recovery to record every version from then on.",
            status=409,
        ) from error
    versions = _LatestVersions()
    read = 0
    while read < RECORDS_MAX and (batch := await subscription.take()) is not None:
        read += len(batch)
        for change in batch:
            if isinstance(change, RawChange) and same_item(change.keys, key):
                versions.add_change(change)
    complete = read < RECORDS_MAX
    if not versions.count or (versions.unsure and complete):
        current = await studio.db.call(
            "GetItem", {"TableName": table, "Key": dict(key), "ConsistentRead": True}
        )
        if versions.count:
            versions.resolve(current.get("Item"))
        else:
            versions.add(_Version(None, current.get("Item")))
    return versions, complete


def _render_versions(
    versions: Iterable[_Version], recogniser: Recogniser, actors: Actors
) -> list[KeptVersion]:
    rendered: list[KeptVersion] = []
    before: _Version | None = None  # None: the version before the first is unknown
    for version in versions:
        known = before is not None and not before.unknown and not version.unknown
        was, item = None if before is None else before.item, version.item
        compared = compare_items(was, item) if known else _NOTHING
        entity = None if item is None else recogniser.recognise(item).entity
        if rendered:
            rendered[-1] = replace(rendered[-1], until=moment_text(version.since))
        rendered.append(
            KeptVersion(
                since=moment_text(version.since),
                until=None,
                item=item,
                made=known and was is None and item is not None,
                compared=known,
                unknown=version.unknown,
                bytes=version.bytes,
                differences=compared.differences,
                total=compared.total,
                expired=version.expired,
                actor=actors.actor(entity, was, item, expired=version.expired),
            )
        )
        before = version
    return rendered


async def _add_audit_rows(
    studio: Studio, design: TableDesign, recogniser: Recogniser, versions: list[KeptVersion]
) -> list[KeptVersion]:
    """Return versions with actor and reason from their audit rows, if the design has such rows."""
    keys: dict[int, tuple[EntityDesign, Item]] = {}
    for place, version in enumerate(versions[-TRAIL_MAX:], max(0, len(versions) - TRAIL_MAX)):
        if version.item is not None:
            audit_row = _audit_row(design, recogniser, version.item)
            if audit_row is not None:
                keys[place] = audit_row
    if not keys:
        return versions
    keys_to_read = _unique([key for _, key in keys.values()])
    request = {"RequestItems": {design.name: {"Keys": keys_to_read}}}
    rows = (await studio.db.call("BatchGetItem", request))["Responses"].get(design.name, [])
    merged = list(versions)
    for place, (audit, key) in keys.items():
        row = next((row for row in rows if all(row.get(name) == value for name, value in key.items())), None)
        if row is not None:
            actor = row.get(audit.field("actor").attribute, {}).get("S")
            why = row.get(audit.field("why").attribute, {}).get("S", "")
            merged[place] = replace(merged[place], actor=actor or merged[place].actor, why=why)
    return merged


def audits_of(design: TableDesign, entity: EntityDesign) -> Iterator[tuple[EntityDesign, tuple[str, ...]]]:
    """Yield the audit entities of a versioned entity, each with the fields of its key."""
    field_names = {field.name for field in entity.fields}
    if not {"version", "changed_by"} <= field_names:
        return
    for audit in design.entities:
        if audit.key is None or not {field.name for field in audit.fields} >= _AUDIT:
            continue
        names = tuple(dict.fromkeys(name for source in audit.key.sources for name in source.fields))
        if "version" in names and field_names >= set(names):
            yield audit, names


def _audit_row(
    design: TableDesign, recogniser: Recogniser, item: Item
) -> tuple[EntityDesign, Mapping[str, Any]] | None:
    """Return the entity and key of the audit row that was written with a version; None if there is none."""
    entity = _design_of(design, recogniser.recognise(item).entity)
    for audit, names in () if entity is None else audits_of(design, entity):
        assert entity is not None, "audits_of needs an entity"
        assert audit.key is not None, "audits_of yields entities with a key"
        try:
            values = field_values(entity, mutable_item(item), names)
            key = {
                source.attribute: {source.tag: bound.render(values)}
                for source in audit.key.sources
                if (bound := audit.bind_template(source)) is not None
            }
        except (FieldUnreadable, TavolaError):
            continue
        if len(key) == len(audit.key.sources):
            return audit, key
    return None


def _design_of(design: TableDesign, name: str | None) -> EntityDesign | None:
    return next((entity for entity in design.entities if entity.name == name), None)


def _unique(keys: list[Item]) -> list[Item]:
    unique_items: list[Item] = []
    for key in keys:
        if key not in unique_items:
            unique_items.append(key)
    return unique_items


def mutable_item(item: Item) -> dict[str, dict[str, Any]]:
    """Return a mutable copy of an item, as lower layers take it."""
    return {name: dict(value) for name, value in item.items()}


def moment_text(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
