"""The resource-policy operations: what they refuse before there is a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.protocol.faults import ValidationFault
from tavola.protocol.requests import parse

OOM = "One or more parameter values were invalid: "
TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
STREAM = f"{TABLE}/stream/2024-01-01T00:00:00.000"
GRANT = {
    "Effect": "Allow",
    "Principal": {"AWS": "111122223333"},
    "Action": "dynamodb:GetItem",
    "Resource": TABLE,
}


def _refusal(operation: str, **members: Any) -> str:
    with pytest.raises(ValidationFault) as refused:
        parse(operation, json.dumps(members).encode())
    return str(refused.value)


def _put(arn: str = TABLE, **members: Any) -> str:
    policy = {"Version": "2012-10-17", "Statement": [{**GRANT, **members}]}
    return _refusal("PutResourcePolicy", ResourceArn=arn, Policy=json.dumps(policy))


@pytest.mark.parametrize("operation", ["GetResourcePolicy", "DeleteResourcePolicy"])
@pytest.mark.parametrize(
    ("arn", "said"),
    [
        ("Orders", f"{OOM}ARNs must start with 'arn:': Orders"),
        (
            f"{TABLE}/index/ByDay",
            (
                f"{OOM}Invalid resource arn provided, only table or stream is accepted. Provided resource arn: "
                f"{TABLE}/index/ByDay"
            ),
        ),
        (f"{TABLE}/backup/1", f"{OOM}Provided Arn is not a DynamoDB resource arn: {TABLE}/backup/1"),
        ("arn:aws:s3:::bucket", f"{OOM}Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::bucket"),
    ],
)
def test_only_tables_and_streams_have_policies(operation: str, arn: str, said: str) -> None:
    """An ARN of anything else is refused in AWS's words."""
    assert _refusal(operation, ResourceArn=arn) == said


def test_a_policy_has_at_most_20_kilobytes() -> None:
    """Spaces count; the refusal is a validation, and no limit."""
    padded = json.dumps({"Statement": [GRANT]}) + " " * 20480

    assert _refusal("PutResourcePolicy", ResourceArn=TABLE, Policy=padded) == (
        f"{OOM}Maximum policy size of 20480 bytes exceeded"
    )


def test_what_cannot_be_parsed_is_refused_when_it_is_put() -> None:
    """The refusal begins with AWS's words and ends with the place."""
    result = _put(Condition={"StringLik": {"aws:username": "x"}})

    assert result == (
        f"{OOM}Invalid policy document: unknown condition operator 'StringLik'; did you mean StringLike? "
        "(Statement[0].Condition.StringLik)"
    )
    assert _refusal("PutResourcePolicy", ResourceArn=TABLE, Policy="{").startswith(
        f"{OOM}Invalid policy document: This policy contains invalid Json (line 1, column 2"
    )


def test_a_policy_names_actions_of_its_resource() -> None:
    """A table's policy is not about streams, nor a stream's about tables, nor either about what does not exist."""
    on_table = _put(Action=["dynamodb:GetRecords", "dynamodb:GetItem", "dynamodb:Nothing"])
    on_stream = _put(STREAM, Resource=STREAM, Action=["dynamodb:GetItem", "dynamodb:ListStreams"])

    invalid = f"{OOM}Invalid policy document: The following action names are invalid: "
    assert on_table == f'{invalid}"dynamodb:GetRecords", "dynamodb:Nothing"'
    assert on_stream == f'{invalid}"dynamodb:GetItem", "dynamodb:ListStreams"'


def test_a_policy_names_resources_of_its_kind() -> None:
    """A stream's ARN in a table's policy, and the reverse, is refused; a wildcard is not."""
    result = _put(Resource=STREAM)

    relative = STREAM.split(":", 5)[5]
    assert (
        result == f'{OOM}Invalid policy document: The relative-id "{relative}" is invalid for ARN "{STREAM}"'
    )
    parse(
        "PutResourcePolicy",
        json.dumps(
            {"ResourceArn": TABLE, "Policy": json.dumps({"Statement": [{**GRANT, "Resource": f"{TABLE}/*"}]})}
        ).encode(),
    )


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}])
def test_a_grant_to_everyone_is_refused(principal: Any) -> None:
    """Without a condition no one may let everyone in; to keep everyone out is allowed."""
    assert _put(Principal=principal) == (
        "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to ensure "
        "least-privilege form of access"
    )
    denial = {"Statement": [{**GRANT, "Effect": "Deny", "Principal": principal}]}
    parse("PutResourcePolicy", json.dumps({"ResourceArn": TABLE, "Policy": json.dumps(denial)}).encode())
