"""Compare a design with deployed tables or with a former design: what differs, what each change means, and what it costs.

The comparison itself is the client's, the same that `tavola deploy` applies. This module classifies each difference: in place, an index to fill,
items to rewrite, a table to replace, something removed, or something that infrastructure applies (replicas, auto scaling, consumers). Changes are sorted for
the reader and applied in the client's order. Settings that either side does not declare (`settings.unknown`) are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.client.connection import Connection
from tavola.client.differences import differences
from tavola.client.effects import Call, Driver, Program
from tavola.client.reports import DesignDifference
from tavola.client.retries import RetryPolicy
from tavola.client.table_changes import Blueprint, TableChange, TableChanges, is_key_to_create, table_changes
from tavola.iac.amounts import TableCount, Work, backfill_of, copy_of, rewrite_of
from tavola.iac.design_backend import DesignBackend, blueprint_of
from tavola.iac.plan import UNKNOWN_WORDS
from tavola.model.document import Design, EntityDesign, IndexDesign, KeyDesign, TableDesign
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import Fault

_GLOBAL = (
    "CloudFormation uses another resource type for a table with replicas and cannot convert one to the other: adding the first replica "
    "replaces the table, unless you import the table into the stack again"
)
_BY = "apply the templates of tavola iac"


def compare_infrastructure(was: TableDesign, now: TableDesign) -> list[DesignChange]:
    """Return how a design differs from a former one in what infrastructure applies."""
    changes = list(_compare_regions(now, set(was.settings.replicas), set(now.settings.replicas)))
    before, after = was.settings.scaling, now.settings.scaling
    if before != after:
        description = (
            f"changes ({_list_differences(before, after)})"
            if before and after
            else "is added"
            if after
            else "is removed"
        )
        warnings = () if before and after else tuple(_warn_of_index_moves(now, begins=after is not None))
        changes.append(_elsewhere(now, "scaling", f"auto scaling {description}", after is None, warnings))
    former = {consumer.name: consumer for consumer in was.consumers}
    for consumer in now.consumers:
        if consumer.name not in former:
            changes.append(_elsewhere(now, "consumer", f"add consumer {consumer.name}"))
        elif former[consumer.name] != consumer:
            description = _list_differences(former[consumer.name], consumer)
            changes.append(_elsewhere(now, "consumer", f"change consumer {consumer.name} ({description})"))
    names = {consumer.name for consumer in now.consumers}
    changes += [
        _elsewhere(now, "consumer", f"remove consumer {name}", removes=True)
        for name in former
        if name not in names
    ]
    if was.settings.encryption != now.settings.encryption and now.settings.encryption is not None:
        what = f"change the encryption key from {was.settings.encryption} to {now.settings.encryption}"
        changes.append(_elsewhere(now, "encryption", what))
    return changes


def _list_differences(was: object, now: object) -> str:
    """Return the members that differ, with both values."""
    pairs = ((name, getattr(was, name), getattr(now, name)) for name in type(now).__dataclass_fields__)  # type: ignore[attr-defined]
    return ", ".join(
        f"{name} {_spell_value(one)} → {_spell_value(other)}" for name, one, other in pairs if one != other
    )


def _spell_value(value: object) -> str:
    text = json.dumps(value, default=list, ensure_ascii=False) if isinstance(value, tuple) else str(value)
    return text or "none"


def _warn_of_index_moves(table: TableDesign, *, begins: bool) -> Iterator[str]:
    """Yield what happens to indexes in Terraform, where those of a scaled table are separate resources."""
    names = [index.name for index in table.indexes if not index.local]
    if not names:
        return
    names_text = ", ".join(names)
    if begins:
        steps = f"run terraform import for each ({names_text}) before terraform apply"
    else:
        steps = f"run terraform state rm for each ({names_text}) before terraform apply"
    become = "separate resources" if begins else "blocks of the table again"
    yield f"In Terraform its indexes become {become}: {steps}, or they are dropped and created again; tavola iac terraform prints the commands"


def compare_replicas(described: Mapping[str, Any] | None, now: TableDesign) -> list[DesignChange]:
    """Return the replicas that differ in a deployed table; `described` is None if it does not exist yet."""
    deployed: set[str] = set()
    declared = set(now.settings.replicas)
    if described is not None:
        deployed = {each["RegionName"] for each in described.get("Replicas", ())}
        arn = parse_resource_arn(described.get("TableArn", ""))
        home = {arn.scope.region} if arn is not None else set()
        deployed, declared = deployed - home, declared - home
    return list(_compare_regions(now, deployed, declared))


def list_unseen_settings(now: TableDesign) -> Iterator[str]:
    """Yield the settings of a design that cannot be read from a deployed table."""
    if now.settings.scaling is not None:
        yield f"Auto scaling is neither compared nor deployed here; {_BY}"
    if now.consumers:
        names = ", ".join(consumer.name for consumer in now.consumers)
        yield f"Stream consumers ({names}) are neither compared nor deployed here; {_BY}"


def _elsewhere(
    table: TableDesign, kind: str, what: str, removes: bool = False, warnings: tuple[str, ...] = ()
) -> DesignChange:
    """Return a difference that infrastructure applies."""
    text = f"{what}: tavola deploy does not do this; {_BY}"
    return DesignChange(table.name, kind, text, "elsewhere", "", removes, None, warnings)


def _compare_regions(now: TableDesign, deployed: set[str], declared: set[str]) -> Iterator[DesignChange]:
    warnings = (_GLOBAL,) if bool(deployed) != bool(declared) else ()
    for region in sorted(declared - deployed):
        yield _elsewhere(now, "replica", f"add a replica in {region}", False, warnings)
    for region in sorted(deployed - declared):
        yield _elsewhere(now, "replica", f"remove the replica in {region}", True, warnings)


Effect = Literal["create", "in place", "backfill", "rebuild", "rewrite", "replace", "remove", "elsewhere"]

_ORDER: tuple[Effect, ...] = (
    "create", "in place", "backfill", "rebuild", "rewrite", "replace", "remove", "elsewhere"
)  # fmt: skip
_NO_KEY = 'Deploy cannot create this table: encryption="new" needs a KMS key; create one and name it, or create both with infrastructure'
_SETTINGS = {  # change kind -> setting
    "ttl": "ttl", "recovery": "recovery", "tags": "tags", "stream": "stream", "protection": "deletion_protection",
    "encryption": "encryption", "class": "table_class", "scaling": "scaling",
}  # fmt: skip
_BY_HAND = (
    "Deploy never deletes a table: deploy the design under another name (--table-name), copy the items with your own "
    "program, switch the application over, and delete the old table when it is no longer used"
)
_ONE_INDEX = (
    "CloudFormation adds or drops one global index per stack update, so this takes {} updates there. "
    "tavola deploy makes these changes one after the other"
)
_WARNINGS = {
    "class": "DynamoDB allows two table class changes in 30 days",
    "ttl": "DynamoDB allows one TTL change per hour and takes up to an hour to apply it",
    "stream": "A stream's view type cannot be changed: the stream is disabled and a new one with another ARN is created; point "
    "consumers to the new one. Unread records stay readable in the old stream for 24 hours",
    "billing": "DynamoDB allows four switches from provisioned to on demand in 24 hours",
    "replace index": "The index cannot be queried from the moment it is dropped until its backfill is complete",
    "add index": "Existing items without the index key are not in the index until tavola backfill writes the key",
}


@dataclass(frozen=True, slots=True)
class DesignChange:
    """One difference, what it means and what it costs."""

    table: str
    kind: str  # such as `add index`, `ttl`, `entity`
    what: str
    effect: Effect
    place: str = ""  # the index or entity concerned
    removes: bool = False
    work: Work | None = None
    warnings: tuple[str, ...] = ()
    parts: tuple[TableChange, ...] = ()  # the requests to DynamoDB, in order; none: deploy does not make it

    @property
    def calls(self) -> tuple[Call, ...]:
        """The requests that make the change; each must finish before the next."""
        return tuple(call for part in self.parts for call in part.calls)

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


@dataclass(frozen=True, slots=True)
class DeployedTable:
    """A table as DescribeTable shows it, or as it would show a former design's."""

    described: Mapping[str, Any] | None
    counted: TableCount | None = None  # of an existing table

    def describe_index_difference(self, index: IndexDesign, types: Mapping[str, str]) -> str:
        """Return how an index differs, with both values."""
        described = self.described or {}
        current = next(
            each for each in described["GlobalSecondaryIndexes"] if each["IndexName"] == index.name
        )
        defined = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
        was = [(each["AttributeName"], each["KeyType"]) for each in current["KeySchema"]]
        now = [*((name, "HASH") for name in index.hash), *((name, "RANGE") for name in index.range)]
        differences = []
        before = ", ".join(f"{name} {defined.get(name, '?')} {kind}" for name, kind in was)
        after = ", ".join(f"{name} {types[name]} {kind}" for name, kind in now)
        if before != after:
            differences.append(f"the key changes from ({before}) to ({after})")
        projection = current["Projection"]
        former_projection = _spell_projection(
            projection["ProjectionType"], projection.get("NonKeyAttributes", ())
        )
        new_projection = (
            _spell_projection("INCLUDE", index.projection)
            if isinstance(index.projection, tuple)
            else index.projection
        )
        if former_projection != new_projection:
            differences.append(f"the projection changes from {former_projection} to {new_projection}")
        return "; ".join(differences)


def _spell_projection(kind: str, names: Iterable[str]) -> str:
    return f"INCLUDE ({', '.join(sorted(names))})" if kind == "INCLUDE" else kind


@dataclass(frozen=True, slots=True)
class TableComparison:
    """The differences between a table of a design and the deployed one."""

    table: str  # its deployed name
    exists: bool
    changes: tuple[DesignChange, ...] = ()
    notes: tuple[str, ...] = ()  # settings that are not compared here, and other remarks

    @property
    def parts(self) -> tuple[TableChange, ...]:
        """All requests of all changes."""
        return tuple(part for change in self.changes for part in change.parts)


def compare_designs(was: Design, now: Design) -> tuple[TableComparison, ...]:
    """Return what happens to each table when one design follows another; the new design's tables first."""
    driver = Driver(DesignBackend(was), RetryPolicy(), _never)
    comparisons = []
    for table in now.tables:
        renamed = _find_former_table(table, was, now)
        if renamed is not None:
            comparisons.append(TableComparison(table.name, False, (_rename_change(renamed, table),)))
            continue
        changes, described = driver.run(_fetch_changes(blueprint_of(table)))
        former = next((each for each in was.tables if each.name == table.name), None)
        elsewhere = [] if former is None else compare_infrastructure(former, table)
        if any(change.kind == "encryption" for change in changes.changes):
            elsewhere = [each for each in elsewhere if each.kind != "encryption"]
        deployed = DeployedTable(described)
        comparisons.append(_compare_table(table, changes, former, deployed, elsewhere))
    return (*comparisons, *_list_removed_tables(was, now))


def compare_nothing(now: Design, names: Mapping[str, str] | None = None) -> tuple[TableComparison, ...]:
    """Return what is created where no table exists yet, without contacting DynamoDB."""
    driver = Driver(DesignBackend(Design()), RetryPolicy(), _never)
    return tuple(driver.run(comparison_steps(table, None, names)) for table in now.tables)


def compare_live(
    db: Connection, now: Design, was: Design | None = None, names: Mapping[str, str] | None = None
) -> tuple[TableComparison, ...]:
    """Return how deployed tables differ; with a former design also what happens to items."""
    return tuple(db.run(comparison_steps(table, was, names)) for table in now.tables)


def comparison_steps(
    table: TableDesign, was: Design | None = None, names: Mapping[str, str] | None = None
) -> Program[TableComparison]:
    """Return the effects program that compares one table, for the sync or async client."""
    changes, described = yield from _fetch_changes(
        blueprint_of(table, (names or {}).get(table.name, table.name))
    )
    former = None if was is None else next((each for each in was.tables if each.name == table.name), None)
    deployed = DeployedTable(described, None if described is None else TableCount.of(described))
    elsewhere = compare_replicas(described, table)
    return _compare_table(table, changes, former, deployed, elsewhere, tuple(list_unseen_settings(table)))


def _never(seconds: float) -> None:
    raise AssertionError(f"comparing designs must not wait, asked for {seconds} s")


def _fetch_changes(blueprint: Blueprint) -> Program[tuple[TableChanges, Mapping[str, Any] | None]]:
    changes = yield from table_changes(blueprint)
    try:
        described = (yield Call("DescribeTable", {"TableName": blueprint.name}))["Table"]
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return changes, None
    return changes, described


def _compare_table(
    table: TableDesign,
    found: TableChanges,
    former: TableDesign | None,
    deployed: DeployedTable,
    elsewhere: Iterable[DesignChange],
    notes: tuple[str, ...] = (),
) -> TableComparison:
    exists = not any(change.kind == "create" for change in found.changes)
    if found.refusals:  # the table must be replaced, so its other differences do not matter
        return TableComparison(found.table, exists, (_replacement(table, found, deployed.counted),), notes)
    unknown = set(table.settings.unknown)
    if former is not None and deployed.counted is None:
        unknown |= set(former.settings.unknown)
    if exists:
        found = replace(
            found, changes=tuple(each for each in found.changes if _SETTINGS.get(each.kind) not in unknown)
        )
        elsewhere = [each for each in elsewhere if _SETTINGS.get(each.kind) not in unknown]
        notes = (*notes, *_note_unknown_settings(unknown))
    changes = list(_table_changes(table, found, deployed))
    if former is not None and exists:
        changes += _item_changes(found.table, former, table, deployed.counted)
    changes += [replace(each, table=found.table) for each in elsewhere]
    changes.sort(key=lambda change: _ORDER.index(change.effect))
    indexes = sum(part.kind in ("add index", "drop index") for change in changes for part in change.parts)
    if indexes > 1:
        notes = (*notes, _ONE_INDEX.format(indexes))
    return TableComparison(found.table, exists, tuple(changes), notes)


def _note_unknown_settings(unknown: set[str]) -> Iterator[str]:
    if unknown:
        names = ", ".join(UNKNOWN_WORDS.get(word, word) for word in sorted(unknown))
        yield f"Not compared and left unchanged, because one of the designs does not state it: {names}"


def _replacement(table: TableDesign, found: TableChanges, counted: TableCount | None) -> DesignChange:
    what = f"{'; '.join(found.refusals)}: it cannot be changed in place"
    work = copy_of(table, counted)
    return DesignChange(found.table, "replace table", what, "replace", "", True, work, (_BY_HAND,))


def _table_changes(
    table: TableDesign, found: TableChanges, deployed: DeployedTable
) -> Iterator[DesignChange]:
    """Yield the changes of a table itself; an index or TTL that is dropped and recreated is one change."""
    for change in found.changes:
        if change.removes and _other_half(change, found.changes) is not None:
            continue  # reported with its other half
        ending = None if change.removes else _other_half(change, found.changes)
        if ending is not None:
            yield _replacement_in_place(table, found.table, ending, change, deployed)
        elif change.kind == "add index":
            index = table.index(str(change.index))
            warnings = () if index.native else (_WARNINGS["add index"],)
            yield _single_change(
                found.table, change, "backfill", backfill_of(table, index, deployed.counted), warnings
            )
        elif change.kind == "create":
            count = len(table.indexes)
            indexes = "" if not count else f" with {count} {'index' if count == 1 else 'indexes'}"
            made = f"create table {found.table}{indexes}"
            warned = (_NO_KEY,) if is_key_to_create(table.settings.encryption) else ()
            yield DesignChange(found.table, "create", made, "create", warnings=warned, parts=(change,))
        elif not change.calls:
            yield DesignChange(found.table, change.kind, change.what, "elsewhere")
        else:
            effect: Effect = (
                "remove" if _only_removes(change) else "replace" if _replaces_stream(change) else "in place"
            )
            yield _single_change(found.table, change, effect, None, tuple(_list_warnings(change)))


def _only_removes(change: TableChange) -> bool:
    """Return whether a change only removes something."""
    if not change.removes:
        return False
    return change.kind != "stream" or len(change.calls) == 1


def _replaces_stream(change: TableChange) -> bool:
    """Return whether a change ends a stream and starts another."""
    return change.kind == "stream" and change.removes and len(change.calls) > 1


def _other_half(change: TableChange, others: Sequence[TableChange]) -> TableChange | None:
    """Return the counterpart of a change: the removal before a new index or TTL, or the addition after it."""
    halves = {"drop index": "add index", "add index": "drop index", "ttl": "ttl"}
    return next(
        (
            each
            for each in others
            if each.kind == halves.get(change.kind)
            and each.index == change.index
            and each.removes is not change.removes
        ),
        None,
    )


def _replacement_in_place(
    table: TableDesign, name: str, ending: TableChange, beginning: TableChange, deployed: DeployedTable
) -> DesignChange:
    parts = (ending, beginning)
    if beginning.kind == "ttl":
        return DesignChange(name, "ttl", ending.what, "in place", "", True, None, (_WARNINGS["ttl"],), parts)
    index = str(beginning.index)
    declared = table.index(index)
    what = f"drop and recreate index {index}: {deployed.describe_index_difference(declared, table.key_types)}"
    work = backfill_of(table, declared, deployed.counted)
    return DesignChange(
        name, "replace index", what, "rebuild", index, True, work, (_WARNINGS["replace index"],), parts
    )


def _single_change(
    name: str, change: TableChange, effect: Effect, work: Work | None, warnings: tuple[str, ...]
) -> DesignChange:
    place = change.index or ""
    return DesignChange(
        name, change.kind, change.what, effect, place, change.removes, work, warnings, (change,)
    )


def _list_warnings(change: TableChange) -> Iterator[str]:
    if change.kind in ("class", "ttl", "billing") or (change.kind == "stream" and len(change.calls) > 1):
        yield _WARNINGS[change.kind]


def _item_changes(
    name: str, was: TableDesign, now: TableDesign, counted: TableCount | None
) -> Iterator[DesignChange]:
    """Yield what happens to items, entity by entity."""
    before = {entity.tag: entity for entity in was.entities}
    after = {entity.tag: entity for entity in now.entities}
    changes = differences(was, now)
    for tag in dict.fromkeys(each.entity for each in changes if each.entity):
        own = [each for each in changes if each.entity == tag]
        cares = tuple(each.what for each in own if each.consequence == "care")
        entity, former = after.get(tag), before.get(tag)
        if entity is None or former is None:
            yield DesignChange(
                name, "entity", cares[0] if cares else "new entity", "in place", tag, False, None, ()
            )
            continue
        moves = any(each.consequence == "move" for each in own)
        rewritten = [each for each in own if each.consequence in ("rewrite", "move")]
        if not moves and all(_needs_no_rewrite(former, entity, each) for each in rewritten):
            rewritten = []
        if rewritten:
            what = f"{entity.name}: {'; '.join(each.what for each in rewritten)}"
            work = rewrite_of(now, former, entity, counted, moves=moves)
            how = "The primary key changes: each item is copied under its new key, and the old item is deleted" if moves else (
                "Existing items keep their old keys until tavola backfill rewrites them"
            )  # fmt: skip
            yield DesignChange(name, "entity", what, "rewrite", entity.name, moves, work, (how, *cares))
        elif cares:
            yield DesignChange(
                name, "entity", f"{entity.name}: {cares[0]}", "in place", entity.name, False, None, cares[1:]
            )


def _needs_no_rewrite(was: EntityDesign, now: EntityDesign, difference: DesignDifference) -> bool:
    """Return whether items enter or leave an index without being rewritten: its key consists of attributes that they have."""
    if difference.membership_of is None:
        return False
    key = now.key_on(difference.membership_of)
    if key is None:
        former = was.key_on(difference.membership_of)
        return former is not None and _uses_plain_attributes(former)
    names = {field.name for field in was.fields}
    return _uses_plain_attributes(key) and names.issuperset(key.fields)


def _uses_plain_attributes(key: KeyDesign) -> bool:
    return all(source.field is not None for source in key.sources) and not key.members


def _find_former_table(table: TableDesign, was: Design, now: Design) -> TableDesign | None:
    """Return the former table with another name and the same label."""
    if any(each.name == table.name for each in was.tables):
        return None
    current_names = {each.name for each in now.tables}
    return next(
        (each for each in was.tables if each.label == table.label and each.name not in current_names), None
    )


def _rename_change(was: TableDesign, now: TableDesign) -> DesignChange:
    what = f"renamed from {was.name} to {now.name}: DynamoDB cannot rename a table"
    return DesignChange(now.name, "replace table", what, "replace", "", True, copy_of(now, None), (_BY_HAND,))


def _list_removed_tables(was: Design, now: Design) -> Iterator[TableComparison]:
    """Yield the tables that are no longer in the design; nothing deletes them."""
    names, labels = {table.name for table in now.tables}, {table.label for table in now.tables}
    for table in was.tables:
        if table.name not in names and table.label not in labels:
            what = (
                "not in the design any more; deploy keeps the table, and it costs money until you delete it"
            )
            yield TableComparison(
                table.name, True, (DesignChange(table.name, "abandoned table", what, "remove"),)
            )
