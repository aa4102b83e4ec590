"""Encryption settings: the key that a table reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import OOM, refused, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
HERE = "arn:aws:kms:us-east-1:{account}:"
UNKNOWN = "KMS validation error: com.amazonaws.services.kms.model.NotFoundException: "


def _describe_settings(client: DynamoDBClient, table: str) -> dict[str, Any] | None:
    described: Any = client.describe_table(TableName=table)["Table"]
    found: dict[str, Any] | None = described.get("SSEDescription")
    return found


def _account(client: DynamoDBClient, table: str) -> str:
    return client.describe_table(TableName=table)["Table"]["TableArn"].split(":")[4]


def _set(client: DynamoDBClient, table: str, **specification: Any) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": table, "SSESpecification": specification}
    answer: Any = client.update_table(**request)
    return dict(answer["TableDescription"])


@pytest.mark.parametrize("specification", [None, {}, {"Enabled": False}])
def test_the_key_that_aws_owns_is_not_reported(
    client: DynamoDBClient, tables: Tables, specification: dict[str, Any] | None
) -> None:
    """A table is encrypted by default and does not report it."""
    more = {} if specification is None else {"SSESpecification": specification}

    assert _describe_settings(client, tables(**more)) is None


@pytest.mark.parametrize(
    "specification",
    [
        {"Enabled": True},
        {"SSEType": "KMS"},
        {"Enabled": True, "SSEType": "KMS"},
        {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/aws/dynamodb"},
    ],
)
def test_the_managed_key_is_one(
    client: DynamoDBClient, tables: Tables, specification: dict[str, Any]
) -> None:
    """Every way to select the AWS managed key reports the same ARN, of a key and not of an alias."""
    table, another = tables(SSESpecification=specification), tables(SSESpecification={"Enabled": True})
    result = _describe_settings(client, table)

    assert result is not None
    assert set(result) == {"Status", "SSEType", "KMSMasterKeyArn"}  # and no InaccessibleEncryptionDateTime
    assert (result["Status"], result["SSEType"]) == ("ENABLED", "KMS")
    assert result["KMSMasterKeyArn"].startswith(HERE.format(account=_account(client, table)) + "key/")
    assert result == _describe_settings(client, another)


def test_a_key_is_named_in_four_ways(client: DynamoDBClient, tables: Tables) -> None:
    """An id, an ARN, an alias and the ARN of an alias; the description has the ARN of the key."""
    table = tables()
    here = HERE.format(account=_account(client, table))
    found = {
        key: _describe_settings(
            client, tables(SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key})
        )
        for key in (KEY, f"{here}key/{KEY}", "alias/mine", f"{here}alias/mine")
    }
    arns = [result["KMSMasterKeyArn"] for result in found.values() if result is not None]

    assert arns[0] == arns[1] == f"{here}key/{KEY}"
    assert arns[2] == arns[3]
    assert arns[2].startswith(f"{here}key/")
    assert arns[2] != arns[0]


def test_the_key_is_changed(client: DynamoDBClient, tables: Tables) -> None:
    """The response shows the old key as UPDATING on an ACTIVE table; then the new one is reported."""
    table = tables()
    arn = HERE.format(account=_account(client, table)) + f"key/{KEY}"

    enabled = _set(client, table, Enabled=True)
    managed = _describe_settings(client, table)
    changed = _set(client, table, Enabled=True, SSEType="KMS", KMSMasterKeyId=KEY)
    own = _describe_settings(client, table)
    disabled = _set(client, table, Enabled=False)

    assert managed is not None
    assert enabled["SSEDescription"] == {"Status": "UPDATING"}
    assert changed["SSEDescription"] == managed | {"Status": "UPDATING"}
    assert own == {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}
    assert disabled["SSEDescription"] == own | {"Status": "UPDATING"}
    assert _describe_settings(client, table) is None
    assert {each["TableStatus"] for each in (enabled, changed, disabled)} == {"ACTIVE"}


def test_the_same_key_by_its_arn_is_refused(client: DynamoDBClient, tables: Tables) -> None:
    """Only the ARN is seen to be the same; an alias or an id of the same key encrypts again."""
    table = tables(SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY})
    result = _describe_settings(client, table)
    assert result is not None
    request: dict[str, Any] = {"Enabled": True, "SSEType": "KMS"}

    again = refused(_set, client=client, table=table, **request, KMSMasterKeyId=result["KMSMasterKeyArn"])
    _set(client, table, **request, KMSMasterKeyId=KEY)

    assert again.message == (
        f"{OOM}Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to "
        "change Master Key"
    )
    assert _describe_settings(client, table) == result


@pytest.mark.parametrize("specification", [{}, {"Enabled": False}])
def test_disabling_disabled_encryption_is_refused(
    client: DynamoDBClient, tables: Tables, specification: dict[str, Any]
) -> None:
    """A table without a key of the account cannot disable one."""
    result = refused(_set, client=client, table=tables(), **specification)

    assert result.message == f"{OOM}Table is already encrypted by default"


def test_encryption_is_changed_alone(client: DynamoDBClient, tables: Tables) -> None:
    """Beside another change it is refused, and neither is made."""
    table = tables()
    result = refused(
        client.update_table,
        TableName=table,
        SSESpecification={"Enabled": True},
        DeletionProtectionEnabled=True,
    )

    assert result.message == (
        f"{OOM}Server-Side Encryption modification must be the only operation in the request"
    )
    assert _describe_settings(client, table) is None


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (f"arn:aws:kms:eu-west-1:000000000000:key/{KEY}", "Invalid arn eu-west-1"),
        (
            f"arn:aws:kms:us-east-1:999999999999:key/{KEY}",
            f"Key 'arn:aws:kms:us-east-1:999999999999:key/{KEY}' does not exist",
        ),
        ("arn:aws:s3:::bucket", "Invalid arn arn:aws:s3:::bucket"),
        ("not a key", "Invalid keyId 'not a key'"),
    ],
)
def test_a_key_from_elsewhere_is_refused(
    client: DynamoDBClient, tables: Tables, fresh: Callable[[], str], key: str, sentence: str
) -> None:
    """A key of another region or account, or an invalid key; nothing is created or changed."""
    name, table = fresh(), tables()
    specification: dict[str, Any] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}

    made = refused(client.create_table, **table_request(name, "pk", SSESpecification=specification))
    changed = refused(_set, client=client, table=table, **specification)

    assert (made.code, made.message.split(" (Service")[0]) == ("ValidationException", UNKNOWN + sentence)
    assert changed.message == made.message
    assert name not in client.list_tables()["TableNames"]
    assert _describe_settings(client, table) is None


@pytest.mark.parametrize(
    ("specification", "sentence"),
    [
        ({"Enabled": False, "SSEType": "KMS"}, "SSEType can not be specified if Enabled is false"),
        (
            {"Enabled": False, "KMSMasterKeyId": KEY},
            "KMSMasterKeyId can not be specified if Enabled is false",
        ),
        ({"Enabled": True, "SSEType": "AES256"}, "SSEType AES256 is not supported"),
        (
            {"Enabled": True, "KMSMasterKeyId": KEY},
            "SSEType KMS is required if KMSMasterKeyId is specified",
        ),
    ],
)
def test_specifications_that_contradict_themselves_are_refused(
    client: DynamoDBClient,
    tables: Tables,
    fresh: Callable[[], str],
    specification: dict[str, Any],
    sentence: str,
) -> None:
    """The message is the same for a new and for an existing table."""
    made = refused(client.create_table, **table_request(fresh(), "pk", SSESpecification=specification))
    changed = refused(_set, client=client, table=tables(), **specification)

    assert made.message == changed.message == OOM + sentence
