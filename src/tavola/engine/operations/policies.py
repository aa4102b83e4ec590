"""PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy, and the policy in CreateTable.

A policy is stored in AWS's normalized form and takes effect immediately.
"""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import StoredPolicy, StoredTable
from tavola.engine.operations.call import EMPTY, OperationCall, encode
from tavola.engine.streams import Stream
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import PolicyNotFoundFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.policies import (
    NO_POLICY,
    DeleteResourcePolicyRequest,
    GetResourcePolicyRequest,
    PutResourcePolicyRequest,
    check_resource_policy,
)
from tavola.protocol.policy_documents import render_policy

_MISSING = "Resource-based policy not found for the provided ResourceArn: "


def put_resource_policy(call: OperationCall, request: PutResourcePolicyRequest) -> bytes:
    """Set the policy of a table or stream; setting the same one again changes nothing."""
    resource = _find_resource(call, request.resource_arn)
    text = render_policy(check_resource_policy(request.policy, stream=isinstance(resource, Stream)))
    current = _policy_of(resource)
    _check_expected(resource, current, request.expected_revision_id)
    if current is not None and current.text == text:
        return encode({"RevisionId": current.revision})
    return encode({"RevisionId": _save(call, resource, text, current)})


def get_resource_policy(call: OperationCall, request: GetResourcePolicyRequest) -> bytes:
    """Return the policy of a table or stream."""
    current = _policy_of(_find_resource(call, request.resource_arn))
    if current is None or current.text is None:
        raise PolicyNotFoundFault(_MISSING + request.resource_arn)
    return encode({"Policy": current.text, "RevisionId": current.revision})


def delete_resource_policy(call: OperationCall, request: DeleteResourcePolicyRequest) -> bytes:
    """Delete the policy of a table or stream, if it has one."""
    resource = _find_resource(call, request.resource_arn)
    current = _policy_of(resource)
    _check_expected(resource, current, request.expected_revision_id)
    if current is None:
        return EMPTY
    if current.text is not None:
        _save(call, resource, None, current)
    return encode({"RevisionId": current.revision})


def policy_of_request(text: str | None, now_s: float) -> StoredPolicy | None:
    """Return the policy of a new table; raise ValidationFault if it is invalid."""
    if text is None:
        return None
    return StoredPolicy(render_policy(check_resource_policy(text)), str(int(now_s * 1000)))


def _find_resource(call: OperationCall, arn: str) -> StoredTable | Stream:
    parts = parse_resource_arn(arn)
    assert parts is not None, "`parse` rejects other ARNs"
    if parts.scope.account != call.scope.account:
        raise ValidationFault(
            "This action is only supported by accounts that match the resource owner’s account."
        )
    if parts.scope.region != call.scope.region or parts.partition != "aws":
        raise ValidationFault(f"One or more parameter values were invalid: Invalid resource Arn: {arn}")
    table = call.services.catalog.find(call.scope, parts.table)
    if table is None or not call.services.catalog.is_active(table):
        raise ResourceNotFoundFault.of_table(parts.table)
    if parts.kind == "table":
        return table
    stream = call.services.streams.find(arn)
    if stream is None:
        raise ResourceNotFoundFault(
            f"Requested resource not found: Stream: {parts.label} not found for Table: {parts.table}"
        )
    return stream


def _policy_of(resource: StoredTable | Stream) -> StoredPolicy | None:
    if isinstance(resource, StoredTable):
        return resource.definition.policy
    return (
        None if resource.policy_revision is None else StoredPolicy(resource.policy, resource.policy_revision)
    )


def _check_expected(
    resource: StoredTable | Stream, current: StoredPolicy | None, expected: str | None
) -> None:
    """Raise PolicyNotFoundFault if the current revision is not the expected one."""
    if expected is None:
        return
    name = f"table {resource.name}" if isinstance(resource, StoredTable) else f"stream {resource.label}"
    if current is None or current.text is None:
        if expected != NO_POLICY:
            raise PolicyNotFoundFault(
                f"{_MISSING}Requested update for policy with revision id {expected}, but {name} has no associated "
                "policy."
            )
    elif expected == NO_POLICY:
        raise PolicyNotFoundFault(
            f"{_MISSING}Requested policy update expecting none to be present for {name}, but a policy exists with "
            f"revision id {current.revision}."
        )
    elif expected != current.revision:
        raise PolicyNotFoundFault(
            f"{_MISSING}Requested update for policy with revision id {expected}, but the policy associated to "
            f"target {name} has revision id {current.revision}."
        )


def _save(
    call: OperationCall, resource: StoredTable | Stream, text: str | None, current: StoredPolicy | None
) -> str:
    """Save a policy (None deletes it) and return its revision: the time in milliseconds, but higher than the last one."""
    now_ms = int(call.services.clock.now() * 1000)
    revision = str(now_ms if current is None else max(now_ms, int(current.revision) + 1))
    call.services.begin()
    if isinstance(resource, StoredTable):
        changed = msgspec.structs.replace(resource.definition, policy=StoredPolicy(text, revision))
        call.services.catalog.change(resource, changed)
    else:
        call.services.streams.save(msgspec.structs.replace(resource, policy=text, policy_revision=revision))
        table = call.services.catalog.find(resource.scope, resource.table)
        if table is not None:
            table.facts = None  # the facts include the policies of streams
    return revision
