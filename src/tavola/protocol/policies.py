"""Requests of the resource policy operations, and the checks that need no resource."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, NoReturn, TypeAlias

import msgspec

from tavola.limits import (
    POLICY_REVISION_CHARACTERS_MAX,
    RESOURCE_ARN_CHARACTERS_MAX,
    RESOURCE_POLICY_BYTES_MAX,
)
from tavola.protocol.arns import ResourceArn, parse_resource_arn
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import Shape
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.policy_documents import PolicyDocument, PolicyRefused, parse_policy

NO_POLICY = "NO_POLICY"
"""The revision id that means "no policy exists"."""

_INVALID = "One or more parameter values were invalid: "
_UNBOUNDED = (
    "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to ensure "
    "least-privilege form of access"
)
# Actions that a policy on a table (DG), and on a stream, can contain.
_TABLE_ACTIONS = """
BatchGetItem BatchWriteItem ConditionCheckItem CreateBackup CreateTableReplica DeleteItem DeleteResourcePolicy
DeleteTable DeleteTableReplica DescribeContinuousBackups DescribeContributorInsights
DescribeKinesisStreamingDestination DescribeTable DescribeTableReplicaAutoScaling DescribeTimeToLive
DisableKinesisStreamingDestination EnableKinesisStreamingDestination ExportTableToPointInTime GetItem
GetResourcePolicy ListTagsOfResource PartiQLDelete PartiQLInsert PartiQLSelect PartiQLUpdate PutItem
PutResourcePolicy Query ReadDataForReplication ReplicateSettings RestoreTableToPointInTime Scan SearchVectors
StartBulkPutItems TagResource UntagResource UpdateContinuousBackups UpdateContributorInsights UpdateItem
UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive
WriteDataForReplication
""".lower().split()
_STREAM_ACTIONS = """
DeleteResourcePolicy DescribeStream GetRecords GetResourcePolicy GetShardIterator PutResourcePolicy
""".lower().split()

PolicyArn: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=RESOURCE_ARN_CHARACTERS_MAX)]
RevisionId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=POLICY_REVISION_CHARACTERS_MAX)]


class PutResourcePolicyRequest(Shape, frozen=True, kw_only=True):
    """The request of PutResourcePolicy."""

    resource_arn: PolicyArn
    policy: str
    expected_revision_id: RevisionId | None = None
    confirm_remove_self_resource_access: bool | None = None


class GetResourcePolicyRequest(Shape, frozen=True, kw_only=True):
    """The request of GetResourcePolicy."""

    resource_arn: PolicyArn


class DeleteResourcePolicyRequest(Shape, frozen=True, kw_only=True):
    """The request of DeleteResourcePolicy."""

    resource_arn: PolicyArn
    expected_revision_id: RevisionId | None = None


def check_put_policy(request: PutResourcePolicyRequest, wording: MessageStyle) -> None:
    """Refuse a resource without policy support, and an invalid policy."""
    kind = _parse_policy_arn(request.resource_arn).kind
    check_resource_policy(request.policy, stream=kind == "stream")


def check_policy(
    request: GetResourcePolicyRequest | DeleteResourcePolicyRequest, wording: MessageStyle
) -> None:
    """Refuse a resource without policy support."""
    _parse_policy_arn(request.resource_arn)


@lru_cache(maxsize=64)
def check_resource_policy(text: str, *, stream: bool = False) -> PolicyDocument:
    """Return the parsed policy of a table or stream; errors have AWS's message and the location."""
    if len(text.encode()) > RESOURCE_POLICY_BYTES_MAX:
        raise ValidationFault(f"{_INVALID}Maximum policy size of {RESOURCE_POLICY_BYTES_MAX} bytes exceeded")
    try:
        document = parse_policy(text, "resource")
    except PolicyRefused as refused:
        raise ValidationFault(f"{_INVALID}Invalid policy document: {refused}") from refused
    _check_actions(document, _STREAM_ACTIONS if stream else _TABLE_ACTIONS)
    for statement in document.statements:
        for resource in statement.resources or statement.not_resources or ():
            relative_id = resource.split(":", 5)[-1]
            if (
                resource != "*"
                and ("/stream/" in relative_id) is not stream
                and not relative_id.endswith("*")
            ):
                _refuse(f'The relative-id "{relative_id}" is invalid for ARN "{resource}"')
        principals = statement.principals
        if statement.allows and principals is not None and principals.anyone and not statement.conditions:
            raise ValidationFault(_UNBOUNDED)
    return document


def _check_actions(document: PolicyDocument, known: list[str]) -> None:
    unknown = [
        action
        for statement in document.statements
        for action in statement.actions or statement.not_actions or ()
        if action != "*" and not _matches_any(action.lower(), known)
    ]
    if unknown:
        names = ", ".join(f'"{action}"' for action in dict.fromkeys(unknown))
        _refuse(f"The following action names are invalid: {names}")


def _matches_any(action: str, known: list[str]) -> bool:
    service, _, name = action.partition(":")
    return service == "dynamodb" and any(fnmatchcase(action, name) for action in known)


def _parse_policy_arn(arn: str) -> ResourceArn:
    if not arn.startswith("arn:"):
        raise ValidationFault(f"{_INVALID}ARNs must start with 'arn:': {arn}")
    parts = parse_resource_arn(arn)
    if parts is None or parts.kind not in ("table", "stream", "index"):
        raise ValidationFault(f"{_INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    if parts.kind == "index":
        raise ValidationFault(
            f"{_INVALID}Invalid resource arn provided, only table or stream is accepted. "
            f"Provided resource arn: {arn}"
        )
    return parts


def _refuse(reason: str) -> NoReturn:
    raise ValidationFault(f"{_INVALID}Invalid policy document: {reason}")
