"""Throughput settings: units, maxima and warm throughput of tables and indexes.

They are stored, changed and described as on AWS, but enforced only if throttling is emulated. AWS's daily limits on
changes do not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tavola.engine.catalog import IndexDefinition, TableDefinition, Throughput
from tavola.limits import (
    ON_DEMAND_WARM_READS_PER_S,
    ON_DEMAND_WARM_WRITES_PER_S,
    TABLE_CAPACITY_UNITS_MAX,
)
from tavola.protocol.faults import LimitExceededFault, ValidationFault
from tavola.protocol.tables import OnDemandThroughput, ProvisionedThroughput, WarmThroughput

Bounds = dict[str, int]

_INVALID = "One or more parameter values were invalid: "
_GUIDE = "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
_INITIAL = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)
NO_UNITS = Throughput(0, 0)


def to_dict(settings: msgspec.Struct | None) -> Bounds | None:
    """Return a small request structure as a dictionary; None if it is empty."""
    return None if settings is None else msgspec.to_builtins(settings) or None


def warm_throughput(warm: Bounds | None, throughput: Throughput, billing: str) -> Bounds:
    """Return the warm throughput of a table or index: as set, as reached before, or the default."""
    on_demand = billing == "PAY_PER_REQUEST"
    reads = ON_DEMAND_WARM_READS_PER_S if on_demand else throughput.reads
    writes = ON_DEMAND_WARM_WRITES_PER_S if on_demand else throughput.writes
    warm = warm or {}
    return {
        "ReadUnitsPerSecond": max(reads, warm.get("ReadUnitsPerSecond", 0)),
        "WriteUnitsPerSecond": max(writes, warm.get("WriteUnitsPerSecond", 0)),
    }


def table_warm_throughput(definition: TableDefinition) -> Bounds:
    """Return a table's warm throughput, which never decreases."""
    return warm_throughput(definition.warm, definition.throughput, definition.billing)


def index_warm_throughput(index: IndexDefinition, definition: TableDefinition) -> Bounds:
    """Return an index's warm throughput."""
    return warm_throughput(index.warm, index.throughput or NO_UNITS, definition.billing)


def check_units_allowed(
    throughput: ProvisionedThroughput | None, region: str, index: str | None = None
) -> None:
    """Refuse more units than DescribeLimits allows for a table or index."""
    if throughput is None:
        return
    where, kind = ("", "table") if index is None else (f" for index {index}", "index")
    for name, units in (
        ("ReadCapacityUnits", throughput.read_capacity_units),
        ("WriteCapacityUnits", throughput.write_capacity_units),
    ):
        if units > TABLE_CAPACITY_UNITS_MAX:
            raise LimitExceededFault(
                f"The requested {name}{where}, {units}, is above the per {kind} maximum for the account in "
                f"{region}. Per table maximum: {TABLE_CAPACITY_UNITS_MAX}. {_GUIDE}"
            )


def check_bounds_allowed(bounds: OnDemandThroughput | None, region: str, where: str = "table") -> None:
    """Refuse a maximum throughput beyond a table's limit."""
    for name, bound in (to_dict(bounds) or {}).items():
        _check_allowed(f"{name} for OnDemandThroughput for {where}", name, bound, region)


def check_initial_warm_throughput(
    warm: WarmThroughput | None, billing: str, throughput: Throughput, region: str, where: str = "table"
) -> None:
    """Refuse a warm throughput below the default of a new table or index."""
    for name, requested, units in _warm_units(warm):
        if requested < warm_throughput(None, throughput, billing)[name]:
            below = f"{units} of ProvisionedThroughput"
            if billing == "PAY_PER_REQUEST":
                below = f"initial throughput for OnDemand. See: {_INITIAL}"
            raise ValidationFault(
                f"{_INVALID}Requested {name} for WarmThroughput for {where} is lower than {below}"
            )
        _check_allowed(f"{name} for WarmThroughput for {where}", name, requested, region)


def check_warm_increase(
    warm: WarmThroughput | None, current: Bounds, region: str, where: str = "table"
) -> None:
    """Refuse a warm throughput below the current one."""
    for name, requested, _ in _warm_units(warm):
        if requested < current[name]:
            raise ValidationFault(
                f"{_INVALID}Requested {name} for WarmThroughput for {where} is lower than current "
                "WarmThroughput, decreasing WarmThroughput is not supported"
            )
        _check_allowed(f"{name} for WarmThroughput for {where}", name, requested, region)


def check_no_maximum(bounds: OnDemandThroughput | None, where: str = "") -> None:
    """Refuse a maximum throughput for provisioned capacity."""
    for name in to_dict(bounds) or {}:
        raise ValidationFault(
            f"{_INVALID}{name} for OnDemandThroughput{where} cannot be specified when the table BillingMode is "
            "PROVISIONED"
        )


def check_units_differ(old: Throughput, new: ProvisionedThroughput, index: str | None = None) -> None:
    """Refuse the units that a table or index already has."""
    if (old.reads, old.writes) != (new.read_capacity_units, new.write_capacity_units):
        return
    what = "the table" if index is None else f"the index {index}"
    whose = "the table" if index is None else f"index {index}"
    raise ValidationFault(
        f"The provisioned throughput for {what} will not change. The requested value equals the current value. "
        f"Current ReadCapacityUnits provisioned for {whose}: {old.reads}. Requested ReadCapacityUnits: "
        f"{old.reads}. Current WriteCapacityUnits provisioned for {whose}: {old.writes}. Requested "
        f"WriteCapacityUnits: {old.writes}. {_GUIDE}"
    )


def change_units(old: Throughput, new: ProvisionedThroughput, now_s: float) -> Throughput:
    """Return new units with the dates of their last increase and decrease."""
    reads, writes = new.read_capacity_units, new.write_capacity_units
    grown = reads > old.reads or writes > old.writes
    shrunk = reads < old.reads or writes < old.writes
    return Throughput(
        reads,
        writes,
        increased_at_s=now_s if grown else old.increased_at_s,
        decreased_at_s=now_s if shrunk else old.decreased_at_s,
        decreases=old.decreases_today(now_s) + 1 if shrunk else old.decreases,
    )


def switch_billing(old: Throughput, new: ProvisionedThroughput | None) -> Throughput:
    """Return the units after a billing mode change, which updates no dates."""
    reads, writes = (0, 0) if new is None else (new.read_capacity_units, new.write_capacity_units)
    return msgspec.structs.replace(old, reads=reads, writes=writes)


def render_changed_bounds(old: Bounds | None, new: OnDemandThroughput) -> Bounds:
    """Return maxima as the response to their change shows them: -1 for a removed one."""
    return (old or {}) | (to_dict(new) or {})


def merge_bounds(old: Bounds | None, new: OnDemandThroughput) -> Bounds | None:
    """Return maxima in stored form: the last value of each, without removed ones."""
    return {name: bound for name, bound in render_changed_bounds(old, new).items() if bound != -1} or None


def restore_old_units(described: dict[str, Any], old: Throughput, now_s: float) -> None:
    """Restore the old units in a description, as the response to their change shows them."""
    described |= {
        "ReadCapacityUnits": old.reads,
        "WriteCapacityUnits": old.writes,
        "NumberOfDecreasesToday": old.decreases_today(now_s),
    }


def _warm_units(warm: WarmThroughput | None) -> Iterator[tuple[str, int, str]]:
    if warm is None:
        return
    if warm.read_units_per_second is not None:
        yield "ReadUnitsPerSecond", warm.read_units_per_second, "ReadCapacityUnits"
    if warm.write_units_per_second is not None:
        yield "WriteUnitsPerSecond", warm.write_units_per_second, "WriteCapacityUnits"


def _check_allowed(setting: str, name: str, units: int, region: str) -> None:
    if units > TABLE_CAPACITY_UNITS_MAX:
        kind = "Write" if "Write" in name else "Read"
        raise LimitExceededFault(
            f"Subscriber limit exceeded: Requested {setting} exceeds TableMax{kind}CapacityUnits of the account in "
            f"region {region}"
        )
