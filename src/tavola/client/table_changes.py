"""Table changes: what a table that is there has otherwise than its model, and making it the model's.

Each change is one that DynamoDB does in place, with the requests that do it, in an order that it takes (`in_order`): one at a
time, each waited for. What takes something away (an index, the stream, recovery, units) is done only when that is wanted. What
cannot be done in place at all is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tavola.client.effects import Call, Program
from tavola.client.provisioning import (
    AWS_KEY,
    OWN_KEY,
    Blueprint,
    IndexForm,
    KeyNotMade,
    TableMismatch,
    TableUnusable,
    active,
    asked,
    create_table,
    defined_types,
    gone,
    index_request,
    is_active,
    key_refusals,
    names_no_key,
    table_request,
)
from tavola.client.reports import TableChange, TableChanges
from tavola.model import Scaling
from tavola.protocol.faults import Fault, ValidationFault

__all__ = [
    "AWS_KEY",
    "OWN_KEY",
    "Blueprint",
    "KeyNotMade",
    "TableChange",
    "TableChanges",
    "TableUnusable",
    "active",
    "apply_changes",
    "create_table",
    "ensure_table",
    "gone",
    "in_order",
    "is_active",
    "is_taken_later",
    "names_no_key",
    "table_changes",
    "table_request",
]


def table_changes(table: Blueprint) -> Program[TableChanges]:
    """Return what a table that is there has otherwise than its model; all of it, where there is none."""
    name = table.name
    wanted = table_request(table)
    try:
        described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return TableChanges(name, (TableChange("create", "the table is not there", ()),), ())
    refusals = key_refusals(table, described)
    if refusals:
        return TableChanges(name, (), refusals)
    held = _Held(table, described)
    changes = [*held.settings(wanted), *held.indexes()]
    changes += yield from _ttl(name, table.settings.ttl)
    changes += yield from _recovery(name, table)
    changes += yield from _tags(described["TableArn"], table.settings.tags)
    return TableChanges(name, tuple(changes), tuple(held.refusals))


def apply_changes(table: Blueprint, drop: bool, found: TableChanges | None = None) -> Program[TableChanges]:
    """Make the changes that a table needs, one after the other, each waited for; return those that were made.

    With `drop` also those that take something away; a refusal is a `TableMismatch` before anything is done.
    """
    if found is None:
        found = yield from table_changes(table)
    if found.refusals:
        raise TableMismatch(found.table, found.refusals)
    chosen = [
        change
        for change in found.changes
        if drop or not (change.removes or change.needs or _follows(change, found.changes))
    ]
    made: list[TableChange] = []
    for change in in_order(chosen, found.changes):
        if change.kind == "create":
            yield from create_table(table)
        try:
            for call in change.calls:
                yield call
                yield from active(found.table)
        except ValidationFault as fault:
            if is_taken_later(change, fault) and _follows(change, made):
                continue  # it is told again until then
            raise
        made.append(change)
    return TableChanges(found.table, tuple(made), ())


_ORDER = {
    kind: place
    for place, kind in enumerate(
        ("create", "billing", "stream", "class", "protection", "encryption", "drop index", "add index", "ttl")
    )
}


def in_order(chosen: Iterable[TableChange], every: Iterable[TableChange]) -> list[TableChange]:
    """Return changes that are wanted out of all there are, in the order that DynamoDB takes, as it takes them.

    Billing comes first, for it decides whether a new index has units; all indexes that go come before any that comes, for one that is left may
    hold an attribute to its old type, or be one too many. Where the table stays on demand, new indexes are asked for without units.
    """
    wanted = [change for change in chosen if change.calls or change.kind == "create"]
    stays = any(_begins_units(change) and change not in wanted for change in every)
    ordered = sorted(wanted, key=lambda change: _ORDER.get(change.kind, len(_ORDER)))
    return [_without_units(change) if stays and change.kind == "add index" else change for change in ordered]


def is_taken_later(change: TableChange, fault: ValidationFault) -> bool:
    """Return whether DynamoDB refuses a change for now alone: it takes one of a time to live an hour."""
    return change.kind == "ttl" and "multiple times" in str(fault)


def _begins_units(change: TableChange) -> bool:
    """Return whether a change ends billing on demand."""
    return change.kind == "billing" and any(
        call.request.get("BillingMode") == "PROVISIONED" for call in change.calls
    )


def _without_units(change: TableChange) -> TableChange:
    calls = []
    for call in change.calls:
        updates = [
            {
                "Create": {
                    name: told for name, told in each["Create"].items() if name != "ProvisionedThroughput"
                }
            }
            for each in call.request["GlobalSecondaryIndexUpdates"]
        ]
        calls.append(Call(call.operation, {**call.request, "GlobalSecondaryIndexUpdates": updates}))
    return replace(change, calls=tuple(calls))


def _follows(change: TableChange, others: Iterable[TableChange]) -> bool:
    """Return whether a change is the second half of one that takes something away: it makes the same anew."""
    if change.removes:
        return False
    halves = {("add index", "drop index"), ("ttl", "ttl")}
    return any(
        each.removes and (change.kind, each.kind) in halves and each.index == change.index for each in others
    )


def ensure_table(table: Blueprint, change: bool) -> Program[None]:
    """Make a table that is not there; with `change`, make one that is there the model's, taking nothing away.

    One that lacks an index of the model, or has it otherwise, could not be asked as the model says: a `TableMismatch`.
    """
    described = yield from create_table(table)
    if described is None:
        return
    name = table.name
    if change:
        yield from apply_changes(table, drop=False)
        described = yield from active(name)
    held = _Held(table, described)
    differing = [each for each in held.indexes() if not each.removes]
    if differing:
        there = {each["IndexName"] for each in described.get("GlobalSecondaryIndexes", ())}
        reasons = [
            f"the index {each.index} {'has another key or projection' if each.index in there else 'is not there'}"
            for each in differing
        ]
        drops = any(each.index in there for each in differing)
        how = (
            f"apply_changes({table.label}, drop=True)"
            if drops
            else f"create_tables({table.label}, change=True)"
        )
        raise TableMismatch(
            name, tuple(reasons), f"{how} makes it so, and table_changes() tells what else is otherwise"
        )
    lacking = {index.name for index in table.indexes if index.local}
    refusals = tuple(each for each in held.refusals if any(f"local index {n} " in each for n in lacking))
    if refusals:
        raise TableMismatch(name, refusals)


class _Held:
    """A table that is there, held against its model."""

    def __init__(self, table: Blueprint, described: Mapping[str, Any]) -> None:
        self._name = table.name
        self._table = table
        self._described = described
        self.refusals: list[str] = []

    def _update(self, **members: Any) -> Call:
        return Call("UpdateTable", {"TableName": self._name, **members})

    def settings(self, wanted: Mapping[str, Any]) -> Iterator[TableChange]:
        """Give the changes of everything that UpdateTable sets, but the indexes."""
        yield from self._billing(wanted)
        yield from self._stream(wanted.get("StreamSpecification", {}).get("StreamViewType"))
        has = self._described.get("TableClassSummary", {}).get("TableClass", "STANDARD")
        if has != wanted["TableClass"]:
            what = f"its class becomes {wanted['TableClass']}, and is {has}"
            yield TableChange("class", what, (self._update(TableClass=wanted["TableClass"]),))
        protects = wanted["DeletionProtectionEnabled"]
        if self._described.get("DeletionProtectionEnabled", False) != protects:
            what = f"its deletion protection goes {'on' if protects else 'off'}"
            call = self._update(DeletionProtectionEnabled=protects)
            yield TableChange("protection", what, (call,), removes=not protects)
        yield from self._encryption(wanted.get("SSESpecification"))

    def _billing(self, wanted: Mapping[str, Any]) -> Iterator[TableChange]:
        """Give the changes of what is paid for: more units at once, fewer apart, for somebody may need what there is."""
        has = self._described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        mode, throughput = wanted["BillingMode"], wanted.get("ProvisionedThroughput")
        if mode == "PAY_PER_REQUEST":
            if has != mode:
                yield TableChange("billing", "it is billed on demand", (self._update(BillingMode=mode),))
            return
        assert throughput is not None, "a provisioned table says how much"
        told = f"{throughput['ReadCapacityUnits']} read and {throughput['WriteCapacityUnits']} write units a second"
        arms = {
            None: self._described,
            **{i["IndexName"]: i for i in self._described.get("GlobalSecondaryIndexes", ())},
        }
        if has != mode:
            call = self._throughput(dict.fromkeys(arms, throughput), begins=True)
            what = f"it is no longer billed on demand: it and its indexes have {told}"
            yield TableChange("billing", what, (call,), removes=True)
            return
        now = {name: _throughput(arm) for name, arm in arms.items()}
        if self._table.settings.scaling is not None:
            yield from self._scaled(self._table.settings.scaling, now)
            return
        raised = {name: _most(units, throughput) for name, units in now.items()}
        if raised != now:
            call = self._throughput({name: units for name, units in raised.items() if units != now[name]})
            yield TableChange("billing", f"it and its indexes have at least {told}", (call,))
        lowered = {name: throughput for name, units in raised.items() if units != throughput}
        if lowered:
            most = " and ".join(str(max(u[n] for u in raised.values())) for n in throughput)
            what = f"it and its indexes have no more than {told}, and one of them has {most}"
            yield TableChange("billing", what, (self._throughput(lowered),), removes=True)

    def _scaled(self, scaling: Scaling, now: Mapping[str | None, Mapping[str, int]]) -> Iterator[TableChange]:
        """Give the changes of units that auto scaling sets: what is within its bounds is its own affair."""
        least = {"ReadCapacityUnits": scaling.read_min, "WriteCapacityUnits": scaling.write_min}
        most = {"ReadCapacityUnits": scaling.read_max, "WriteCapacityUnits": scaling.write_max}
        raised = {name: _most(units, least) for name, units in now.items()}
        if raised != now:
            call = self._throughput({name: units for name, units in raised.items() if units != now[name]})
            what = "it and its indexes have at least the units that its scaling begins with"
            yield TableChange("billing", what, (call,))
        lowered = {
            name: {word: min(count, most[word]) for word, count in units.items()}
            for name, units in raised.items()
        }
        if lowered != raised:
            call = self._throughput({name: units for name, units in lowered.items() if units != raised[name]})
            what = "it and its indexes have no more units than its scaling ends with"
            yield TableChange("billing", what, (call,), removes=True)

    def _throughput(self, units: Mapping[str | None, Mapping[str, int]], *, begins: bool = False) -> Call:
        """Return the update that gives the table (None) and indexes so many units; it `begins` to be billed by them."""
        members: dict[str, Any] = {"BillingMode": "PROVISIONED"} if begins else {}
        if None in units:
            members["ProvisionedThroughput"] = units[None]
        updates = [
            {"Update": {"IndexName": name, "ProvisionedThroughput": each}}
            for name, each in units.items()
            if name is not None
        ]
        if updates:
            members["GlobalSecondaryIndexUpdates"] = updates
        return self._update(**members)

    def _stream(self, wanted: str | None) -> Iterator[TableChange]:
        told = self._described.get("StreamSpecification", {})
        has = told.get("StreamViewType") if told.get("StreamEnabled") else None
        if has == wanted:
            return
        off = self._update(StreamSpecification={"StreamEnabled": False})
        if wanted is None:
            yield TableChange("stream", f"its stream ({has}) ends", (off,), removes=True)
            return
        on = self._update(StreamSpecification={"StreamEnabled": True, "StreamViewType": wanted})
        if has is None:
            yield TableChange("stream", f"it has a stream of {wanted}", (on,))
            return
        what = f"its stream ({has}) ends, and one of {wanted} begins"
        yield TableChange("stream", what, (off, on), removes=True)

    def _encryption(self, wanted: Mapping[str, Any] | None) -> Iterator[TableChange]:
        told = self._described.get("SSEDescription", {})
        has = (
            told.get("KMSMasterKeyArn") if told.get("Status") in ("ENABLED", "ENABLING", "UPDATING") else None
        )
        key = self._table.settings.encryption
        if wanted is None or key is None:
            if has is not None:
                call = self._update(SSESpecification={"Enabled": False})
                yield TableChange("encryption", "it is encrypted by AWS's own key", (call,), removes=True)
        elif names_no_key(key):
            if has is None:
                yield TableChange("encryption", f"it is encrypted by a key that is to be made ({key})", ())
        elif has is None or not _same_key(str(has), key):
            yield TableChange(
                "encryption", f"it is encrypted by {key}", (self._update(SSESpecification=wanted),)
            )

    def indexes(self) -> Iterator[TableChange]:
        """Give the changes of the global indexes, and note which local ones are otherwise."""
        types = self._table.key_types
        defined = defined_types(self._described)
        local = {index.name: index for index in self._table.indexes if index.local}
        there = {each["IndexName"]: each for each in self._described.get("LocalSecondaryIndexes", ())}
        for name in sorted(local.keys() | there.keys()):
            if name not in there:
                self.refusals.append(f"the local index {name} is not there, and comes with a new table alone")
            elif name not in local:
                self.refusals.append(
                    f"the local index {name} is not in the model, and goes with its table alone"
                )
            elif _differs(index_request(self._table, local[name]), there[name]):
                self.refusals.append(f"the local index {name} has another key or projection")
        wanted = {index.name: index for index in self._table.indexes if not index.local}
        there = {each["IndexName"]: each for each in self._described.get("GlobalSecondaryIndexes", ())}
        for name, told in there.items():
            if name not in wanted:
                yield self._drop(name, f"the index {name} is not in the model, and is dropped")
            elif self._otherwise(wanted[name], told, types, defined):
                yield self._drop(
                    name, f"the index {name} has another key or projection, and is dropped to be made anew"
                )
        going = {
            name: {each["AttributeName"] for each in told["KeySchema"]}
            for name, told in there.items()
            if name not in wanted or self._otherwise(wanted[name], told, types, defined)
        }
        for name, index in wanted.items():
            if name not in there or name in going:
                retyped = {each for each in index.attributes if defined.get(each, types[each]) != types[each]}
                needs = tuple(each for each, has in going.items() if each != name and retyped & has)
                yield replace(self._add(index, types), needs=needs)

    def _otherwise(
        self, index: IndexForm, told: Mapping[str, Any], types: Mapping[str, str], defined: Mapping[str, str]
    ) -> bool:
        if any(types[name] != defined.get(name, types[name]) for name in index.attributes):
            return True
        return _differs(index_request(self._table, index), told)

    def _drop(self, name: str, what: str) -> TableChange:
        call = self._update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])
        return TableChange("drop index", what, (call,), removes=True, index=name)

    def _add(self, index: IndexForm, types: Mapping[str, str]) -> TableChange:
        definitions = [{"AttributeName": name, "AttributeType": types[name]} for name in index.attributes]
        call = self._update(
            AttributeDefinitions=definitions,
            GlobalSecondaryIndexUpdates=[{"Create": index_request(self._table, index)}],
        )
        keys = ", ".join(index.attributes)
        return TableChange(
            "add index", f"the index {index.name} ({keys}) is added", (call,), index=index.name
        )


def _throughput(arm: Mapping[str, Any]) -> dict[str, int]:
    told = arm.get("ProvisionedThroughput", {})
    return {name: told.get(name, 0) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(units, other[name]) for name, units in one.items()}


def _same_key(has: str, key: str) -> bool:
    """Return whether a table has a key, as far as that can be seen: DynamoDB tells the key's ARN, and no alias of it."""
    if key == has:
        return True
    if key.startswith("alias/") or ":alias/" in key:
        return has.startswith("arn:")
    return has.rpartition("/")[2] == key.rpartition("/")[2]


def _differs(wanted: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    return wanted["KeySchema"] != list(told["KeySchema"]) or _projection(wanted) != _projection(told)


def _projection(index: Mapping[str, Any]) -> tuple[str, list[str]]:
    told = index["Projection"]
    return told["ProjectionType"], sorted(told.get("NonKeyAttributes", ()))


def _ttl(name: str, wanted: str | None) -> Program[list[TableChange]]:
    answer = yield from asked("DescribeTimeToLive", {"TableName": name})
    if answer is None:
        return []
    told = answer["TimeToLiveDescription"]
    on = told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    has = told.get("AttributeName") if on else None
    if has == wanted:
        return []
    changes = []
    if has is not None:
        again = f"; they end by {wanted} once DynamoDB takes a second change, an hour after" if wanted else ""
        changes.append(_expiry(name, has, on=False, what=f"items no longer end by {has}{again}"))
    if wanted is not None:
        changes.append(_expiry(name, wanted, on=True, what=f"items end by {wanted}"))
    return changes


def _expiry(name: str, attribute: str, *, on: bool, what: str) -> TableChange:
    spec = {"Enabled": on, "AttributeName": attribute}
    call = Call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": spec})
    return TableChange("ttl", what, (call,), removes=not on)


def _recovery(name: str, table: Blueprint) -> Program[list[TableChange]]:
    answer = yield from asked("DescribeContinuousBackups", {"TableName": name})
    if answer is None:
        return []
    told = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    on = told.get("PointInTimeRecoveryStatus") == "ENABLED"
    settings = table.settings
    days = told.get("RecoveryPeriodInDays", settings.recovery_days)
    if on == settings.recovery and (not on or days == settings.recovery_days):
        return []
    spec: dict[str, Any] = {"PointInTimeRecoveryEnabled": settings.recovery}
    if settings.recovery:
        spec["RecoveryPeriodInDays"] = settings.recovery_days
    call = Call("UpdateContinuousBackups", {"TableName": name, "PointInTimeRecoverySpecification": spec})
    what = (
        f"its past is kept for {settings.recovery_days} days" if settings.recovery else "its past is not kept"
    )
    shorter = on and (not settings.recovery or days > settings.recovery_days)
    return [TableChange("recovery", what, (call,), shorter)]


def _tags(arn: str, wanted: Mapping[str, str]) -> Program[list[TableChange]]:
    has: dict[str, str] = {}
    request: dict[str, Any] = {"ResourceArn": arn}
    while True:
        answer = yield from asked("ListTagsOfResource", request)
        if answer is None:
            return []
        has |= {tag["Key"]: tag["Value"] for tag in answer.get("Tags", ())}
        if "NextToken" not in answer:
            break
        request = {**request, "NextToken": answer["NextToken"]}
    changes = []
    new = {key: value for key, value in wanted.items() if has.get(key) != value}
    if new:
        told = [{"Key": key, "Value": value} for key, value in new.items()]
        call = Call("TagResource", {"ResourceArn": arn, "Tags": told})
        changes.append(
            TableChange("tags", f"it is tagged {', '.join(f'{k}={v}' for k, v in new.items())}", (call,))
        )
    gone = [key for key in has if key not in wanted and not key.startswith("aws:")]
    if gone:
        call = Call("UntagResource", {"ResourceArn": arn, "TagKeys": gone})
        changes.append(TableChange("tags", f"its tags {', '.join(gone)} go", (call,), removes=True))
    return changes
