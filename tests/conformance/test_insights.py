"""Contributor Insights: switched on and off for a table and each global index, described and listed as AWS does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import Answer, Backend

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

BOTH = "ACCESSED_AND_THROTTLED_KEYS"


def _plain(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


@pytest.fixture
def table(tables: Callable[..., str]) -> str:
    """A table with a sort key, and a global index without one."""
    return tables("pk sk", gsi={"by_owner": "owner"})


def test_a_table_that_was_never_watched_is_disabled(client: DynamoDBClient, table: str) -> None:
    """If it was never enabled the response has a name and a status alone, and the list is empty."""
    described = _plain(client.describe_contributor_insights(TableName=table))
    listed = _plain(client.list_contributor_insights(TableName=table))
    stopped = _plain(client.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE"))

    assert described == {"TableName": table, "ContributorInsightsStatus": "DISABLED"}
    assert listed == {"ContributorInsightsSummaries": []}
    assert stopped == {"TableName": table, "ContributorInsightsStatus": "DISABLED"}


def test_enabling_makes_rules_by_key_and_mode(client: DynamoDBClient, table: str) -> None:
    """Two rules for a partition key, four with a sort key, those of throttled keys alone in that mode."""
    began = _plain(client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE"))
    client.update_contributor_insights(
        TableName=table,
        IndexName="by_owner",
        ContributorInsightsAction="ENABLE",
        ContributorInsightsMode="THROTTLED_KEYS",
    )
    whole = client.describe_contributor_insights(TableName=table)
    index = client.describe_contributor_insights(TableName=table, IndexName="by_owner")

    assert began == {
        "TableName": table,
        "ContributorInsightsStatus": "ENABLING",
        "ContributorInsightsMode": BOTH,
    }
    assert whole["ContributorInsightsStatus"] == "ENABLED"
    rules = [re.sub(r"[0-9]+$", "T", rule) for rule in whole["ContributorInsightsRuleList"]]
    assert rules == [f"DynamoDBContributorInsights-{kind}-{table}-T" for kind in ("PKC", "SKC", "PKT", "SKT")]
    assert index["IndexName"] == "by_owner"
    assert index["ContributorInsightsMode"] == "THROTTLED_KEYS"
    rules = [re.sub(r"[0-9]+$", "T", rule) for rule in index["ContributorInsightsRuleList"]]
    assert rules == [f"DynamoDBContributorInsights-PKT-{table}-by_owner-T"]


def test_the_answer_has_the_members_of_aws(client: DynamoDBClient, table: str) -> None:
    """The response has AWS's members and no others."""
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    described = _plain(client.describe_contributor_insights(TableName=table))

    assert set(described) == {
        "ContributorInsightsMode",
        "ContributorInsightsRuleList",
        "ContributorInsightsStatus",
        "LastUpdateDateTime",
        "TableName",
    }


def test_enabling_twice_changes_nothing(client: DynamoDBClient, table: str) -> None:
    """Another mode changes it, with the same timestamp; disabling preserves the mode."""
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    first = client.describe_contributor_insights(TableName=table)
    again = client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    second = client.describe_contributor_insights(TableName=table)
    narrowed = client.update_contributor_insights(
        TableName=table, ContributorInsightsAction="ENABLE", ContributorInsightsMode="THROTTLED_KEYS"
    )
    third = client.describe_contributor_insights(TableName=table)
    ended = client.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE")
    last = _plain(client.describe_contributor_insights(TableName=table))

    assert again["ContributorInsightsStatus"] == "ENABLED"
    assert _plain(first) == _plain(second)
    assert narrowed["ContributorInsightsStatus"] == "ENABLING"
    assert set(third["ContributorInsightsRuleList"]) < set(first["ContributorInsightsRuleList"])
    assert ended["ContributorInsightsStatus"] == "DISABLING"
    assert last.pop("LastUpdateDateTime") is not None
    assert last == {
        "TableName": table,
        "ContributorInsightsStatus": "DISABLED",
        "ContributorInsightsMode": "THROTTLED_KEYS",
    }


def test_the_list_goes_table_first_and_by_pages(client: DynamoDBClient, table: str) -> None:
    """Enabled insights are listed, the table before its indexes, with a token per page;

    a foreign token is refused.
    """
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    client.update_contributor_insights(
        TableName=table, IndexName="by_owner", ContributorInsightsAction="ENABLE"
    )
    first = client.list_contributor_insights(TableName=table, MaxResults=1)
    second = client.list_contributor_insights(TableName=table, MaxResults=1, NextToken=first["NextToken"])
    everywhere = client.list_contributor_insights()["ContributorInsightsSummaries"]
    with pytest.raises(client.exceptions.ClientError, match="Invalid NextToken"):
        client.list_contributor_insights(TableName=table, NextToken="made-up")

    assert first["ContributorInsightsSummaries"] == [
        {"TableName": table, "ContributorInsightsStatus": "ENABLED", "ContributorInsightsMode": BOTH}
    ]
    assert [found.get("IndexName") for found in second["ContributorInsightsSummaries"]] == ["by_owner"]
    assert "NextToken" not in second
    assert [found["TableName"] for found in everywhere].count(table) == 2


def test_a_missing_table_or_index_is_not_found(
    send_raw: Callable[..., Answer], tables: Callable[..., str], fresh: Callable[[], str]
) -> None:
    """A missing table or index, and a local index, each have their own message."""
    missing, table = fresh(), tables("pk sk", lsi={"by_n": "pk n"})
    refusals = []
    for request in ({"TableName": missing}, {"TableName": table, "IndexName": "by_n"}):
        for operation, more in (
            ("DescribeContributorInsights", {}),
            ("UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"}),
        ):
            answer = send_raw(operation, {**request, **more})
            refusals.append((answer.code, answer.text))

    assert {code for code, _ in refusals} == {"ResourceNotFoundException"}
    assert [text for _, text in refusals] == [
        *[f"Requested resource not found: Table: {missing} not found"] * 2,
        *[f"Requested resource not found: Index: by_n not found for table: {table}"] * 2,
    ]


def test_members_are_checked(send_raw: Callable[..., Answer]) -> None:
    """An unknown action or mode and an invalid number of results are refused."""
    action = send_raw(
        "UpdateContributorInsights", {"TableName": "some-table", "ContributorInsightsAction": "START"}
    )
    none = send_raw("UpdateContributorInsights", {"TableName": "some-table"})
    many = send_raw("ListContributorInsights", {"MaxResults": 101})

    assert {answer.code for answer in (action, none, many)} == {"ValidationException"}
    assert "Member must satisfy enum value set" in str(action.text)
    assert "Member must not be null" in str(none.text)
    assert "less than or equal to 100" in str(many.text)


def test_the_true_hottest_keys_are_reported_beside_it(
    backend: Backend, client: DynamoDBClient, send_raw: Callable[..., Answer], table: str
) -> None:
    """The body names the hottest keys exactly, in a member that SDKs ignore; AWS has it in CloudWatch."""
    if backend.name == "aws":
        return
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    client.update_contributor_insights(
        TableName=table, IndexName="by_owner", ContributorInsightsAction="ENABLE"
    )
    for number in range(9):
        key = {"pk": {"S": "hot" if number % 3 else "cold"}, "sk": {"S": f"{number % 2}"}}
        client.put_item(TableName=table, Item={**key, "owner": {"S": "me"}, "n": {"N": str(number)}})
    client.get_item(TableName=table, Key={"pk": {"S": "hot"}, "sk": {"S": "1"}}, ConsistentRead=True)
    found = send_raw("DescribeContributorInsights", {"TableName": table}).body["TavolaHottestKeys"]
    index = send_raw("DescribeContributorInsights", {"TableName": table, "IndexName": "by_owner"})

    assert found["MostAccessedPartitionKeys"] == [
        {"Key": {"pk": {"S": "hot"}}, "CapacityUnits": 7.0, "ErrorAtMost": 0.0},
        {"Key": {"pk": {"S": "cold"}}, "CapacityUnits": 3.0, "ErrorAtMost": 0.0},
    ]
    assert found["MostAccessedKeys"][0]["Key"] == {"pk": {"S": "hot"}, "sk": {"S": "1"}}
    assert found["MostThrottledKeys"] == []
    hottest = index.body["TavolaHottestKeys"]["MostAccessedPartitionKeys"]
    assert [hot["Key"] for hot in hottest] == [{"owner": {"S": "me"}}]
