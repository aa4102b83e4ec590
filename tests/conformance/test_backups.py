"""Continuous backups, backups on demand, and tables restored from either."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import ACCOUNT, REGION, Answer, Backend
from tests.conformance.requests import TRIES_MAX, get, item, items_of, put, refused, settle

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
DAY_S = 86_400
GSI = {"by-g": "g"}
UTC = datetime.UTC


@pytest.fixture
def restored(client: DynamoDBClient, fresh: Callable[[], str]) -> Iterator[Callable[..., str]]:
    """Restore a table, wait for it and return its name; it is deleted after the test."""
    made: list[str] = []

    def restore(**request: Any) -> str:
        name = fresh()
        made.append(name)
        operation: Any = (
            client.restore_table_from_backup
            if "BackupArn" in request
            else client.restore_table_to_point_in_time
        )
        operation(TargetTableName=name, **request)
        settle(client, name)
        return name

    yield restore
    for name in made:
        try:
            client.delete_table(TableName=name)
        except client.exceptions.ResourceNotFoundException:
            pass


def _recover(client: DynamoDBClient, table: str, *, on: bool = True, days: int | None = None) -> Any:
    specification: Any = {"PointInTimeRecoveryEnabled": on}
    if days is not None:
        specification["RecoveryPeriodInDays"] = days
    answer = client.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=specification)
    return answer["ContinuousBackupsDescription"]


def _describe_settings(client: DynamoDBClient, table: str) -> Any:
    answer = client.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    return answer["PointInTimeRecoveryDescription"]


def _backup(client: DynamoDBClient, table: str, name: str = "backup") -> str:
    arn = client.create_backup(TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]
    for _ in range(TRIES_MAX):
        details = client.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]
        if details["BackupStatus"] == "AVAILABLE":
            return arn
    raise AssertionError("a backup that does not come to an end")


def _pitr(**request: Any) -> dict[str, Any]:
    return {"UseLatestRestorableTime": True, **request}


def test_recovery_is_off_by_default(client: DynamoDBClient, tables: Tables) -> None:
    """Continuous backups are always enabled; point-in-time recovery is not, and then reports no times."""
    answer = client.describe_continuous_backups(TableName=tables())["ContinuousBackupsDescription"]

    assert answer["ContinuousBackupsStatus"] == "ENABLED"
    assert answer.get("PointInTimeRecoveryDescription") == {"PointInTimeRecoveryStatus": "DISABLED"}


def test_recovery_is_switched_on(client: DynamoDBClient, tables: Tables) -> None:
    """The response shows it at once, for 35 days, from now."""
    table = tables()

    result = _recover(client, table)["PointInTimeRecoveryDescription"]

    assert result["PointInTimeRecoveryStatus"] == "ENABLED"
    assert result["RecoveryPeriodInDays"] == 35
    assert result["EarliestRestorableDateTime"] <= result["LatestRestorableDateTime"]
    assert _describe_settings(client, table)["PointInTimeRecoveryStatus"] == "ENABLED"


def test_the_period_is_changed_in_place(client: DynamoDBClient, tables: Tables) -> None:
    """Another period preserves the history; disabling and enabling starts again, with 35 days."""
    table = tables()
    begun = _recover(client, table, days=7)["PointInTimeRecoveryDescription"]

    changed = _recover(client, table, days=3)["PointInTimeRecoveryDescription"]
    _recover(client, table, on=False)
    again = _recover(client, table)["PointInTimeRecoveryDescription"]

    assert (begun["RecoveryPeriodInDays"], changed["RecoveryPeriodInDays"]) == (7, 3)
    assert changed["EarliestRestorableDateTime"] == begun["EarliestRestorableDateTime"]
    assert again["RecoveryPeriodInDays"] == 35
    assert again["EarliestRestorableDateTime"] >= changed["EarliestRestorableDateTime"]


def test_a_period_has_bounds(client: DynamoDBClient, tables: Tables) -> None:
    """1 to 35 days, and none where recovery is switched off."""
    table = tables()

    assert refused(_recover, client=client, table=table, days=36).message == (
        "1 validation error detected: Value '36' at "
        "'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint: "
        "Member must have value less than or equal to 35"
    )
    assert refused(_recover, client=client, table=table, on=False, days=3).message == (
        "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
    )


def test_a_missing_table(client: DynamoDBClient) -> None:
    """The backup operations have their own error for it."""
    for call, request in (
        (client.describe_continuous_backups, {"TableName": "nobody"}),
        (client.create_backup, {"TableName": "nobody", "BackupName": "backup"}),
        (
            client.update_continuous_backups,
            {
                "TableName": "nobody",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        ),
        (
            client.restore_table_to_point_in_time,
            {"SourceTableName": "nobody", "TargetTableName": "another", **_pitr()},
        ),
    ):
        refusal = refused(call, **request)
        assert (refusal.code, refusal.message) == ("TableNotFoundException", "Table not found: nobody")


def test_a_backup_is_made(client: DynamoDBClient, tables: Tables) -> None:
    """The response is CREATING; described, it is AVAILABLE and names its table."""
    table = tables("pk sk:N", gsi={"by-g": "g | a b"}, lsi={"by-l": "pk l"})
    put(client, table, *(item(pk="p", sk=n, g="x") for n in range(30)))

    details = client.create_backup(TableName=table, BackupName="a.b-c_1")["BackupDetails"]
    _backup(client, table)

    assert details["BackupStatus"] == "CREATING"
    assert (details["BackupName"], details["BackupType"]) == ("a.b-c_1", "USER")
    assert details["BackupArn"].startswith(f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}/backup/0")
    assert "BackupExpiryDateTime" not in details
    described = client.describe_backup(BackupArn=details["BackupArn"])["BackupDescription"]
    assert described["BackupDetails"]["BackupCreationDateTime"] == details["BackupCreationDateTime"]
    source: Any = described["SourceTableDetails"]
    assert (source["TableName"], source["ItemCount"], source["BillingMode"]) == (table, 30, "PAY_PER_REQUEST")
    assert source["ProvisionedThroughput"] == {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    features: Any = described["SourceTableFeatureDetails"]
    assert set(features) == {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"}
    assert set(features["GlobalSecondaryIndexes"][0]) == {
        *("IndexName", "KeySchema", "Projection", "ProvisionedThroughput"),
    }


def test_a_backup_reports_the_features_of_its_table(client: DynamoDBClient, tables: Tables) -> None:
    """Stream, expiry and key are reported if present; a plain table has no features."""
    plain, rich = tables(), tables(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    client.update_time_to_live(
        TableName=rich, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ends"}
    )

    result = [
        client.describe_backup(BackupArn=_backup(client, table))["BackupDescription"][
            "SourceTableFeatureDetails"
        ]
        for table in (plain, rich)
    ]

    assert result == [
        {},
        {
            "StreamDescription": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ends"},
        },
    ]


def test_backups_of_one_name(client: DynamoDBClient, tables: Tables) -> None:
    """Names are not unique; the list is in the order of making, in pages, by table, type and time."""
    table = tables()
    arns = [_backup(client, table, "same") for _ in range(3)]

    listed: Any = client.list_backups(TableName=table)
    first = client.list_backups(TableName=table, Limit=2)
    second = client.list_backups(
        TableName=table, Limit=2, ExclusiveStartBackupArn=first["LastEvaluatedBackupArn"]
    )
    made = listed["BackupSummaries"][1]["BackupCreationDateTime"]

    found: Any = listed["BackupSummaries"]
    assert sorted(each["BackupArn"] for each in found) == sorted(arns)
    assert [each["BackupCreationDateTime"] for each in found] == sorted(
        each["BackupCreationDateTime"] for each in found
    )
    assert "LastEvaluatedBackupArn" not in listed
    assert first["BackupSummaries"] + second["BackupSummaries"] == found
    assert client.list_backups(TableName=table, BackupType="SYSTEM")["BackupSummaries"] == []
    assert client.list_backups(TableName="nobody")["BackupSummaries"] == []
    later = client.list_backups(TableName=table, TimeRangeLowerBound=made + datetime.timedelta(days=1))
    assert later["BackupSummaries"] == []


def test_a_range_of_times_goes_forward(client: DynamoDBClient) -> None:
    """A lower bound after the upper one is refused."""
    assert refused(client.list_backups, TimeRangeLowerBound=2, TimeRangeUpperBound=1).message == (
        "One or more parameter values were invalid: Time range lower bound must be less than or equal to "
        "upper bound"
    )


def test_a_table_is_restored_from_a_backup(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """All rows of the time of the backup are in the table and in its indexes, and are counted."""
    table = tables("pk sk:N", gsi=GSI)
    stored = [item(pk=f"p{n % 7}", sk=n, g=f"g{n % 3}") for n in range(200)]
    put(client, table, *stored)
    arn = _backup(client, table)
    put(client, table, item(pk="late", sk=1, g="g0"))

    new = restored(BackupArn=arn)

    by_key = lambda found: (found["pk"]["S"], float(found["sk"]["N"]))  # noqa: E731 - a sort key
    assert sorted(items_of(client.scan, TableName=new), key=by_key) == sorted(stored, key=by_key)
    indexed = items_of(
        client.query,
        TableName=new,
        IndexName="by-g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": "g0"}},
    )
    assert len(indexed) == len([each for each in stored if each["g"] == {"S": "g0"}])
    described: Any = client.describe_table(TableName=new)["Table"]
    assert (described["ItemCount"], described["GlobalSecondaryIndexes"][0]["ItemCount"]) == (200, 200)
    assert "RestoreSummary" not in described


def test_a_restore_is_answered_before_it_is_done(
    client: DynamoDBClient, tables: Tables, fresh: Callable[[], str]
) -> None:
    """The response is a table in state CREATING that names its source."""
    table, new = tables(), fresh()
    arn = _backup(client, table)

    result = client.restore_table_from_backup(TargetTableName=new, BackupArn=arn)["TableDescription"]
    settle(client, new)
    client.delete_table(TableName=new)

    assert (result["TableName"], result["TableStatus"]) == (new, "CREATING")
    assert result["RestoreSummary"]["SourceBackupArn"] == arn
    assert result["RestoreSummary"]["SourceTableArn"].endswith(f"table/{table}")
    assert result["RestoreSummary"]["RestoreInProgress"] is True


def test_settings_that_a_restore_omits(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """Stream, expiry, tags, recovery, protection and class are not restored; the on-demand maxima are."""
    table = tables(
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        Tags=[{"Key": "k", "Value": "v"}],
        TableClass="STANDARD_INFREQUENT_ACCESS",
        OnDemandThroughput={"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50},
    )
    client.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ends"}
    )
    _recover(client, table)

    for new in (restored(BackupArn=_backup(client, table)), restored(SourceTableName=table, **_pitr())):
        described: Any = client.describe_table(TableName=new)["Table"]

        assert "StreamSpecification" not in described
        assert "TableClassSummary" not in described
        assert described["DeletionProtectionEnabled"] is False
        assert described["OnDemandThroughput"] == {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50}
        assert client.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"] == []
        assert _describe_settings(client, new)["PointInTimeRecoveryStatus"] == "DISABLED"
        result = client.describe_time_to_live(TableName=new)["TimeToLiveDescription"]
        assert result == {"TimeToLiveStatus": "DISABLED"}


def test_a_table_is_restored_to_a_time(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """I12 over HTTP: the latest restorable time includes the last write; the target is a new table."""
    table = tables("pk", gsi=GSI)
    put(client, table, item(pk="before", g="x"))
    _recover(client, table)
    put(client, table, *(item(pk=f"p{n}", g="x") for n in range(50)))
    client.delete_item(TableName=table, Key=item(pk="p7"))

    new = restored(SourceTableName=table, **_pitr())

    assert len(items_of(client.scan, TableName=new)) == 50
    assert get(client, new, pk="before") == item(pk="before", g="x")
    assert get(client, new, pk="p7") is None
    assert len(items_of(client.scan, TableName=new, IndexName="by-g")) == 50


def test_a_restore_takes_its_source_by_arn(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """Name or ARN, and one of them."""
    table = tables()
    _recover(client, table)
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]

    new = restored(SourceTableArn=arn, **_pitr())

    assert client.describe_table(TableName=new)["Table"]["TableStatus"] == "ACTIVE"
    both = refused(
        client.restore_table_to_point_in_time,
        SourceTableArn=arn,
        SourceTableName=table,
        TargetTableName="target",
        UseLatestRestorableTime=True,
    )
    assert both.message == "Must provide exactly one of: sourceTableArn, sourceTableName"


RESTORES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"RestoreDateTime": 1, "UseLatestRestorableTime": True},
        "ValidationException",
        (
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
            "restore request. Please specify either RestoreDateTime time or UseLatestRestorableTime"
        ),
    ),
    (
        {},
        "ValidationException",
        (
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not "
            "both"
        ),
    ),
    (
        {"UseLatestRestorableTime": False},
        "ValidationException",
        (
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not "
            "both"
        ),
    ),
    ({"RestoreDateTime": 1}, "InvalidRestoreTimeException", "RestoreDateTime '1970-01-01T00:00:01Z' must be"),
    ({"RestoreDateTime": 9_000_000_000}, "InvalidRestoreTimeException", "RestoreDateTime '2255-"),
    (
        {"UseLatestRestorableTime": True, "BillingModeOverride": "PROVISIONED"},
        "ValidationException",
        "Invalid Request: Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
    ),
    (
        {
            "UseLatestRestorableTime": True,
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        },
        "ValidationException",
        "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
    ),
    (
        {
            "UseLatestRestorableTime": True,
            "BillingModeOverride": "PAY_PER_REQUEST",
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        },
        "ValidationException",
        (
            "Invalid Request: Cannot override ProvisionedThroughput if BillingMode is overridden to "
            "PAY_PER_REQUEST"
        ),
    ),
    (
        {"UseLatestRestorableTime": True, "OnDemandThroughputOverride": {"MaxReadRequestUnits": 0}},
        "ValidationException",
        "Invalid Request: Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range",
    ),
    (
        {
            "UseLatestRestorableTime": True,
            "BillingModeOverride": "PROVISIONED",
            "ProvisionedThroughputOverride": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        },
        "ValidationException",
        "Invalid Request: Must specify provisioned throughput for index by-g",
    ),
    (
        {
            "UseLatestRestorableTime": True,
            "GlobalSecondaryIndexOverride": [
                {
                    "IndexName": "new",
                    "KeySchema": [{"AttributeName": "other", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        },
        "ValidationException",
        (
            "Invalid Request: Index new does not match a secondary index that existed in the source table and "
            "cannot be created during the restore operation"
        ),
    ),
]


@pytest.mark.parametrize(("request_", "code", "message"), RESTORES)
def test_a_restore_that_is_refused(
    client: DynamoDBClient,
    tables: Tables,
    fresh: Callable[[], str],
    request_: dict[str, Any],
    code: str,
    message: str,
) -> None:
    """It is refused at once, in AWS's words, and leaves no table."""
    table, target = tables("pk", gsi=GSI), fresh()
    _recover(client, table)

    refusal = refused(
        client.restore_table_to_point_in_time, SourceTableName=table, TargetTableName=target, **request_
    )

    assert refusal.code == code
    assert refusal.message.startswith(message)
    assert refused(client.describe_table, TableName=target).code == "ResourceNotFoundException"


def test_the_order_of_refusals(client: DynamoDBClient, tables: Tables) -> None:
    """Disabled recovery comes before a time outside the window, and that before an existing target."""
    table = tables()
    request: Any = {"SourceTableName": table, "TargetTableName": table, "RestoreDateTime": 1}

    off = refused(client.restore_table_to_point_in_time, **request)
    _recover(client, table)
    outside = refused(client.restore_table_to_point_in_time, **request)
    del request["RestoreDateTime"]
    there = refused(client.restore_table_to_point_in_time, **request, UseLatestRestorableTime=True)

    assert (off.code, off.message) == (
        "PointInTimeRecoveryUnavailableException",
        f"Point in time recovery is not enabled for table '{table}'",
    )
    assert outside.code == "InvalidRestoreTimeException"
    assert (there.code, there.message) == ("TableAlreadyExistsException", f"Table already exists: {table}")


def test_fewer_indexes(client: DynamoDBClient, tables: Tables, restored: Callable[..., str]) -> None:
    """Empty lists restore no index; a list restores those it describes, under its names; none named: all."""
    table = tables("pk sk:N", gsi={"by-g": "g", "by-h": "h"}, lsi={"by-l": "pk l"})
    put(client, table, item(pk="p", sk=1, g="x", h="y", l="z"))
    arn = _backup(client, table)
    by_h: Any = {
        "IndexName": "renamed",
        "KeySchema": [{"AttributeName": "h", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }

    none = restored(BackupArn=arn, GlobalSecondaryIndexOverride=[], LocalSecondaryIndexOverride=[])
    some = restored(BackupArn=arn, GlobalSecondaryIndexOverride=[by_h])

    bare: Any = client.describe_table(TableName=none)["Table"]
    assert "GlobalSecondaryIndexes" not in bare
    assert "LocalSecondaryIndexes" not in bare
    assert {each["AttributeName"] for each in bare["AttributeDefinitions"]} == {"pk", "sk"}
    described: Any = client.describe_table(TableName=some)["Table"]
    assert [each["IndexName"] for each in described["GlobalSecondaryIndexes"]] == ["renamed"]
    assert [each["IndexName"] for each in described["LocalSecondaryIndexes"]] == ["by-l"]
    assert len(items_of(client.scan, TableName=some, IndexName="renamed")) == 1


def test_other_settings(client: DynamoDBClient, tables: Tables, restored: Callable[..., str]) -> None:
    """Billing, throughput and encryption may be others than the source's."""
    table = tables("pk")
    arn = _backup(client, table)

    new = restored(
        BackupArn=arn,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
        SSESpecificationOverride={"Enabled": True, "SSEType": "KMS"},
    )

    described: Any = client.describe_table(TableName=new)["Table"]
    units = described["ProvisionedThroughput"]
    assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (3, 2)
    assert described["SSEDescription"]["Status"] == "ENABLED"


def test_a_backup_outlives_its_table(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """It is listed, described and restored when its table is gone."""
    table = tables()
    put(client, table, item(pk="p"))
    arn = _backup(client, table)
    client.delete_table(TableName=table)

    new = restored(BackupArn=arn)

    assert get(client, new, pk="p") == item(pk="p")
    assert [each["BackupArn"] for each in client.list_backups(TableName=table)["BackupSummaries"]] == [arn]


def test_a_backup_is_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """The response describes it once more; then it is gone."""
    table = tables()
    arn = _backup(client, table)

    result = client.delete_backup(BackupArn=arn)["BackupDescription"]

    assert result["BackupDetails"]["BackupStatus"] == "DELETED"
    for call in (client.describe_backup, client.delete_backup):
        refusal = refused(call, BackupArn=arn)
        assert (refusal.code, refusal.message) == ("BackupNotFoundException", f"Backup not found: {arn}")
    assert client.list_backups(TableName=table)["BackupSummaries"] == []
    gone = refused(client.restore_table_from_backup, BackupArn=arn, TargetTableName="target")
    assert gone.code == "BackupNotFoundException"


def test_an_arn_of_another_account(backend: Backend, client: DynamoDBClient, tables: Tables) -> None:
    """No backup's ARN, another account's, another region's, another table's: each is refused."""
    table = tables()
    arn = _backup(client, table)

    def result(changed: str) -> tuple[str, str]:
        refusal = refused(client.describe_backup, BackupArn=changed)
        return refusal.code, refusal.message

    other = arn.replace(table, "another")
    assert result(arn.partition("/backup/")[0]) == ("ValidationException", "Invalid Backup ARN")
    assert result(arn.replace(ACCOUNT, "111111111111"))[0] == "AccessDeniedException"
    assert result(arn.replace(REGION, "eu-west-1"))[0] == "BackupNotFoundException"
    assert result(other) == ("BackupNotFoundException", f"Backup not found: {other}")
    if backend.name != "aws":
        other_account = backend.client(account="111111111111")
        assert refused(other_account.describe_backup, BackupArn=arn).code == "AccessDeniedException"
        assert refused(other_account.delete_backup, BackupArn=arn).code == "AccessDeniedException"
        taken = refused(other_account.restore_table_from_backup, BackupArn=arn, TargetTableName="mine")
        assert taken.code == "AccessDeniedException"
        assert other_account.list_backups()["BackupSummaries"] == []
        other_account.close()


def test_deleting_a_table_with_recovery_makes_a_backup(
    client: DynamoDBClient, tables: Tables, restored: Callable[..., str]
) -> None:
    """It is a SYSTEM backup for 35 days, cannot be deleted and has the table's last contents."""
    table = tables("pk", gsi=GSI)
    _recover(client, table)
    put(client, table, *(item(pk=f"p{n}", g="x") for n in range(40)))
    client.delete_table(TableName=table)

    assert client.list_backups(TableName=table)["BackupSummaries"] == []
    (backup,) = client.list_backups(TableName=table, BackupType="SYSTEM")["BackupSummaries"]
    new = restored(BackupArn=backup["BackupArn"])

    assert backup["BackupName"] == f"{table}$DeletedTableBackup"
    lifetime = backup["BackupExpiryDateTime"] - backup["BackupCreationDateTime"]
    assert lifetime == datetime.timedelta(days=35)
    assert len(items_of(client.scan, TableName=new)) == 40
    assert len(items_of(client.scan, TableName=new, IndexName="by-g")) == 40
    refusal = refused(client.delete_backup, BackupArn=backup["BackupArn"])
    assert refusal.code == "ValidationException"
    assert "not allowed to delete the system backup" in refusal.message


def test_deleting_a_table_without_recovery_makes_none(client: DynamoDBClient, tables: Tables) -> None:
    """Without recovery the contents are lost."""
    table = tables()
    client.delete_table(TableName=table)

    assert client.list_backups(TableName=table, BackupType="ALL")["BackupSummaries"] == []


def test_the_words_for_bad_members(send_raw: Callable[..., Answer]) -> None:
    """Names, types and numbers are refused by their members."""
    named = send_raw("CreateBackup", {"TableName": "table", "BackupName": "a b"})
    short = send_raw("DescribeBackup", {"BackupArn": "arn"})
    typed = send_raw("ListBackups", {"BackupType": "MINE"})
    timed = send_raw("ListBackups", {"TimeRangeLowerBound": "soon"})

    assert named.text == (
        "1 validation error detected: Value 'a b' at 'backupName' failed to satisfy constraint: Member must "
        "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
    )
    assert short.text is not None
    assert short.text.endswith("Member must have length greater than or equal to 37")
    assert typed.text is not None
    assert typed.text.endswith("Member must satisfy enum value set: [USER, SYSTEM, AWS_BACKUP, ALL]")
    assert timed.code == "SerializationException"
