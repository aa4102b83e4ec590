"""Table changes: the differences between an existing table and its model, and the requests that remove them.

Each change is one that DynamoDB makes in place. Changes are made one at a time, in an order that DynamoDB accepts
(`order_changes`), and each is waited for. Those that remove something (an index, the stream, recovery, throughput) are made
only on request. Differences that cannot be changed in place are refusals.
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
    KmsKeyMissing,
    TableMismatch,
    TableUnusable,
    call_if_supported,
    create_table,
    defined_types,
    delete_table,
    index_request,
    is_active,
    is_key_to_create,
    key_mismatches,
    table_request,
    wait_until_active,
)
from tavola.client.reports import TableChange, TableChanges
from tavola.model import Scaling
from tavola.protocol.faults import Fault, ValidationFault

__all__ = [
    "AWS_KEY",
    "OWN_KEY",
    "Blueprint",
    "KmsKeyMissing",
    "TableChange",
    "TableChanges",
    "TableUnusable",
    "apply_changes",
    "create_table",
    "delete_table",
    "ensure_table",
    "is_active",
    "is_allowed_later",
    "is_key_to_create",
    "order_changes",
    "table_changes",
    "table_request",
    "wait_until_active",
]


def table_changes(table: Blueprint) -> Program[TableChanges]:
    """Return the differences between an existing table and its model; one change to create it if it does not exist."""
    name = table.name
    declared = table_request(table)
    try:
        described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return TableChanges(name, (TableChange("create", "the table does not exist", ()),), ())
    refusals = key_mismatches(table, described)
    if refusals:
        return TableChanges(name, (), refusals)
    comparison = _TableComparison(table, described)
    changes = [*comparison.settings(declared), *comparison.indexes()]
    changes += yield from _ttl(name, table.settings.ttl)
    changes += yield from _recovery(name, table)
    changes += yield from _tags(described["TableArn"], table.settings.tags)
    return TableChanges(name, tuple(changes), tuple(comparison.refusals))


def apply_changes(table: Blueprint, drop: bool, changes: TableChanges | None = None) -> Program[TableChanges]:
    """Make the changes that a table needs, one after the other, and return those that were made.

    With `drop`, also those that remove something; a refusal raises `TableMismatch` before anything is changed.
    """
    if changes is None:
        changes = yield from table_changes(table)
    if changes.refusals:
        raise TableMismatch(changes.table, changes.refusals)
    chosen = [
        change
        for change in changes.changes
        if drop or not (change.removes or change.needs or _recreates(change, changes.changes))
    ]
    applied: list[TableChange] = []
    for change in order_changes(chosen, changes.changes):
        if change.kind == "create":
            yield from create_table(table)
        try:
            for call in change.calls:
                yield call
                yield from wait_until_active(changes.table)
        except ValidationFault as fault:
            if is_allowed_later(change, fault) and _recreates(change, applied):
                continue  # the next comparison reports it again
            raise
        applied.append(change)
    return TableChanges(changes.table, tuple(applied), ())


_ORDER = {
    kind: place
    for place, kind in enumerate(
        ("create", "billing", "stream", "class", "protection", "encryption", "drop index", "add index", "ttl")
    )
}


def order_changes(chosen: Iterable[TableChange], every: Iterable[TableChange]) -> list[TableChange]:
    """Return the chosen changes in the order that DynamoDB accepts, adapted to those that were not chosen.

    Billing comes first, because it decides whether a new index has throughput. Indexes are dropped before others are added,
    because a remaining one may fix an attribute to its old type or count towards the limit. If the table stays on demand,
    new indexes are added without throughput.
    """
    selected = [change for change in chosen if change.calls or change.kind == "create"]
    stays_on_demand = any(_starts_provisioning(change) and change not in selected for change in every)
    ordered = sorted(selected, key=lambda change: _ORDER.get(change.kind, len(_ORDER)))
    return [
        _without_throughput(change) if stays_on_demand and change.kind == "add index" else change
        for change in ordered
    ]


def is_allowed_later(change: TableChange, fault: ValidationFault) -> bool:
    """Return whether a change is refused only for now: DynamoDB allows one change of time to live per hour."""
    return change.kind == "ttl" and "multiple times" in str(fault)


def _starts_provisioning(change: TableChange) -> bool:
    """Return whether a change switches from on-demand to provisioned billing."""
    return change.kind == "billing" and any(
        call.request.get("BillingMode") == "PROVISIONED" for call in change.calls
    )


def _without_throughput(change: TableChange) -> TableChange:
    calls = []
    for call in change.calls:
        creates = [update["Create"] for update in call.request["GlobalSecondaryIndexUpdates"]]
        updates = [
            {"Create": {name: value for name, value in create.items() if name != "ProvisionedThroughput"}}
            for create in creates
        ]
        calls.append(Call(call.operation, {**call.request, "GlobalSecondaryIndexUpdates": updates}))
    return replace(change, calls=tuple(calls))


def _recreates(change: TableChange, others: Iterable[TableChange]) -> bool:
    """Return whether a change creates again what another change removes."""
    if change.removes:
        return False
    halves = {("add index", "drop index"), ("ttl", "ttl")}
    return any(
        other.removes and (change.kind, other.kind) in halves and other.index == change.index
        for other in others
    )


def ensure_table(table: Blueprint, change: bool) -> Program[None]:
    """Create a table if it does not exist; with `change`, alter an existing one, without removing anything.

    A table without an index of the model, or with a different one, could not be queried: it raises `TableMismatch`.
    """
    described = yield from create_table(table)
    if described is None:
        return
    name = table.name
    if change:
        yield from apply_changes(table, drop=False)
        described = yield from wait_until_active(name)
    comparison = _TableComparison(table, described)
    differing = [index for index in comparison.indexes() if not index.removes]
    if differing:
        existing = {index["IndexName"] for index in described.get("GlobalSecondaryIndexes", ())}
        reasons = [
            f"the index {change.index} {'has another key or projection' if change.index in existing else 'does not exist'}"
            for change in differing
        ]
        drops = any(change.index in existing for change in differing)
        how = (
            f"apply_changes({table.label}, drop=True)"
            if drops
            else f"create_tables({table.label}, change=True)"
        )
        raise TableMismatch(
            name, tuple(reasons), f"{how} changes that, and table_changes() lists all differences"
        )
    lacking = {index.name for index in table.indexes if index.local}
    refusals = tuple(
        refusal for refusal in comparison.refusals if any(f"local index {n} " in refusal for n in lacking)
    )
    if refusals:
        raise TableMismatch(name, refusals)


class _TableComparison:
    """Compares an existing table with its model."""

    def __init__(self, table: Blueprint, described: Mapping[str, Any]) -> None:
        self._name = table.name
        self._table = table
        self._described = described
        self.refusals: list[str] = []

    def _update(self, **members: Any) -> Call:
        return Call("UpdateTable", {"TableName": self._name, **members})

    def settings(self, declared: Mapping[str, Any]) -> Iterator[TableChange]:
        """Yield the changes of everything that UpdateTable sets, except the indexes."""
        yield from self._billing(declared)
        yield from self._stream(declared.get("StreamSpecification", {}).get("StreamViewType"))
        current = self._described.get("TableClassSummary", {}).get("TableClass", "STANDARD")
        if current != declared["TableClass"]:
            what = f"change the table class from {current} to {declared['TableClass']}"
            yield TableChange("class", what, (self._update(TableClass=declared["TableClass"]),))
        protects = declared["DeletionProtectionEnabled"]
        if self._described.get("DeletionProtectionEnabled", False) != protects:
            what = f"{'enable' if protects else 'disable'} deletion protection"
            call = self._update(DeletionProtectionEnabled=protects)
            yield TableChange("protection", what, (call,), removes=not protects)
        yield from self._encryption(declared.get("SSESpecification"))

    def _billing(self, declared: Mapping[str, Any]) -> Iterator[TableChange]:
        """Yield the changes of billing; a decrease is a separate change, because the throughput may be in use."""
        current = self._described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        mode, throughput = declared["BillingMode"], declared.get("ProvisionedThroughput")
        if mode == "PAY_PER_REQUEST":
            if current != mode:
                yield TableChange("billing", "switch to on-demand billing", (self._update(BillingMode=mode),))
            return
        assert throughput is not None, "a provisioned table has a throughput"
        units_text = f"{throughput['ReadCapacityUnits']} read and {throughput['WriteCapacityUnits']} write units per second"
        parts = {
            None: self._described,
            **{i["IndexName"]: i for i in self._described.get("GlobalSecondaryIndexes", ())},
        }
        if current != mode:
            call = self._throughput(dict.fromkeys(parts, throughput), starts=True)
            what = f"switch to provisioned billing, with {units_text} for the table and its indexes"
            yield TableChange("billing", what, (call,), removes=True)
            return
        now = {name: _throughput(part) for name, part in parts.items()}
        if self._table.settings.scaling is not None:
            yield from self._scaled_throughput(self._table.settings.scaling, now)
            return
        raised = {name: _most(units, throughput) for name, units in now.items()}
        if raised != now:
            call = self._throughput({name: units for name, units in raised.items() if units != now[name]})
            yield TableChange("billing", f"raise the table and its indexes to at least {units_text}", (call,))
        lowered = {name: throughput for name, units in raised.items() if units != throughput}
        if lowered:
            most = " and ".join(str(max(u[n] for u in raised.values())) for n in throughput)
            what = f"lower the table and its indexes to {units_text}; one of them has {most}"
            yield TableChange("billing", what, (self._throughput(lowered),), removes=True)

    def _scaled_throughput(
        self, scaling: Scaling, now: Mapping[str | None, Mapping[str, int]]
    ) -> Iterator[TableChange]:
        """Yield the changes that bring throughput into the bounds of auto scaling."""
        least = {"ReadCapacityUnits": scaling.read_min, "WriteCapacityUnits": scaling.write_min}
        most = {"ReadCapacityUnits": scaling.read_max, "WriteCapacityUnits": scaling.write_max}
        raised = {name: _most(units, least) for name, units in now.items()}
        if raised != now:
            call = self._throughput({name: units for name, units in raised.items() if units != now[name]})
            what = "raise the table and its indexes to the minimum of auto scaling"
            yield TableChange("billing", what, (call,))
        lowered = {
            name: {word: min(count, most[word]) for word, count in units.items()}
            for name, units in raised.items()
        }
        if lowered != raised:
            call = self._throughput({name: units for name, units in lowered.items() if units != raised[name]})
            what = "lower the table and its indexes to the maximum of auto scaling"
            yield TableChange("billing", what, (call,), removes=True)

    def _throughput(self, units: Mapping[str | None, Mapping[str, int]], *, starts: bool = False) -> Call:
        """Return the update that sets the throughput of the table (None) and its indexes; `starts` switches billing."""
        members: dict[str, Any] = {"BillingMode": "PROVISIONED"} if starts else {}
        if None in units:
            members["ProvisionedThroughput"] = units[None]
        updates = [
            {"Update": {"IndexName": name, "ProvisionedThroughput": unit}}
            for name, unit in units.items()
            if name is not None
        ]
        if updates:
            members["GlobalSecondaryIndexUpdates"] = updates
        return self._update(**members)

    def _stream(self, declared: str | None) -> Iterator[TableChange]:
        stream = self._described.get("StreamSpecification", {})
        current = stream.get("StreamViewType") if stream.get("StreamEnabled") else None
        if current == declared:
            return
        off = self._update(StreamSpecification={"StreamEnabled": False})
        if declared is None:
            yield TableChange("stream", f"disable the stream ({current})", (off,), removes=True)
            return
        on = self._update(StreamSpecification={"StreamEnabled": True, "StreamViewType": declared})
        if current is None:
            yield TableChange("stream", f"enable a stream with {declared}", (on,))
            return
        what = f"replace the stream ({current}) by one with {declared}"
        yield TableChange("stream", what, (off, on), removes=True)

    def _encryption(self, declared: Mapping[str, Any] | None) -> Iterator[TableChange]:
        sse = self._described.get("SSEDescription", {})
        is_on = sse.get("Status") in ("ENABLED", "ENABLING", "UPDATING")
        current = sse.get("KMSMasterKeyArn") if is_on else None
        key = self._table.settings.encryption
        if declared is None or key is None:
            if current is not None:
                call = self._update(SSESpecification={"Enabled": False})
                yield TableChange(
                    "encryption", "encrypt with the key that DynamoDB owns", (call,), removes=True
                )
        elif is_key_to_create(key):
            if current is None:
                yield TableChange(
                    "encryption", f"encrypt with a KMS key that is still to be created ({key})", ()
                )
        elif current is None or not _same_key(str(current), key):
            yield TableChange("encryption", f"encrypt with {key}", (self._update(SSESpecification=declared),))

    def indexes(self) -> Iterator[TableChange]:
        """Yield the changes of global indexes, and add refusals for local ones that differ."""
        types = self._table.key_types
        defined = defined_types(self._described)
        local = {index.name: index for index in self._table.indexes if index.local}
        existing = {index["IndexName"]: index for index in self._described.get("LocalSecondaryIndexes", ())}
        for name in sorted(local.keys() | existing.keys()):
            if name not in existing:
                problem = "does not exist, and can only be created with the table"
            elif name not in local:
                problem = "is not in the model, and can only be removed with the table"
            elif _differs(index_request(self._table, local[name]), existing[name]):
                problem = "has another key or projection"
            else:
                continue
            self.refusals.append(f"the local index {name} {problem}")
        declared = {index.name: index for index in self._table.indexes if not index.local}
        existing = {index["IndexName"]: index for index in self._described.get("GlobalSecondaryIndexes", ())}
        dropped: dict[str, set[str]] = {}  # with the attributes of their keys
        for name, described in existing.items():
            if name not in declared:
                what = f"drop the index {name}, which is not in the model"
            elif self._index_differs(declared[name], described, types, defined):
                what = f"drop the index {name}, which has another key or projection, to create it again"
            else:
                continue
            dropped[name] = {element["AttributeName"] for element in described["KeySchema"]}
            yield self._drop(name, what)
        for name, index in declared.items():
            if name not in existing or name in dropped:
                retyped = {
                    attribute
                    for attribute in index.attributes
                    if defined.get(attribute, types[attribute]) != types[attribute]
                }
                needs = tuple(other for other, keys in dropped.items() if other != name and retyped & keys)
                yield replace(self._add(index, types), needs=needs)

    def _index_differs(
        self,
        index: IndexForm,
        described: Mapping[str, Any],
        types: Mapping[str, str],
        defined: Mapping[str, str],
    ) -> bool:
        if any(types[name] != defined.get(name, types[name]) for name in index.attributes):
            return True
        return _differs(index_request(self._table, index), described)

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
        return TableChange("add index", f"add the index {index.name} ({keys})", (call,), index=index.name)


def _throughput(part: Mapping[str, Any]) -> dict[str, int]:
    throughput = part.get("ProvisionedThroughput", {})
    return {name: throughput.get(name, 0) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(units, other[name]) for name, units in one.items()}


def _same_key(current: str, key: str) -> bool:
    """Return whether a table uses a KMS key; an alias cannot be checked, because DynamoDB returns the key's ARN."""
    if key == current:
        return True
    if key.startswith("alias/") or ":alias/" in key:
        return current.startswith("arn:")
    return current.rpartition("/")[2] == key.rpartition("/")[2]


def _differs(declared: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    if declared["KeySchema"] != list(described["KeySchema"]):
        return True
    return _projection(declared) != _projection(described)


def _projection(index: Mapping[str, Any]) -> tuple[str, list[str]]:
    projection = index["Projection"]
    return projection["ProjectionType"], sorted(projection.get("NonKeyAttributes", ()))


def _ttl(name: str, declared: str | None) -> Program[list[TableChange]]:
    response = yield from call_if_supported("DescribeTimeToLive", {"TableName": name})
    if response is None:
        return []
    ttl = response["TimeToLiveDescription"]
    is_on = ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    current = ttl.get("AttributeName") if is_on else None
    if current == declared:
        return []
    changes = []
    if current is not None:
        later = (
            f"; {declared} can be enabled an hour later, when DynamoDB allows a second change"
            if declared
            else ""
        )
        what = f"disable time to live on {current}{later}"
        changes.append(_ttl_change(name, current, enabled=False, what=what))
    if declared is not None:
        changes.append(_ttl_change(name, declared, enabled=True, what=f"enable time to live on {declared}"))
    return changes


def _ttl_change(name: str, attribute: str, *, enabled: bool, what: str) -> TableChange:
    spec = {"Enabled": enabled, "AttributeName": attribute}
    call = Call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": spec})
    return TableChange("ttl", what, (call,), removes=not enabled)


def _recovery(name: str, table: Blueprint) -> Program[list[TableChange]]:
    response = yield from call_if_supported("DescribeContinuousBackups", {"TableName": name})
    if response is None:
        return []
    current = response["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    is_on = current.get("PointInTimeRecoveryStatus") == "ENABLED"
    settings = table.settings
    days = current.get("RecoveryPeriodInDays", settings.recovery_days)
    if is_on == settings.recovery and (not is_on or days == settings.recovery_days):
        return []
    spec: dict[str, Any] = {"PointInTimeRecoveryEnabled": settings.recovery}
    what = "disable point-in-time recovery"
    if settings.recovery:
        spec["RecoveryPeriodInDays"] = settings.recovery_days
        what = f"set point-in-time recovery to {settings.recovery_days} days"
    call = Call("UpdateContinuousBackups", {"TableName": name, "PointInTimeRecoverySpecification": spec})
    is_shorter = is_on and (not settings.recovery or days > settings.recovery_days)
    return [TableChange("recovery", what, (call,), is_shorter)]


def _tags(arn: str, declared: Mapping[str, str]) -> Program[list[TableChange]]:
    current: dict[str, str] = {}
    request: dict[str, Any] = {"ResourceArn": arn}
    while True:
        response = yield from call_if_supported("ListTagsOfResource", request)
        if response is None:
            return []
        current |= {tag["Key"]: tag["Value"] for tag in response.get("Tags", ())}
        if "NextToken" not in response:
            break
        request = {**request, "NextToken": response["NextToken"]}
    changes = []
    new = {key: value for key, value in declared.items() if current.get(key) != value}
    if new:
        tags = [{"Key": key, "Value": value} for key, value in new.items()]
        call = Call("TagResource", {"ResourceArn": arn, "Tags": tags})
        what = f"set the tags {', '.join(f'{key}={value}' for key, value in new.items())}"
        changes.append(TableChange("tags", what, (call,)))
    removed = [key for key in current if key not in declared and not key.startswith("aws:")]
    if removed:
        call = Call("UntagResource", {"ResourceArn": arn, "TagKeys": removed})
        changes.append(TableChange("tags", f"remove the tags {', '.join(removed)}", (call,), removes=True))
    return changes
