"""UpdateTimeToLive and DescribeTimeToLive."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.expiry import disable_expiry, enable_expiry
from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.tables import find_table
from tavola.protocol.faults import ResourceInUseFault, ValidationFault
from tavola.protocol.tables import DescribeTimeToLiveRequest, UpdateTimeToLiveRequest


def update_time_to_live(call: OperationCall, request: UpdateTimeToLiveRequest) -> bytes:
    """Enable expiry on an attribute, or disable it."""
    table = find_table(call, request.table_name)
    if not call.services.catalog.is_active(table):
        raise ResourceInUseFault(
            f"Attempt to change a resource which is still in use: Table {table.name} is being created"
        )
    specification = request.time_to_live_specification
    current = table.definition.ttl
    if current is not None and current.enabled:
        if specification.enabled and specification.attribute_name == current.attribute:
            raise ValidationFault("TimeToLive is already enabled")
        if specification.attribute_name != current.attribute:
            raise ValidationFault(
                f"TimeToLive is active on a different AttributeName: current AttributeName is {current.attribute}"
            )
    elif not specification.enabled:
        raise ValidationFault("TimeToLive is already disabled")
    call.services.begin()
    now_s = call.services.clock.now()
    if specification.enabled:
        enable_expiry(call.services.catalog, table, specification.attribute_name, now_s)
    else:
        disable_expiry(call.services.catalog, table, now_s)
    return encode({"TimeToLiveSpecification": msgspec.to_builtins(specification)})


def describe_time_to_live(call: OperationCall, request: DescribeTimeToLiveRequest) -> bytes:
    """Return whether items of a table expire, and by which attribute."""
    table = find_table(call, request.table_name)
    if not call.services.catalog.is_active(table):
        raise ValidationFault(
            "Cannot describe time to live while table is in CREATING state: Current table state is CREATING"
        )
    setting = table.definition.ttl
    described: dict[str, Any] = {"TimeToLiveStatus": "DISABLED"}
    if setting is not None and setting.enabled:
        described = {"TimeToLiveStatus": "ENABLED", "AttributeName": setting.attribute}
    return encode({"TimeToLiveDescription": described})
