"""Which tables DynamoDB does not make, as far as the request alone can tell."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.definitions import check_keys_defined
from tavola.protocol.faults import LimitExceededFault, ValidationFault
from tests.protocol.parsing import INVALID, fault, parse_request, refusal


def _defined(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def _schema(*elements: str) -> list[dict[str, str]]:
    """Return a key schema from texts such as `a HASH`."""
    return [dict(zip(("AttributeName", "KeyType"), element.split(), strict=True)) for element in elements]


def _index(name: str, *elements: str, **more: Any) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": _schema(*elements),
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }


def _table(*names: str, key: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    return {
        "TableName": "abc",
        "AttributeDefinitions": _defined(*names),
        "KeySchema": key,
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


_HASH = _schema("a HASH")
_PAIR = _schema("a HASH", "b RANGE")
_UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
_SAME = "Both the Hash Key and the Range Key element in the KeySchema have the same name"
_FIRST = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
_SECOND = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
_UNDEFINED_PAIR = "Invalid KeySchema: Some index key attribute have no definition"
_NEITHER = (
    INVALID
    + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
_ORDER = INVALID + "All HASH key attributes must precede RANGE key attributes in the KeySchema"
_ALPHABET = [chr(ord("a") + place) for place in range(10)]


def _projected(**projection: Any) -> dict[str, Any]:
    return _table(
        "a", "b", key=_HASH, GlobalSecondaryIndexes=[_index("gsi", "b HASH", Projection=projection)]
    )


def _local(*indexes: dict[str, Any], names: str = "ab", key: list[dict[str, str]] = _PAIR) -> dict[str, Any]:
    return _table(*names, key=key, LocalSecondaryIndexes=list(indexes))


def _global(*indexes: dict[str, Any], names: str = "ab") -> dict[str, Any]:
    return _table(*names, key=_HASH, GlobalSecondaryIndexes=list(indexes))


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        # Billing
        (
            _table("a", key=_HASH, BillingMode="PROVISIONED"),
            INVALID
            + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        ),
        (
            {"TableName": "abc", "AttributeDefinitions": _defined("a"), "KeySchema": _HASH},
            INVALID
            + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        ),
        (_table("a", key=_HASH, ProvisionedThroughput=_UNITS), _NEITHER),
        (
            _table(
                "a",
                key=_HASH,
                BillingMode="PROVISIONED",
                ProvisionedThroughput=_UNITS | {"ReadCapacityUnits": 1_000_000_000_001},
            ),
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
        ),
        (
            _table(
                "a",
                key=_HASH,
                BillingMode="PROVISIONED",
                ProvisionedThroughput=_UNITS | {"WriteCapacityUnits": 1_000_000_000_001},
            ),
            "Given value 1000000000001 for WriteCapacityUnits is out of bounds",
        ),
        (
            _table(
                "a",
                key=_HASH,
                BillingMode="PROVISIONED",
                ProvisionedThroughput=_UNITS,
                OnDemandThroughput={"MaxReadRequestUnits": 1},
            ),
            INVALID
            + "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.",
        ),
        (
            _table("a", key=_HASH, OnDemandThroughput={"MaxReadRequestUnits": 0}),
            INVALID
            + "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        ),
        # The table's key
        (_table("a", "b", key=_schema("a RANGE", "b HASH")), _FIRST),
        (_table("a", "b", key=_schema("a RANGE", "b RANGE")), _FIRST),
        (_table("a", "b", key=_schema("a HASH", "b HASH")), _SECOND),
        (_table("a", "b", key=_schema("a HASH", "a RANGE")), _SAME),
        (_table("a", key=_schema("a HASH", "a RANGE")), _UNDEFINED_PAIR),
        (_table("b", key=_PAIR), _UNDEFINED_PAIR),
        (
            _table("b", key=_HASH),
            INVALID
            + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], AttributeDefinitions: [b]",
        ),
        (
            _table("a", "b", key=_HASH),
            INVALID
            + "Number of attributes in KeySchema does not exactly match number of attributes defined in "
            + "AttributeDefinitions",
        ),
        (_table("a", "a", key=_HASH), "Attribute Name is duplicated: a"),
        # Local indexes
        (_local(), INVALID + "List of LocalSecondaryIndexes is empty"),
        (
            _local(_index("lsi", "a HASH", "b RANGE"), key=_HASH),
            INVALID
            + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        ),
        (
            _local(_index("lsi", "a HASH")),
            INVALID + "Index KeySchema does not have a range key for index: lsi",
        ),
        (
            _local(_index("lsi", "b HASH", "a RANGE")),
            INVALID
            + "Index KeySchema does not have the same leading hash key as table KeySchema for index: lsi. "
            + "index hash key: b, table hash key: a",
        ),
        (
            _local(_index("lsi", "c RANGE", "d RANGE")),
            INVALID
            + "Some index key attributes are not defined in AttributeDefinitions. "
            + "Keys: [c, d], AttributeDefinitions: [a, b]",
        ),
        (_local(_index("lsi", "a RANGE", "b RANGE")), _FIRST),
        (_local(_index("lsi", "a HASH", "b HASH")), _SECOND),
        (_local(_index("lsi", "a HASH", "a RANGE")), _SAME),
        (
            _local(*(_index(f"ls{place}", "a HASH", "b RANGE") for place in range(6))),
            INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        ),
        (
            _local(_index("lsi", "a HASH", "b RANGE"), _index("lsi", "a HASH", "b RANGE")),
            INVALID + "Duplicate index name: lsi",
        ),
        # Global indexes
        (_global(), INVALID + "List of GlobalSecondaryIndexes is empty"),
        (
            _global(_index("gsi", "c HASH")),
            INVALID
            + "Some index key attributes are not defined in AttributeDefinitions. "
            + "Keys: [c], AttributeDefinitions: [a, b]",
        ),
        (_global(_index("gsi", "a RANGE")), _FIRST),
        (_global(_index("gsi", "a RANGE", "b HASH")), _FIRST),
        (_global(_index("gsi", "b HASH", "b RANGE")), _SAME),
        (
            _global(_index("gsi", "a HASH", "b HASH", "a RANGE")),
            "The KeySchema contains multiple key attributes with the same name",
        ),
        (_global(_index("gsi", "a HASH", "b RANGE", "c HASH"), names="abc"), _ORDER),
        (_global(_index("gsi", "a RANGE", "b HASH", "c HASH"), names="abc"), _ORDER),
        (
            _global(_index("gsi", *(f"{name} HASH" for name in "abcde")), names="abcde"),
            INVALID + "The KeySchema exceeds the maximum allowed number of HASH key attributes",
        ),
        (
            _global(_index("gsi", "a HASH", *(f"{name} RANGE" for name in "bcdef")), names="abcdef"),
            INVALID + "The KeySchema exceeds the maximum allowed number of RANGE key attributes",
        ),
        (
            _global(*(_index(f"gsi{place}", "b HASH") for place in range(21))),
            INVALID + "GlobalSecondaryIndex count exceeds the per-table limit of 20",
        ),
        (_global(_index("gsi", "b HASH"), _index("gsi", "b HASH")), INVALID + "Duplicate index name: gsi"),
        (
            _local(_index("one", "a HASH", "b RANGE"))
            | {"GlobalSecondaryIndexes": [_index("one", "b HASH")]},
            INVALID + "Duplicate index name: one",
        ),
        (
            _global(_index("gsi", "b HASH", ProvisionedThroughput=_UNITS)),
            INVALID
            + "ProvisionedThroughput should not be specified for index: gsi when BillingMode is PAY_PER_REQUEST",
        ),
        (
            _global(_index("gsi", "b HASH"))
            | {"BillingMode": "PROVISIONED", "ProvisionedThroughput": _UNITS},
            INVALID + "ProvisionedThroughput is not specified for index: gsi",
        ),
        (
            _global(_index("gsi", "b HASH"), names="abcd"),
            INVALID
            + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], keys used: [a, b]",
        ),
        # Projections
        (_projected(), INVALID + "Unknown ProjectionType: null"),
        (
            _projected(ProjectionType="ALL", NonKeyAttributes=["x"]),
            INVALID + "ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        (
            _projected(ProjectionType="KEYS_ONLY", NonKeyAttributes=["x"]),
            INVALID + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
        ),
        (
            _projected(ProjectionType="INCLUDE"),
            INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (
            _projected(ProjectionType="INCLUDE", NonKeyAttributes=["x", "x"]),
            INVALID + "Duplicate element in NonKeyAttributes: x",
        ),
        (
            _projected(ProjectionType="hi"),
            (
                "1 validation error detected: Value 'hi' at "
                "'globalSecondaryIndexes.1.member.projection.projectionType' failed to satisfy constraint: "
                "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]"
            ),
        ),
        (
            _projected(ProjectionType="INCLUDE", NonKeyAttributes=[]),
            (
                "1 validation error detected: Value '[]' at "
                "'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        (
            _projected(ProjectionType="INCLUDE", NonKeyAttributes=_ALPHABET + ["x"] * 11),
            (
                f"1 validation error detected: Value '[{', '.join(_ALPHABET + ['x'] * 11)}]' at "
                "'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy constraint: "
                "Member must have length less than or equal to 20"
            ),
        ),
        # Streams, encryption, tags
        (
            _table(
                "a", key=_HASH, StreamSpecification={"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}
            ),
            INVALID + "Table is being created with a stream disabled, UpdateViewType should not be specified",
        ),
        (
            _table("a", key=_HASH, StreamSpecification={"StreamEnabled": True}),
            INVALID + "Table is being created with a stream enabled, UpdateViewType is required",
        ),
        (
            _table("a", key=_HASH, StreamSpecification={"StreamEnabled": True, "StreamViewType": "hi"}),
            (
                "1 validation error detected: Value 'hi' at 'streamSpecification.streamViewType' failed to satisfy "
                "constraint: Member must satisfy enum value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]"
            ),
        ),
        (
            _table("a", key=_HASH, SSESpecification={"Enabled": False, "SSEType": "KMS"}),
            INVALID + "SSEType can not be specified if Enabled is false",
        ),
        (
            _table("a", key=_HASH, SSESpecification={"Enabled": False, "KMSMasterKeyId": "k"}),
            INVALID + "KMSMasterKeyId can not be specified if Enabled is false",
        ),
        (
            _table("a", key=_HASH, SSESpecification={"Enabled": True, "SSEType": "AES256"}),
            INVALID + "SSEType AES256 is not supported",
        ),
        (
            _table("a", key=_HASH, SSESpecification={"Enabled": True, "KMSMasterKeyId": "k"}),
            INVALID + "SSEType KMS is required if KMSMasterKeyId is specified",
        ),
        (
            _table("a", key=_HASH, SSESpecification={"SSEType": "kms"}),
            (
                "1 validation error detected: Value 'kms' at 'sSESpecification.sSEType' failed to satisfy constraint: "
                "Member must satisfy enum value set: [AES256, KMS]"
            ),
        ),
        (
            _table("a", key=_HASH, Tags=[{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}]),
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k",
        ),
        # Enums and counts of the members themselves
        (
            _table("a", key=_schema("a INVALID")),
            (
                "1 validation error detected: Value 'INVALID' at 'keySchema.1.member.keyType' failed to satisfy "
                "constraint: Member must satisfy enum value set: [HASH, RANGE]"
            ),
        ),
        (
            _table(key=_HASH, AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "SS"}]),
            (
                "1 validation error detected: Value 'SS' at 'attributeDefinitions.1.member.attributeType' failed to "
                "satisfy constraint: Member must satisfy enum value set: [B, N, S]"
            ),
        ),
        (
            _table("a", key=_HASH, BillingMode="hi"),
            (
                "1 validation error detected: Value 'hi' at 'billingMode' failed to satisfy constraint: "
                "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"
            ),
        ),
        (
            _table("a", key=_HASH, TableClass="hi"),
            (
                "Invalid table-class parameter provided. Please try again with a valid table-class value: "
                "[STANDARD, STANDARD_INFREQUENT_ACCESS]."
            ),
        ),
        (
            _table("a", "b", "c", key=_schema("a HASH", "b RANGE", "c RANGE")),
            (
                "1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), "
                "KeySchemaElement(attributeName=b, keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]' "
                "at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"
            ),
        ),
        (
            _local(_index("lsi", "a HASH", "b RANGE", "c RANGE"), names="abc"),
            (
                "1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), "
                "KeySchemaElement(attributeName=b, keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]' "
                "at 'localSecondaryIndexes.1.member.keySchema' failed to satisfy constraint: "
                "Member must have length less than or equal to 2"
            ),
        ),
    ],
)
def test_a_table_that_dynamodb_does_not_make_is_refused(request_: dict[str, Any], text: str) -> None:
    """Every rule of CreateTable has its sentence."""
    assert refusal("CreateTable", request_) == text


def test_all_indexes_together_name_no_more_than_a_hundred_attributes() -> None:
    """Twenty an index, a hundred over all of them."""
    indexes = [
        _index(
            f"gsi{place}",
            "b HASH",
            Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": [f"x{n}" for n in range(20)]},
        )
        for place in range(6)
    ]

    assert len(parse_request("CreateTable", _global(*indexes[:5])).global_secondary_indexes) == 5
    assert "NonKeyAttributes" in refusal("CreateTable", _global(*indexes))


@pytest.mark.parametrize(
    "request_",
    [
        _table("a", key=_HASH),
        _table(
            "a", "b", key=_PAIR, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        ),
        _table("a", key=_HASH, BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS),
        _table("a", key=_HASH, SSESpecification={}, TableClass="STANDARD", Tags=[{"Key": "k", "Value": ""}]),
        _table("a", key=_HASH, StreamSpecification={"StreamEnabled": False}),
        _local(*(_index(f"ls{place}", "a HASH", "b RANGE") for place in range(5))),
        _global(*(_index(f"gsi{place}", "b HASH", "a RANGE") for place in range(20))),
        _global(_index("gsi", "a HASH", "b HASH")),
        _global(
            _index("gsi", *(f"{n} HASH" for n in "abcd"), *(f"{n} RANGE" for n in "efgh")), names="abcdefgh"
        ),
        _projected(ProjectionType="INCLUDE", NonKeyAttributes=["x", "y"]),
    ],
)
def test_a_sound_table_is_taken(request_: dict[str, Any]) -> None:
    """A global index may have up to four hash and four range attributes."""
    for wording in ("current", "classic", "modern"):
        assert parse_request("CreateTable", request_, wording).table_name == "abc"


def _change(**more: Any) -> dict[str, Any]:
    return {"TableName": "abc", **more}


def _changes(*updates: dict[str, Any], **more: Any) -> dict[str, Any]:
    return _change(GlobalSecondaryIndexUpdates=list(updates), AttributeDefinitions=_defined("a"), **more)


_NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
    "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)
_GIVEN = "1000000000001"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (_change(), _NOTHING),
        (_changes(), _NOTHING),
        (
            _change(BillingMode="PROVISIONED"),
            INVALID + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        ),
        (
            _change(BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=_UNITS),
            INVALID + "ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
        ),
        (
            _change(ProvisionedThroughput=_UNITS | {"ReadCapacityUnits": int(_GIVEN)}),
            f"Given value {_GIVEN} for ReadCapacityUnits is out of bounds",
        ),
        (
            _change(
                BillingMode="PROVISIONED",
                ProvisionedThroughput=_UNITS,
                OnDemandThroughput={"MaxWriteRequestUnits": 5},
            ),
            INVALID
            + "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED",
        ),
        (
            _change(OnDemandThroughput={"MaxReadRequestUnits": -2}),
            INVALID
            + "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        ),
        (
            _changes({}),
            INVALID
            + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
            + "GlobalSecondaryIndexUpdate.Delete must not be null",
        ),
        (
            _changes({"Delete": {"IndexName": "gsi"}}, {"Delete": {"IndexName": "gsi"}}),
            INVALID
            + "Only one global secondary index update per index is allowed simultaneously. Index: gsi",
        ),
        (
            _changes({"Delete": {"IndexName": "gsi"}, "Create": _index("gsj", "a HASH")}),
            INVALID
            + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
        ),
        (
            _changes(
                {
                    "Update": {
                        "IndexName": "gsi",
                        "ProvisionedThroughput": _UNITS | {"WriteCapacityUnits": int(_GIVEN)},
                    }
                }
            ),
            f"Given value {_GIVEN} for WriteCapacityUnits is out of bounds for index gsi",
        ),
        (
            _change(GlobalSecondaryIndexUpdates=[{"Create": _index("gsi", "a HASH")}]),
            INVALID + "AttributeDefinitions is not specified for index: gsi",
        ),
        (_changes({"Create": _index("gsi", "a RANGE")}), _FIRST),
        (_changes({"Create": _index("gsi", "a HASH", "b RANGE", "c HASH")}), _ORDER),
        (
            _changes({"Create": _index("gsi", "a HASH", Projection={})}),
            INVALID + "Unknown ProjectionType: null",
        ),
        (
            _changes({"Update": {}}),
            (
                "1 validation error detected: Value null at 'globalSecondaryIndexUpdates.1.member.update.indexName' "
                "failed to satisfy constraint: Member must not be null"
            ),
        ),
        (
            _changes({"Delete": {"IndexName": "a;"}}),
            (
                "2 validation errors detected: Value 'a;' at 'globalSecondaryIndexUpdates.1.member.delete.indexName' "
                "failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; "
                "Value 'a;' at 'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint: "
                "Member must have length greater than or equal to 3"
            ),
        ),
        (
            _change(StreamSpecification={"StreamEnabled": True}),
            INVALID + "If stream is being enabled then UpdateViewType is required",
        ),
        (
            _change(StreamSpecification={"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}),
            INVALID + "If stream is being disabled, then UpdateViewType must not be specified",
        ),
    ],
)
def test_a_change_that_no_table_could_take_is_refused(request_: dict[str, Any], text: str) -> None:
    """What needs the table as it stands is left to the engine."""
    assert refusal("UpdateTable", request_) == text


def test_indexes_come_and_go_one_at_a_time() -> None:
    """AWS calls a second one a limit, not a mistake."""
    raised = fault(
        "UpdateTable", _changes({"Delete": {"IndexName": "gsi"}}, {"Create": _index("gsj", "a HASH")})
    )

    assert isinstance(raised, LimitExceededFault)
    assert raised.message == (
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
    )


@pytest.mark.parametrize(
    "request_",
    [
        _change(BillingMode="PAY_PER_REQUEST"),
        _change(ProvisionedThroughput=_UNITS),
        _change(DeletionProtectionEnabled=False),
        _change(TableClass="STANDARD"),
        _change(StreamSpecification={"StreamEnabled": False}),
        _change(OnDemandThroughput={"MaxReadRequestUnits": -1}),
        _changes({"Create": _index("gsi", "a HASH")}),
        _changes({"Update": {"IndexName": "gsi", "ProvisionedThroughput": _UNITS}}),
        _changes({"Delete": {"IndexName": "gsi"}}),
    ],
)
def test_a_sound_change_is_taken(request_: dict[str, Any]) -> None:
    """One thing to change is enough."""
    assert parse_request("UpdateTable", request_).table_name == "abc"


def test_the_engine_asks_for_definitions_with_the_tables_own() -> None:
    """A key of a new index may use an attribute that the table has defined before."""
    schema = parse_request("UpdateTable", _changes({"Create": _index("gsi", "a HASH", "b RANGE")}))
    key = schema.global_secondary_index_updates[0].create.key_schema

    check_keys_defined(key, ["a", "b"])
    with pytest.raises(ValidationFault, match=r"Keys: \[a, b\], AttributeDefinitions: \[a\]"):
        check_keys_defined(key, ["a"])
