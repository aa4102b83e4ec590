"""UpdateTable: changes it combines, refuses to repeat, and reports; captured on AWS in October 2026."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.mocks import mock
from tests.conformance.backends import ACCOUNT, REGION, Answer, new_client
from tests.conformance.requests import OOM, definitions, index, item, put, refused, settle, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
SendRaw = Callable[..., Answer]

_DOCS = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
_GUIDE = "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
_UNITS: Any = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
_MORE: Any = {"ReadCapacityUnits": 6, "WriteCapacityUnits": 6}
_STREAM: Any = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}
_SSE: Any = {"SSESpecification": {"Enabled": True, "SSEType": "KMS"}}
_CLASS: Any = {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
_PROTECTION: Any = {"DeletionProtectionEnabled": True}
_WARM: Any = {"WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}}
_BOUNDS: Any = {"OnDemandThroughput": {"MaxReadRequestUnits": 10}}
_PROVISIONED: Any = {"ProvisionedThroughput": _MORE}
_ON_DEMAND: Any = {"BillingMode": "PAY_PER_REQUEST"}
_DELETE: Any = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-a"}}]}
_CREATE: Any = {
    "AttributeDefinitions": definitions("b"),
    "GlobalSecondaryIndexUpdates": [{"Create": {**index("by-b", "b"), "ProvisionedThroughput": _UNITS}}],
}
_REFUSED_ON_DEMAND: Any = ({"ProvisionedThroughput": _UNITS}, {}, {"OnDemandThroughput": {}})
_ONLY = "must be the only operation in the request"
_SSE_ALONE = f"Server-Side Encryption modification {_ONLY}"
_CLASS_ALONE = f"TableClass modification {_ONLY}"
_PROTECTION_ALONE = f"DeletionProtection modification {_ONLY}"
_BOUNDS_ALONE = "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"


def _provisioned(tables: Tables) -> str:
    return tables(
        AttributeDefinitions=definitions("pk a"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
        GlobalSecondaryIndexes=[{**index("by-a", "a"), "ProvisionedThroughput": _UNITS}],
    )


def _retune(name: str = "by-a", **throughput: Any) -> Any:
    return {"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": name, **throughput}}]}


def _change(client: DynamoDBClient, table: str, **change: Any) -> Any:
    return client.update_table(TableName=table, **change)["TableDescription"]


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        *(
            (_SSE, other, _SSE_ALONE)
            for other in (_CLASS, _PROTECTION, _WARM, _STREAM, _PROVISIONED, _DELETE)
        ),
        *((_CLASS, other, _CLASS_ALONE) for other in (_PROTECTION, _WARM, _STREAM, _BOUNDS, _CREATE)),
        *(
            (_PROTECTION, other, _PROTECTION_ALONE)
            for other in (_WARM, _STREAM, _BOUNDS, _ON_DEMAND, _CREATE)
        ),
        *((_BOUNDS, other, _BOUNDS_ALONE) for other in (_STREAM, _WARM, _PROVISIONED, _DELETE)),
        *(
            (_WARM, other, f"WarmThroughput {_ONLY}")
            for other in (_STREAM, _PROVISIONED, _ON_DEMAND, _DELETE)
        ),
        (_WARM, _CREATE, "Create global secondary index cannot be specified when updating WarmThroughput"),
        (_STREAM, _PROVISIONED, "You cannot modify stream status while updating table IOPS"),
        (
            _STREAM,
            {**_PROVISIONED, "BillingMode": "PROVISIONED"},
            "You cannot modify stream status while updating table IOPS",
        ),
        (_STREAM, _DELETE, "You cannot create or delete index while changing stream status"),
        (_PROVISIONED, _CREATE, "You cannot create or delete index while updating table IOPS"),
        (_PROVISIONED, _DELETE, "You cannot create or delete index while updating table IOPS"),
        (_PROTECTION, {"GlobalSecondaryIndexUpdates": []}, "List of GlobalSecondaryIndexUpdates is empty"),
        (
            _CLASS,
            _retune(WarmThroughput={}),
            (
                "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for "
                "index: by-a"
            ),
        ),
    ],
)
def test_changes_that_do_not_go_together(
    client: DynamoDBClient, tables: Tables, first: Any, second: Any, result: str
) -> None:
    """A call makes one change of a table; a combination is refused as a whole."""
    table = _provisioned(tables)
    before = client.describe_table(TableName=table)["Table"]

    error = refused(client.update_table, TableName=table, **{**first, **second})

    assert (error.code, error.message) == ("ValidationException", OOM + result)
    assert client.describe_table(TableName=table)["Table"] == before


def test_changes_that_go_together(client: DynamoDBClient, tables: Tables) -> None:
    """A change to on demand may bring a stream, or maxima; units of a table and of its index go together."""
    streamed, bounded, moved = _provisioned(tables), _provisioned(tables), _provisioned(tables)

    _change(client, streamed, **_ON_DEMAND, **_STREAM)
    _change(client, bounded, **_ON_DEMAND, **_BOUNDS)
    _change(client, moved, **_PROVISIONED, **_retune(ProvisionedThroughput=_MORE))

    assert settle(client, streamed)["StreamSpecification"]["StreamEnabled"] is True
    assert settle(client, bounded)["OnDemandThroughput"] == {"MaxReadRequestUnits": 10}
    found = settle(client, moved)
    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 6
    assert found["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 6


def test_nothing_is_no_change(send_raw: SendRaw, tables: Tables) -> None:
    """A call must request a change; the list in the message omits members without effect."""
    table = tables()
    named = send_raw("UpdateTable", {"TableName": table}).text
    strong = send_raw("UpdateTable", {"TableName": table, "MultiRegionConsistency": "EVENTUAL"}).text
    defined = send_raw("UpdateTable", {"TableName": table, "AttributeDefinitions": definitions("pk")}).text
    empty = send_raw("UpdateTable", {"TableName": table, "GlobalSecondaryIndexUpdates": []}).text

    assert named == defined == empty
    assert named is not None
    assert strong == named.replace("MultiRegionConsistency, ", "")


def test_an_empty_throughput_is_none(send_raw: SendRaw, client: DynamoDBClient, tables: Tables) -> None:
    """With another change an empty structure is passed over, and a table or index made with one has none."""
    both: dict[str, Any] = {"OnDemandThroughput": {}, "WarmThroughput": {}}
    table = tables(gsi={"by-a": "a"}, **both)

    answer = send_raw("UpdateTable", {"TableName": table, "DeletionProtectionEnabled": False, **both})

    assert answer.status == 200
    assert "OnDemandThroughput" not in client.describe_table(TableName=table)["Table"]


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (
            {**_ON_DEMAND, "ProvisionedThroughput": _UNITS},
            "ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
        ),
        (
            {"ProvisionedThroughput": _UNITS},
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
        ),
        *(
            (
                _retune(**throughput),
                (
                    "The only Updates for index: by-a when TableThroughputMode is PAY_PER_REQUEST can be to "
                    "OnDemandThroughput, WarmThroughput"
                ),
            )
            for throughput in _REFUSED_ON_DEMAND
        ),
        (
            _CREATE,
            (
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: by-b when BillingMode is "
                "PAY_PER_REQUEST"
            ),
        ),
        (
            {"BillingMode": "PROVISIONED", "ProvisionedThroughput": _UNITS},
            "ProvisionedThroughput must be specified for index: by-a",
        ),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 100, "WriteUnitsPerSecond": 100}},
            (
                "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
                "decreasing WarmThroughput is not supported"
            ),
        ),
        (
            _retune(WarmThroughput={"WriteUnitsPerSecond": -1}),
            (
                "Requested WriteUnitsPerSecond for WarmThroughput for index by-a is lower than current "
                "WarmThroughput, decreasing WarmThroughput is not supported"
            ),
        ),
        (
            _retune(OnDemandThroughput={"MaxWriteRequestUnits": 0}),
            "Requested MaxWriteRequestUnits for OnDemandThroughput for index : by-a is outside of valid range",
        ),
    ],
)
def test_throughput_that_an_on_demand_table_does_not_take(
    client: DynamoDBClient, tables: Tables, change: Any, result: str
) -> None:
    """An on-demand table has no provisioned units, and its warm throughput only grows."""
    error = refused(client.update_table, TableName=tables(gsi={"by-a": "a"}), **change)

    assert (error.code, error.message) == ("ValidationException", OOM + result)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (
            _retune(ProvisionedThroughput=_UNITS),
            "The provisioned throughput for the index by-a will not change. The requested value equals the current "
            "value. Current ReadCapacityUnits provisioned for index by-a: 5. Requested ReadCapacityUnits: 5. "
            "Current WriteCapacityUnits provisioned for index by-a: 5. Requested WriteCapacityUnits: 5. "
            + _GUIDE,
        ),
        (
            _retune(OnDemandThroughput={"MaxReadRequestUnits": 5}),
            (
                f"{OOM}MaxReadRequestUnits for OnDemandThroughput for index : by-a cannot be specified when the table "
                "BillingMode is PROVISIONED"
            ),
        ),
        (
            {
                "AttributeDefinitions": definitions("b"),
                "GlobalSecondaryIndexUpdates": [{"Create": index("by-b", "b")}],
            },
            f"{OOM}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by-b",
        ),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 1}},
            (
                f"{OOM}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
                "decreasing WarmThroughput is not supported"
            ),
        ),
    ],
)
def test_throughput_that_a_provisioned_table_does_not_take(
    client: DynamoDBClient, tables: Tables, change: Any, result: str
) -> None:
    """Unchanged units are refused, and so are settings of on-demand tables."""
    error = refused(client.update_table, TableName=_provisioned(tables), **change)

    assert (error.code, error.message) == ("ValidationException", result)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (
            {"ProvisionedThroughput": {"ReadCapacityUnits": 40_001, "WriteCapacityUnits": 1}},
            (
                f"The requested ReadCapacityUnits, 40001, is above the per table maximum for the account in {REGION}. "
                f"Per table maximum: 40000. {_GUIDE}"
            ),
        ),
        (
            _retune(ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 40_001}),
            (
                "The requested WriteCapacityUnits for index by-a, 40001, is above the per index maximum for the account "
                f"in {REGION}. Per table maximum: 40000. {_GUIDE}"
            ),
        ),
        (
            {**_ON_DEMAND, "OnDemandThroughput": {"MaxReadRequestUnits": 40_001}},
            (
                "Subscriber limit exceeded: Requested MaxReadRequestUnits for OnDemandThroughput for table exceeds "
                f"TableMaxReadCapacityUnits of the account in region {REGION}"
            ),
        ),
        (
            _retune(WarmThroughput={"WriteUnitsPerSecond": 40_001}),
            (
                "Subscriber limit exceeded: Requested WriteUnitsPerSecond for WarmThroughput for index by-a exceeds "
                f"TableMaxWriteCapacityUnits of the account in region {REGION}"
            ),
        ),
    ],
)
def test_a_table_has_no_more_than_its_limits(
    client: DynamoDBClient, tables: Tables, change: Any, result: str
) -> None:
    """DescribeLimits bounds the units of the table and of each of its indexes."""
    error = refused(client.update_table, TableName=_provisioned(tables), **change)

    assert (error.code, error.message) == ("LimitExceededException", result)


@pytest.mark.parametrize(
    ("described", "result"),
    [
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 1}},
            (
                "Requested ReadUnitsPerSecond for WarmThroughput for index by-a is lower than initial throughput for "
                f"OnDemand. See: {_DOCS}#on-demand-capacity-mode-initial"
            ),
        ),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": -1}},
            "Requested MaxReadRequestUnits for OnDemandThroughput for index : by-a is outside of valid range",
        ),
    ],
)
def test_throughput_that_a_new_index_does_not_take(send_raw: SendRaw, described: Any, result: str) -> None:
    """An index of a new table is held to what the table is."""
    request = table_request("t-never-made", "pk", AttributeDefinitions=definitions("pk a"))

    answer = send_raw(
        "CreateTable", {**request, "GlobalSecondaryIndexes": [{**index("by-a", "a"), **described}]}
    )

    assert (answer.code, answer.text) == ("ValidationException", OOM + result)


def test_an_unused_attribute_is_reported_before_what_an_index_lacks(send_raw: SendRaw) -> None:
    """AWS looks at the attributes of a table before it looks at projections and throughput."""
    wrong = {**index("by-a", "a"), "Projection": {}, "ProvisionedThroughput": _UNITS}
    request = table_request("t-never-made", "pk", AttributeDefinitions=definitions("pk a b"))

    answer = send_raw("CreateTable", {**request, "GlobalSecondaryIndexes": [wrong]})

    assert answer.text == (
        f"{OOM}Some AttributeDefinitions are not used. AttributeDefinitions: [pk, a, b], keys used: [pk, a]"
    )


def test_a_table_without_definitions(send_raw: SendRaw) -> None:
    """A key without attribute definitions has its own message."""
    answer = send_raw("CreateTable", table_request("t-never-made", "pk", AttributeDefinitions=[]))

    assert answer.text == "Invalid KeySchema: Some index key attribute have no definition"


@pytest.mark.parametrize(("action", "verb"), [("Delete", "delete"), ("Update", "update")])
def test_a_local_index_is_not_changed(client: DynamoDBClient, tables: Tables, action: str, verb: str) -> None:
    """Local indexes live as long as their table; their names are taken all the same."""
    table = tables("pk sk", lsi={"by-l": "pk l"})
    bounds = {"OnDemandThroughput": {"MaxReadRequestUnits": 5}} if action == "Update" else {}
    updates: Any = [{action: {"IndexName": "by-l", **bounds}}]

    error = refused(client.update_table, TableName=table, GlobalSecondaryIndexUpdates=updates)
    again = refused(
        client.update_table,
        TableName=table,
        AttributeDefinitions=definitions("a"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by-l", "a")}],
    )

    assert (error.code, error.message) == (
        "ValidationException",
        f"Cannot {verb} an index that is not a GlobalSecondaryIndex: by-l",
    )
    assert (again.code, again.message) == (
        "ValidationException",
        "Attempting to create an index which already exists",
    )


def test_a_21st_index_of_a_living_table(client: DynamoDBClient, tables: Tables) -> None:
    """CreateTable's validation error is a LimitExceededException in UpdateTable."""
    table = tables(gsi={f"by-a{number}": f"a{number}" for number in range(20)})

    error = refused(
        client.update_table,
        TableName=table,
        AttributeDefinitions=definitions("more"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by-more", "more")}],
    )

    assert (error.code, error.message) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20",
    )


def test_attributes_and_projections_are_reported_by_name(client: DynamoDBClient, tables: Tables) -> None:
    """Definitions and projected names are sorted, indexes are in request order."""
    table = tables("z m", gsi={"g-z": "k a | zz aa mm", "g-a": "a"})

    found = client.describe_table(TableName=table)["Table"]

    assert [each["AttributeName"] for each in found["AttributeDefinitions"]] == ["a", "k", "m", "z"]
    assert [each["IndexName"] for each in found["GlobalSecondaryIndexes"]] == ["g-z", "g-a"]
    assert found["GlobalSecondaryIndexes"][0]["Projection"]["NonKeyAttributes"] == ["aa", "mm", "zz"]


def test_definitions_without_a_new_index_are_passed_over(client: DynamoDBClient, tables: Tables) -> None:
    """Definitions that no new index needs change nothing, whatever their types."""
    table = tables()
    words: Any = definitions("pk:N other")

    client.update_table(TableName=table, AttributeDefinitions=words, **_ON_DEMAND)

    found = client.describe_table(TableName=table)["Table"]["AttributeDefinitions"]
    assert found == definitions("pk")


def test_the_answer_to_create_table(client: DynamoDBClient, fresh: Callable[[], str]) -> None:
    """The response omits members that AWS adds once the table is ACTIVE."""
    name, warm = fresh(), fresh()

    made = client.create_table(**table_request(name, "pk", gsi={"by-a": "a"}))["TableDescription"]
    warmed = client.create_table(**table_request(warm, "pk", **_WARM))["TableDescription"]
    found = settle(client, name)
    settle(client, warm)
    client.delete_table(TableName=name)
    client.delete_table(TableName=warm)

    assert made["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert "WarmThroughput" not in made
    assert "WarmThroughput" not in made["GlobalSecondaryIndexes"][0]
    assert warmed["WarmThroughput"] == {**_WARM["WarmThroughput"], "Status": "UPDATING"}
    assert "LastUpdateToPayPerRequestDateTime" in found["BillingModeSummary"]
    assert found["GlobalSecondaryIndexes"][0]["WarmThroughput"]["Status"] == "ACTIVE"


def test_the_answer_to_new_units(client: DynamoDBClient, tables: Tables) -> None:
    """The answer has the old units and the new moment; of an index, the index alone is UPDATING."""
    table = _provisioned(tables)

    result = _change(client, table, ProvisionedThroughput=_MORE)
    settle(client, table)
    retuned = _change(client, table, **_retune(ProvisionedThroughput=_MORE))
    found = settle(client, table)

    assert result["TableStatus"] == "UPDATING"
    assert result["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert "LastIncreaseDateTime" in result["ProvisionedThroughput"]
    assert retuned["TableStatus"] == "ACTIVE"
    assert retuned["GlobalSecondaryIndexes"][0]["IndexStatus"] == "UPDATING"
    assert retuned["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert found["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 6


def test_the_answers_to_other_changes(client: DynamoDBClient, tables: Tables) -> None:
    """Immediate changes leave the table ACTIVE; a class is reported once it applies."""
    table = tables(gsi={"by-a": "a"})

    protected = _change(client, table, **_PROTECTION)
    client.update_table(TableName=table, DeletionProtectionEnabled=False)
    bounded = _change(client, table, **_BOUNDS)
    warmed = _change(client, table, **_WARM)
    again = _change(client, table, **_ON_DEMAND)
    classed = _change(client, table, **_CLASS)
    settle(client, table)
    created = _change(
        client,
        table,
        AttributeDefinitions=definitions("b"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by-b", "b")}],
    )
    settle(client, table)
    deleted = _change(client, table, **_DELETE)
    found = settle(client, table)

    assert (protected["TableStatus"], protected["DeletionProtectionEnabled"]) == ("ACTIVE", True)
    assert (bounded["TableStatus"], bounded["OnDemandThroughput"]) == ("ACTIVE", {"MaxReadRequestUnits": 10})
    assert warmed["TableStatus"] == "ACTIVE"
    assert (warmed["WarmThroughput"]["ReadUnitsPerSecond"], warmed["WarmThroughput"]["Status"]) == (
        12_000,
        "UPDATING",
    )
    assert again["TableStatus"] == "UPDATING"
    assert "LastUpdateToPayPerRequestDateTime" in again["BillingModeSummary"]
    assert (classed["TableStatus"], "TableClassSummary" in classed) == ("UPDATING", False)
    new = {each["IndexName"]: each for each in created["GlobalSecondaryIndexes"]}["by-b"]
    assert (new["IndexStatus"], new["Backfilling"]) == ("CREATING", False)
    assert {"AttributeName": "a", "AttributeType": "S"} in deleted["AttributeDefinitions"]
    assert {"AttributeName": "a", "AttributeType": "S"} not in found["AttributeDefinitions"]
    assert found["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert found["WarmThroughput"]["ReadUnitsPerSecond"] == 13_000


def test_a_class_that_was_never_set_is_not_reported(client: DynamoDBClient, tables: Tables) -> None:
    """STANDARD is what a table has anyway: setting it is no change."""
    table = tables()

    result = _change(client, table, TableClass="STANDARD")

    assert result["TableStatus"] == "UPDATING"
    assert "TableClassSummary" not in settle(client, table)


def test_a_change_of_the_billing_mode(client: DynamoDBClient, tables: Tables) -> None:
    """On demand a table retains its dates and its warm throughput grows;

    provisioned again it has no maxima.
    """
    table = _provisioned(tables)
    _change(client, table, ProvisionedThroughput=_MORE)
    settle(client, table)

    result = _change(client, table, **_ON_DEMAND, **_BOUNDS)
    demanded = settle(client, table)
    _change(client, table, **_retune(OnDemandThroughput={"MaxReadRequestUnits": 7}))
    settle(client, table)
    back = _change(
        client,
        table,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
        **_retune(ProvisionedThroughput=_UNITS),
    )
    found = settle(client, table)

    assert result["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert result["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert "LastIncreaseDateTime" in demanded["ProvisionedThroughput"]
    assert demanded["WarmThroughput"]["ReadUnitsPerSecond"] == 12_000
    assert back["BillingModeSummary"] == {"BillingMode": "PROVISIONED"}
    assert back["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert "LastUpdateToPayPerRequestDateTime" in found["BillingModeSummary"]
    (gsi,) = found["GlobalSecondaryIndexes"]
    assert "OnDemandThroughput" not in found
    assert "OnDemandThroughput" not in gsi
    assert found["WarmThroughput"]["ReadUnitsPerSecond"] == 12_000
    assert gsi["WarmThroughput"]["WriteUnitsPerSecond"] == 4_000


def test_warmth_never_goes_down(client: DynamoDBClient, tables: Tables) -> None:
    """Provisioned, a table is as warm as the most units that it ever had."""
    table = _provisioned(tables)

    _change(client, table, ProvisionedThroughput={"ReadCapacityUnits": 30, "WriteCapacityUnits": 9})
    more = settle(client, table)["WarmThroughput"]
    _change(client, table, ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 3})
    less = settle(client, table)["WarmThroughput"]

    assert (more["ReadUnitsPerSecond"], more["WriteUnitsPerSecond"]) == (30, 9)
    assert less == more


def test_maxima_are_merged_and_taken_away(client: DynamoDBClient, tables: Tables) -> None:
    """Each maximum is changed alone; -1 takes it away, and is reported in the answer only."""
    table = tables(gsi={"by-a": "a"})

    def bounds(**maxima: int) -> tuple[Any, Any]:
        result = _change(client, table, OnDemandThroughput=maxima)
        return result["OnDemandThroughput"], settle(client, table).get("OnDemandThroughput")

    both = bounds(MaxReadRequestUnits=1000, MaxWriteRequestUnits=500)
    one = bounds(MaxReadRequestUnits=-1)
    none = bounds(MaxWriteRequestUnits=-1)
    _change(
        client, table, **_retune(OnDemandThroughput={"MaxReadRequestUnits": 6, "MaxWriteRequestUnits": 5})
    )
    settle(client, table)
    _change(client, table, **_retune(OnDemandThroughput={"MaxReadRequestUnits": -1}))
    (gsi,) = settle(client, table)["GlobalSecondaryIndexes"]

    assert both[0] == both[1] == {"MaxReadRequestUnits": 1000, "MaxWriteRequestUnits": 500}
    assert one == ({"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 500}, {"MaxWriteRequestUnits": 500})
    assert none == ({"MaxWriteRequestUnits": -1}, None)
    assert gsi["OnDemandThroughput"] == {"MaxWriteRequestUnits": 5}


def test_a_table_that_is_named_by_a_strange_arn(send_raw: SendRaw) -> None:
    """An ARN of another region is no name here, and one of another account is not ours."""
    region = send_raw("DescribeTable", {"TableName": f"arn:aws:dynamodb:eu-west-3:{ACCOUNT}:table/orders"})
    account = send_raw("DescribeTable", {"TableName": f"arn:aws:dynamodb:{REGION}:999999999999:table/orders"})

    assert (region.code, region.text) == (
        "ValidationException",
        f"1 validation error detected: Invalid AWS region in 'arn:aws:dynamodb:eu-west-3:{ACCOUNT}:table/orders'",
    )
    assert (account.code, account.text) == ("AccessDeniedException", "Access is denied")


@pytest.mark.parametrize("value", ["100%", "a,b", "a|b", "<a>", "#"])
def test_tags_take_few_signs(client: DynamoDBClient, tables: Tables, value: str) -> None:
    """A tag has letters, digits and spaces of any script, and a few signs; one wrong tag refuses them all."""
    arn = client.describe_table(TableName=tables())["Table"]["TableArn"]
    good: Any = {"Key": "k", "Value": "caf\u00e9 a+b-c=d.e_f:g/h@i"}

    error = refused(client.tag_resource, ResourceArn=arn, Tags=[good, {"Key": "x", "Value": value}])

    assert (error.code, error.message) == (
        "ValidationException",
        f"The Tag Value provided is invalid, Value: {value}",
    )
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == []
    client.tag_resource(ResourceArn=arn, Tags=[good])
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [good]


def test_all_tags_of_a_table_have_a_size(client: DynamoDBClient, tables: Tables) -> None:
    """The keys and values of a table's tags come to 10 KB at most."""
    arn = client.describe_table(TableName=tables())["Table"]["TableArn"]
    tags: Any = [{"Key": f"{number:03}" + "k" * 125, "Value": "v" * 256} for number in range(27)]

    client.tag_resource(ResourceArn=arn, Tags=tags[:26])
    error = refused(client.tag_resource, ResourceArn=arn, Tags=tags)

    assert (error.code, error.message) == (
        "ValidationException",
        "Tag set size 10368 bytes is above max size limit of 10240 bytes",
    )


@pytest.fixture
def slow() -> Iterator[tuple[DynamoDBClient, ManualClock]]:
    """A client of an engine whose tables and indexes take ten seconds to make, on a clock of our own."""
    clock = ManualClock(1_900_000_000)
    client = new_client(region="us-east-1", account="000000000000", endpoint_url="http://embedded.invalid")
    with Engine.open(clock=clock, table_delay_ms=10_000) as engine, mock(engine=engine):
        yield client, clock
    client.close()


def test_a_table_that_is_being_made(slow: tuple[DynamoDBClient, ManualClock]) -> None:
    """A CREATING table reports no time to live and cannot get one."""
    client, _ = slow
    client.create_table(**table_request("slow", "pk"))

    result = refused(client.describe_time_to_live, TableName="slow")
    set_ = refused(
        client.update_time_to_live,
        TableName="slow",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"},
    )

    assert (result.code, result.message) == (
        "ValidationException",
        "Cannot describe time to live while table is in CREATING state: Current table state is CREATING",
    )
    assert (set_.code, set_.message) == (
        "ResourceInUseException",
        "Attempt to change a resource which is still in use: Table slow is being created",
    )


def test_a_table_whose_index_is_being_made(slow: tuple[DynamoDBClient, ManualClock]) -> None:
    """Such a table cannot be deleted and takes no second index; the index itself may be dropped."""
    client, clock = slow
    client.create_table(**table_request("slow", "pk", gsi={"by-c": "c"}))
    clock.advance(11)
    put(client, "slow", item(pk="p", a="x"))
    change: Any = {"Create": index("by-a", "a")}
    words: Any = definitions("a")
    client.update_table(TableName="slow", AttributeDefinitions=words, GlobalSecondaryIndexUpdates=[change])

    during = client.describe_table(TableName="slow")["Table"]["GlobalSecondaryIndexes"][1]
    deleted = refused(client.delete_table, TableName="slow")
    other = refused(
        client.update_table,
        TableName="slow",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-c"}}],
    )
    client.update_table(TableName="slow", **_DELETE)
    after = client.describe_table(TableName="slow")["Table"]
    client.delete_table(TableName="slow")

    assert (during["IndexStatus"], during["Backfilling"]) == ("CREATING", True)
    assert (deleted.code, deleted.message) == (
        "ResourceInUseException",
        (
            "Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, "
            "updated, or deleted."
        ),
    )
    assert other.code == "LimitExceededException"
    assert after["TableStatus"] == "ACTIVE"
    assert [each["IndexName"] for each in after["GlobalSecondaryIndexes"]] == ["by-c"]
