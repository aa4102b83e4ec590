"""PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy, and the policy in CreateTable.

A policy is stored in AWS's normalized form and takes effect immediately.
"""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import StoredPolicy, StoredTable
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.responses import EMPTY, encode
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
    held = _held(call, request.resource_arn)
    text = render_policy(check_resource_policy(request.policy, stream=isinstance(held, Stream)))
    standing = _policy_of(held)
    _check_expected(held, standing, request.expected_revision_id)
    if standing is not None and standing.text == text:
        return encode({"RevisionId": standing.revision})
    return encode({"RevisionId": _keep(call, held, text, standing)})


def get_resource_policy(call: OperationCall, request: GetResourcePolicyRequest) -> bytes:
    """Return the policy of a table or stream."""
    standing = _policy_of(_held(call, request.resource_arn))
    if standing is None or standing.text is None:
        raise PolicyNotFoundFault(_MISSING + request.resource_arn)
    return encode({"Policy": standing.text, "RevisionId": standing.revision})


def delete_resource_policy(call: OperationCall, request: DeleteResourcePolicyRequest) -> bytes:
    """Delete the policy of a table or stream; it is no error if there is none."""
    held = _held(call, request.resource_arn)
    standing = _policy_of(held)
    _check_expected(held, standing, request.expected_revision_id)
    if standing is None:
        return EMPTY
    if standing.text is not None:
        _keep(call, held, None, standing)
    return encode({"RevisionId": standing.revision})


def policy_of_request(text: str | None, now_s: float) -> StoredPolicy | None:
    """Return the policy of a new table; refuse an invalid one."""
    if text is None:
        return None
    return StoredPolicy(render_policy(check_resource_policy(text)), str(int(now_s * 1000)))


def _held(call: OperationCall, arn: str) -> StoredTable | Stream:
    parts = parse_resource_arn(arn)
    assert parts is not None, "parse lets no other ARN through"
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


def _policy_of(held: StoredTable | Stream) -> StoredPolicy | None:
    if isinstance(held, StoredTable):
        return held.definition.policy
    return None if held.policy_revision is None else StoredPolicy(held.policy, held.policy_revision)


def _check_expected(held: StoredTable | Stream, standing: StoredPolicy | None, expected: str | None) -> None:
    """Refuse a change if the revision is not the expected one."""
    if expected is None:
        return
    named = f"table {held.name}" if isinstance(held, StoredTable) else f"stream {held.label}"
    if standing is None or standing.text is None:
        if expected != NO_POLICY:
            raise PolicyNotFoundFault(
                f"{_MISSING}Requested update for policy with revision id {expected}, but {named} has no associated "
                "policy."
            )
    elif expected == NO_POLICY:
        raise PolicyNotFoundFault(
            f"{_MISSING}Requested policy update expecting none to be present for {named}, but a policy exists with "
            f"revision id {standing.revision}."
        )
    elif expected != standing.revision:
        raise PolicyNotFoundFault(
            f"{_MISSING}Requested update for policy with revision id {expected}, but the policy associated to "
            f"target {named} has revision id {standing.revision}."
        )


def _keep(
    call: OperationCall, held: StoredTable | Stream, text: str | None, standing: StoredPolicy | None
) -> str:
    """Save a policy, or its absence, and return its revision: the time, but always later than the last."""
    now_ms = int(call.services.clock.now() * 1000)
    revision = str(now_ms if standing is None else max(now_ms, int(standing.revision) + 1))
    call.services.begin()
    if isinstance(held, StoredTable):
        changed = msgspec.structs.replace(held.definition, policy=StoredPolicy(text, revision))
        call.services.catalog.change(held, changed)
    else:
        call.services.streams.save(msgspec.structs.replace(held, policy=text, policy_revision=revision))
        table = call.services.catalog.find(held.scope, held.table)
        if table is not None:
            table.facts = None  # the facts include the policies of streams
    return revision
