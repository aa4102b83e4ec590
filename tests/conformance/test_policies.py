"""Resource policies: put, get, delete, and their revisions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.conformance.requests import refused, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

OOM = "One or more parameter values were invalid: "
NOT_FOUND = "Resource-based policy not found for the provided ResourceArn: "


def _policy(arn: str, action: str = "dynamodb:GetItem", **more: Any) -> str:
    account = arn.split(":")[4]
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
        "Action": action,
        "Resource": arn,
        **more,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)


def _arn(client: DynamoDBClient, tables: Tables, **more: Any) -> str:
    return client.describe_table(TableName=tables("pk", **more))["Table"]["TableArn"]


def test_a_policy_is_put_got_and_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """A policy reads back without its spaces, under the revision that its put answered."""
    arn = _arn(client, tables)

    before = refused(client.get_resource_policy, ResourceArn=arn)
    revision = client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn))["RevisionId"]
    got = client.get_resource_policy(ResourceArn=arn)
    deleted = client.delete_resource_policy(ResourceArn=arn)
    after = refused(client.get_resource_policy, ResourceArn=arn)

    assert before.code == after.code == "PolicyNotFoundException"
    assert before.message == f"{NOT_FOUND}{arn}"
    assert got["Policy"] == json.dumps(json.loads(_policy(arn)), separators=(",", ":"))
    assert got["RevisionId"] == deleted["RevisionId"] == revision


def test_the_same_policy_has_the_same_revision(client: DynamoDBClient, tables: Tables) -> None:
    """Putting an equal policy changes nothing, whatever its spaces and order;

    another policy is another revision.
    """
    arn = _arn(client, tables)

    first = client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn))["RevisionId"]
    shuffled = json.dumps(dict(reversed(json.loads(_policy(arn)).items())))
    again = client.put_resource_policy(ResourceArn=arn, Policy=shuffled)["RevisionId"]
    other = client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn, "dynamodb:Query"))["RevisionId"]

    assert again == first
    assert other != first


def test_a_delete_of_nothing_is_no_error(client: DynamoDBClient, tables: Tables) -> None:
    """Without a policy the response has no revision."""
    arn = _arn(client, tables)

    assert "RevisionId" not in client.delete_resource_policy(ResourceArn=arn)


def test_a_change_may_expect_a_revision(client: DynamoDBClient, tables: Tables) -> None:
    """If the revision differs, the policy is not found; NO_POLICY expects none."""
    name = tables("pk")
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    other = _policy(arn, "dynamodb:Query")

    def put(policy: str, expected: str) -> Any:
        return refused(
            client.put_resource_policy, ResourceArn=arn, Policy=policy, ExpectedRevisionId=expected
        )

    none = put(other, "123")
    first = client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn), ExpectedRevisionId="NO_POLICY")
    revision = first["RevisionId"]
    present = put(other, "NO_POLICY")
    stale = put(other, "123")
    refusal = refused(client.delete_resource_policy, ResourceArn=arn, ExpectedRevisionId="123")
    client.put_resource_policy(ResourceArn=arn, Policy=other, ExpectedRevisionId=revision)

    assert none.message.startswith(
        f"{NOT_FOUND}Requested update for policy with revision id 123, but table {name} has no associated"
    )
    assert present.message == (
        f"{NOT_FOUND}Requested policy update expecting none to be present for table {name}, but a policy exists "
        f"with revision id {revision}."
    )
    assert (
        stale.message
        == refusal.message
        == (
            f"{NOT_FOUND}Requested update for policy with revision id 123, but the policy associated to target table "
            f"{name} has revision id {revision}."
        )
    )
    assert {none.code, present.code, stale.code} == {"PolicyNotFoundException"}


def test_a_table_may_be_made_with_a_policy(client: DynamoDBClient, tables: Tables) -> None:
    """The policy applies from the start; an invalid one creates no table."""
    arn = _arn(client, tables)
    made = arn.replace(arn.rpartition("/")[2], f"{arn.rpartition('/')[2]}.policy")
    request = table_request(made.rpartition("/")[2], "pk", ResourcePolicy=_policy(made))

    error = refused(client.create_table, **{**request, "ResourcePolicy": "{"})
    client.create_table(**request)
    try:
        got = client.get_resource_policy(ResourceArn=made)
    finally:
        client.delete_table(TableName=request["TableName"])

    assert json.loads(got["Policy"])["Statement"][0]["Action"] == "dynamodb:GetItem"
    assert error.code == "ValidationException"
    assert error.message.startswith(f"{OOM}Invalid policy document: This policy contains invalid Json")


def test_a_table_made_again_inherits_no_policy(client: DynamoDBClient, tables: Tables) -> None:
    """A policy is deleted with its table."""
    name = tables("pk")
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn))

    client.delete_table(TableName=name)
    client.create_table(**table_request(name, "pk"))

    assert refused(client.get_resource_policy, ResourceArn=arn).code == "PolicyNotFoundException"


def test_a_stream_has_a_separate_policy(client: DynamoDBClient, tables: Tables) -> None:
    """A stream's policy is not its table's; a missing stream is reported by its label."""
    streamed = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    name = tables("pk", StreamSpecification=streamed)
    found = client.describe_table(TableName=name)["Table"]
    table, stream = found["TableArn"], found["LatestStreamArn"]

    client.put_resource_policy(ResourceArn=stream, Policy=_policy(stream, "dynamodb:GetRecords"))
    got = client.get_resource_policy(ResourceArn=stream)
    bogus = refused(client.get_resource_policy, ResourceArn=f"{table}/stream/2000-01-01T00:00:00.000")

    assert json.loads(got["Policy"])["Statement"][0]["Resource"] == stream
    assert refused(client.get_resource_policy, ResourceArn=table).code == "PolicyNotFoundException"
    assert bogus.message == (
        f"Requested resource not found: Stream: 2000-01-01T00:00:00.000 not found for Table: {name}"
    )


def test_other_peoples_tables_have_no_policy_to_see(client: DynamoDBClient, tables: Tables) -> None:
    """A table of another account or region is refused, a missing one is not found."""
    arn = _arn(client, tables)
    account, region = arn.split(":")[4], arn.split(":")[3]

    foreign = refused(client.get_resource_policy, ResourceArn=arn.replace(account, "999999999999"))
    elsewhere = refused(client.get_resource_policy, ResourceArn=arn.replace(region, "xx-south-9"))
    partition = refused(client.get_resource_policy, ResourceArn=arn.replace("arn:aws:", "arn:aws-cn:"))
    absent = refused(client.get_resource_policy, ResourceArn=f"{arn}.absent")

    assert (
        foreign.message
        == "This action is only supported by accounts that match the resource owner’s account."
    )
    assert elsewhere.message.startswith(f"{OOM}Invalid resource Arn: arn:aws:dynamodb:xx-south-9")
    assert partition.message.startswith(f"{OOM}Invalid resource Arn: arn:aws-cn:")
    assert (absent.code, absent.message) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {arn.rpartition('/')[2]}.absent not found",
    )


def test_a_bad_policy_leaves_the_good_one(client: DynamoDBClient, tables: Tables) -> None:
    """A refusal is reported at once, with the position, and changes nothing."""
    arn = _arn(client, tables)
    revision = client.put_resource_policy(ResourceArn=arn, Policy=_policy(arn))["RevisionId"]

    error = refused(
        client.put_resource_policy,
        ResourceArn=arn,
        Policy=_policy(arn, Condition={"StringLik": {"aws:x": "y"}}),
    )

    assert error.code == "ValidationException"
    assert error.message.startswith(f"{OOM}Invalid policy document: ")
    assert client.get_resource_policy(ResourceArn=arn)["RevisionId"] == revision
