"""TagResource, UntagResource, ListTagsOfResource."""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import StoredTable
from tavola.engine.operations.call import OperationCall, encode
from tavola.limits import TAGS_BYTES_MAX, TAGS_MAX
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import AccessDeniedFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.tags import (
    ListTagsOfResourceRequest,
    TagResourceRequest,
    UntagResourceRequest,
    tags_by_key,
)


def tag_resource(call: OperationCall, request: TagResourceRequest) -> bytes:
    """Add tags to a table, replacing those with the same keys."""
    table = _find_table(call, request.resource_arn)
    tags = table.definition.tags | tags_by_key(request.tags)
    if len(tags) > TAGS_MAX:
        raise ValidationFault("Number of Tags exceed the current limit for the provided ResourceArn")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in tags.items())
    if size > TAGS_BYTES_MAX:
        raise ValidationFault(f"Tag set size {size} bytes is above max size limit of {TAGS_BYTES_MAX} bytes")
    return _save(call, table, tags)


def untag_resource(call: OperationCall, request: UntagResourceRequest) -> bytes:
    """Remove tags from a table; unknown keys are no error."""
    table = _find_table(call, request.resource_arn)
    removed = set(request.tag_keys)
    return _save(call, table, {key: tag for key, tag in table.definition.tags.items() if key not in removed})


def list_tags_of_resource(call: OperationCall, request: ListTagsOfResourceRequest) -> bytes:
    """Return a table's tags, by key."""
    tags = _find_table(call, request.resource_arn).definition.tags
    return encode({"Tags": [{"Key": key, "Value": tags[key]} for key in sorted(tags)]})


def _find_table(call: OperationCall, arn: str | None) -> StoredTable:
    parts = None if arn is None else parse_resource_arn(arn)
    assert parts is not None, "`parse` refuses other ARNs"
    if parts.scope.account != call.scope.account:
        raise AccessDeniedFault("Access is denied")
    if parts.scope.region != call.scope.region:
        raise ValidationFault(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    table = call.services.catalog.find(parts.scope, parts.table)
    if table is None or parts.kind != "table":  # AWS accepts a stream's ARN and finds nothing
        raise ResourceNotFoundFault(f"Requested resource not found: ResourceArn: {arn} not found")
    return table


def _save(call: OperationCall, table: StoredTable, tags: dict[str, str]) -> bytes:
    call.services.begin()
    call.services.catalog.change(table, msgspec.structs.replace(table.definition, tags=tags))
    return b""  # AWS responds without a body
