"""Tags: names and words on a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.conformance.requests import refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _arn(client: DynamoDBClient, tables: Tables) -> str:
    return client.describe_table(TableName=tables())["Table"]["TableArn"]


def _tags(client: DynamoDBClient, arn: str) -> dict[str, str]:
    found = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
    return {each["Key"]: each["Value"] for each in found}


def test_a_new_table_has_no_tags(client: DynamoDBClient, tables: Tables) -> None:
    """A table without tags has an empty list of them."""
    assert client.list_tags_of_resource(ResourceArn=_arn(client, tables))["Tags"] == []


def test_tags_are_added_replaced_and_removed(client: DynamoDBClient, tables: Tables) -> None:
    """A key has one value, the last; an unknown key may be removed."""
    arn = _arn(client, tables)

    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}])
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "c", "Value": "3"}])
    before = _tags(client, arn)
    client.untag_resource(ResourceArn=arn, TagKeys=["b", "nobody"])

    assert before == {"a": "2", "b": "", "c": "3"}
    assert _tags(client, arn) == {"a": "2", "c": "3"}


def test_a_table_has_at_most_50_tags(client: DynamoDBClient, tables: Tables) -> None:
    """The 51st tag is refused, and no tag of its request is stored."""
    arn = _arn(client, tables)
    for start in range(0, 50, 10):
        client.tag_resource(ResourceArn=arn, Tags=[{"Key": f"k{start + i}", "Value": "v"} for i in range(10)])

    error = refused(client.tag_resource, ResourceArn=arn, Tags=[{"Key": "one more", "Value": "v"}])

    assert error.code == "ValidationException"
    assert error.message == "Number of Tags exceed the current limit for the provided ResourceArn"
    assert len(_tags(client, arn)) == 50


def test_a_key_has_at_most_128_signs(client: DynamoDBClient, tables: Tables) -> None:
    """A tag's key has 1 to 128 signs and its value at most 256."""
    arn = _arn(client, tables)

    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "k" * 128, "Value": "v" * 256}])
    long_key = refused(client.tag_resource, ResourceArn=arn, Tags=[{"Key": "k" * 129, "Value": "v"}])
    no_key = refused(client.tag_resource, ResourceArn=arn, Tags=[{"Key": "", "Value": "v"}])
    long_value = refused(client.tag_resource, ResourceArn=arn, Tags=[{"Key": "k", "Value": "v" * 257}])

    assert _tags(client, arn) == {"k" * 128: "v" * 256}
    assert {long_key.code, no_key.code, long_value.code} == {"ValidationException"}
