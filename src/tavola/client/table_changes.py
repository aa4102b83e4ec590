"""Table changes: what a table that is there has otherwise than its model, and making it the model's.

Each change is one that DynamoDB does in place, with the requests that do it, in an order that it takes: one at a time,
each waited for. What takes something away (an index, the stream, recovery, units) is done only when that is wanted. What
cannot be done in place at all is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tavola.client.context import Context
from tavola.client.provisioning import (
    TableMismatch,
    active,
    asked,
    create_table,
    defined_types,
    index_request,
    key_refusals,
    table_request,
)
from tavola.client.reports import TableChange, TableChanges
from tavola.client.steps import Call, Steps
from tavola.model import Index, Table, key_types
from tavola.protocol import Fault, ValidationFault


def table_changes(context: Context, table: type[Table]) -> Steps[TableChanges]:
    """Return what a table that is there has otherwise than its model; all of it, where there is none."""
    name = context.name_of(table)
    wanted = table_request(context, table)
    try:
        described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return TableChanges(name, (TableChange("create", "the table is not there", ()),), ())
    refusals = key_refusals(table, described)
    if refusals:
        return TableChanges(name, (), refusals)
    held = _Held(name, table, described)
    changes = [*held.settings(wanted), *held.indexes()]
    changes += yield from _ttl(name, table.settings.ttl)
    changes += yield from _recovery(name, table)
    changes += yield from _tags(described["TableArn"], table.settings.tags)
    return TableChanges(name, tuple(changes), tuple(held.refusals))


def apply_changes(
    context: Context, table: type[Table], drop: bool, found: TableChanges | None = None
) -> Steps[TableChanges]:
    """Make the changes that a table needs, one after the other, each waited for; return those that were made.

    With `drop` also those that take something away; a refusal is a `TableMismatch` before anything is done.
    """
    if found is None:
        found = yield from table_changes(context, table)
    if found.refusals:
        raise TableMismatch(found.table, found.refusals)
    made: list[TableChange] = []
    for change in found.changes:
        if not drop and (change.removes or _follows(change, found.changes)):
            continue
        if change.kind == "create":
            yield from create_table(context, table)
        try:
            for call in change.calls:
                yield call
                yield from active(found.table)
        except ValidationFault:
            if change.kind == "ttl" and _follows(change, made):
                continue  # DynamoDB takes one such change an hour, and this one is told again until then
            raise
        made.append(change)
    return TableChanges(found.table, tuple(made), ())


def _follows(change: TableChange, others: Iterable[TableChange]) -> bool:
    """Return whether a change is the second half of one that takes something away: it makes the same anew."""
    if change.removes:
        return False
    halves = {("add index", "drop index"), ("ttl", "ttl")}
    return any(
        each.removes and (change.kind, each.kind) in halves and each.index == change.index for each in others
    )


def ensure_table(context: Context, table: type[Table], change: bool) -> Steps[None]:
    """Make a table that is not there; with `change`, make one that is there the model's, taking nothing away.

    One that lacks an index of the model, or has it otherwise, could not be asked as the model says: a `TableMismatch`.
    """
    described = yield from create_table(context, table)
    if described is None:
        return
    name = context.name_of(table)
    if change:
        yield from apply_changes(context, table, drop=False)
        described = yield from active(name)
    held = _Held(name, table, described)
    differing = [each for each in held.indexes() if not each.removes]
    if differing:
        there = {each["IndexName"] for each in described.get("GlobalSecondaryIndexes", ())}
        reasons = [
            f"the index {each.index} {'has another key or projection' if each.index in there else 'is not there'}"
            for each in differing
        ]
        drops = any(each.index in there for each in differing)
        how = (
            f"apply_changes({table.__name__}, drop=True)"
            if drops
            else f"create_tables({table.__name__}, change=True)"
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

    def __init__(self, name: str, table: type[Table], described: Mapping[str, Any]) -> None:
        self._name = name
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
            call = self._throughput(dict.fromkeys(arms, throughput))
            what = f"it is no longer billed on demand: it and its indexes have {told}"
            yield TableChange("billing", what, (call,), removes=True)
            return
        now = {name: _throughput(arm) for name, arm in arms.items()}
        raised = {name: _most(units, throughput) for name, units in now.items()}
        if raised != now:
            call = self._throughput({name: units for name, units in raised.items() if units != now[name]})
            yield TableChange("billing", f"it and its indexes have at least {told}", (call,))
        lowered = {name: throughput for name, units in raised.items() if units != throughput}
        if lowered:
            most = " and ".join(str(max(u[n] for u in raised.values())) for n in throughput)
            what = f"it and its indexes have no more than {told}, and one of them has {most}"
            yield TableChange("billing", what, (self._throughput(lowered),), removes=True)

    def _throughput(self, units: Mapping[str | None, Mapping[str, int]]) -> Call:
        """Return the update that gives the table (None) and indexes so many units."""
        members: dict[str, Any] = {"BillingMode": "PROVISIONED"}
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
        key = None if wanted is None else wanted["KMSMasterKeyId"]
        if key is None:
            if has is not None:
                call = self._update(SSESpecification={"Enabled": False})
                yield TableChange("encryption", "it is encrypted by AWS's own key", (call,), removes=True)
        elif has is None or not str(has).endswith(str(key).rpartition("/")[2]):
            yield TableChange(
                "encryption", f"it is encrypted by {key}", (self._update(SSESpecification=wanted),)
            )

    def indexes(self) -> Iterator[TableChange]:
        """Give the changes of the global indexes, and note which local ones are otherwise."""
        types = key_types(self._table)
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
        for name, index in wanted.items():
            if name not in there or self._otherwise(index, there[name], types, defined):
                yield self._add(index, types)

    def _otherwise(
        self, index: Index, told: Mapping[str, Any], types: Mapping[str, str], defined: Mapping[str, str]
    ) -> bool:
        if any(types[name] != defined.get(name, types[name]) for name in index.attributes):
            return True
        return _differs(index_request(self._table, index), told)

    def _drop(self, name: str, what: str) -> TableChange:
        call = self._update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])
        return TableChange("drop index", what, (call,), removes=True, index=name)

    def _add(self, index: Index, types: Mapping[str, str]) -> TableChange:
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


def _differs(wanted: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    return wanted["KeySchema"] != list(told["KeySchema"]) or _projection(wanted) != _projection(told)


def _projection(index: Mapping[str, Any]) -> tuple[str, list[str]]:
    told = index["Projection"]
    return told["ProjectionType"], sorted(told.get("NonKeyAttributes", ()))


def _ttl(name: str, wanted: str | None) -> Steps[list[TableChange]]:
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


def _recovery(name: str, table: type[Table]) -> Steps[list[TableChange]]:
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


def _tags(arn: str, wanted: Mapping[str, str]) -> Steps[list[TableChange]]:
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
