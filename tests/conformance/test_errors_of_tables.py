"""Refusals of the control plane, each with AWS's whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.backends import ACCOUNT, REGION, Answer
from tests.conformance.requests import OOM, definitions, index, schema, table_request
from tests.conformance.sentences import HASH, MISSING, MULTI, TABLE, Row, check, member, rows

pytestmark = pytest.mark.usefixtures("sentences")

_NEW = "sentences-new"
_PATTERN = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
_UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
_NULL = "Member must not be null"
_INITIAL = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)


def _names() -> Iterator[Row]:
    for operation in ("CreateTable", "DescribeTable", "DeleteTable", "UpdateTable", "DescribeTimeToLive"):
        yield Row(
            "no name",
            operation,
            {},
            "The parameter 'TableName' is required but was not present in the request",
        )
    for operation in ("DescribeTable", "DeleteTable", "DescribeTimeToLive"):
        for id, name, rule in (
            ("short name", "ab", "greater than or equal to 3"),
            ("long name", "a" * 256, "less than or equal to 255"),
        ):
            result = member("tableName", f"Member must have length {rule}", value=f"'{name}'")
            yield Row(id, operation, {"TableName": name}, result)
        yield Row("bad name", operation, {"TableName": "abc;"}, member("tableName", _PATTERN, value="'abc;'"))
        yield Row(
            "missing table",
            operation,
            {"TableName": MISSING},
            f"Requested resource not found: Table: {MISSING} not found",
            code="ResourceNotFoundException",
        )
    yield Row(
        "short name",
        "CreateTable",
        table_request("ab", "pk"),
        member("tableName", "Member must have length greater than or equal to 3", value="'ab'"),
    )
    yield Row(
        "bad name", "CreateTable", table_request("abc;", "pk"), member("tableName", _PATTERN, value="'abc;'")
    )
    yield Row(
        "missing table",
        "UpdateTable",
        {"TableName": MISSING, "DeletionProtectionEnabled": True},
        f"Requested resource not found: Table: {MISSING} not found",
        code="ResourceNotFoundException",
    )
    for limit, rule in ((0, "greater than or equal to 1"), (101, "less than or equal to 100")):
        yield Row(
            f"limit {limit}",
            "ListTables",
            {"Limit": limit},
            member("limit", f"Member must have value {rule}", value=f"'{limit}'"),
        )


def _create(id: str, result: str, keys: str = "pk", code: str = "ValidationException", **rest: Any) -> Row:
    request = {name: value for name, value in table_request(_NEW, keys, **rest).items() if value is not ...}
    return Row(id, "CreateTable", request, result, code)


def _schemas() -> Iterator[Row]:
    yield _create("no definitions", member("attributeDefinitions", _NULL), AttributeDefinitions=...)
    yield _create("no schema", member("keySchema", _NULL), KeySchema=...)
    yield _create(
        "empty schema",
        member("keySchema", "Member must have length greater than or equal to 1", value="'[]'"),
        KeySchema=[],
    )
    yield _create(
        "three keys",
        member(
            "keySchema",
            "Member must have length less than or equal to 2",
            value="'[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, keyType=RANGE), "
            "KeySchemaElement(attributeName=c, keyType=RANGE)]'",
        ),
        keys="a b c",
    )
    yield _create(
        "bad key type",
        member(
            "keySchema.1.member.keyType",
            "Member must satisfy enum value set: [HASH, RANGE]",
            value="'INVALID'",
        ),
        KeySchema=[{"AttributeName": "pk", "KeyType": "INVALID"}],
    )
    yield _create(
        "bad attribute type",
        member(
            "attributeDefinitions.1.member.attributeType",
            "Member must satisfy enum value set: [B, N, S]",
            value="'SS'",
        ),
        keys="pk:SS",
    )
    yield _create(
        "bad billing mode",
        member(
            "billingMode",
            "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
            value="'FREE'",
        ),
        BillingMode="FREE",
    )
    yield _create(
        "bad class",
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS].",
        TableClass="FIRST",
    )
    yield _create(
        "first not hash",
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        KeySchema=[{"AttributeName": "pk", "KeyType": "RANGE"}],
    )
    yield _create(
        "second not range",
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        AttributeDefinitions=definitions("a b"),
        KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "HASH"}],
    )
    yield _create(
        "hash and range of one name",
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        AttributeDefinitions=definitions("pk sk"),
        KeySchema=schema("pk pk"),
    )
    yield _create(
        "range not defined",
        "Invalid KeySchema: Some index key attribute have no definition",
        keys="a b",
        AttributeDefinitions=definitions("a"),
    )
    yield _create(
        "hash not defined",
        f"{OOM}Some index key attributes are not defined in AttributeDefinitions. Keys: [pk], "
        "AttributeDefinitions: [b]",
        AttributeDefinitions=definitions("b"),
    )
    yield _create(
        "unused definition",
        f"{OOM}Number of attributes in KeySchema does not exactly match number of attributes defined in "
        "AttributeDefinitions",
        AttributeDefinitions=definitions("pk b"),
    )
    yield _create(
        "unused definition with an index",
        f"{OOM}Some AttributeDefinitions are not used. AttributeDefinitions: [pk, a, b], keys used: [pk, a]",
        gsi={"by-a": "a"},
        AttributeDefinitions=definitions("pk a b"),
    )


def _throughput() -> Iterator[Row]:
    yield _create(
        "provisioned without units",
        f"{OOM}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        BillingMode="PROVISIONED",
    )
    yield _create(
        "no mode and no units",
        f"{OOM}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        BillingMode=...,
    )
    yield _create(
        "units on demand",
        f"{OOM}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST",
        ProvisionedThroughput=_UNITS,
    )
    yield _create(
        "index units on demand",
        f"{OOM}ProvisionedThroughput should not be specified for index: by-a when BillingMode is PAY_PER_REQUEST",
        AttributeDefinitions=definitions("pk a"),
        GlobalSecondaryIndexes=[{**index("by-a", "a"), "ProvisionedThroughput": _UNITS}],
    )
    yield _create(
        "index without units",
        f"{OOM}ProvisionedThroughput is not specified for index: by-a",
        gsi={"by-a": "a"},
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    )
    rule = "failed to satisfy constraint: Member must have value greater than or equal to 1"
    yield _create(
        "units below 1",
        f"2 validation errors detected: Value '-1' at 'provisionedThroughput.writeCapacityUnits' {rule}; "
        f"Value '0' at 'provisionedThroughput.readCapacityUnits' {rule}",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 0, "WriteCapacityUnits": -1},
    )
    yield _create(
        "units beyond all",
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 1_000_000_000_001, "WriteCapacityUnits": 1},
    )
    yield _create(
        "maximum when provisioned",
        f"{OOM}MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is "
        "PROVISIONED.",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
        OnDemandThroughput={"MaxReadRequestUnits": 5},
    )
    yield _create(
        "maximum out of range",
        f"{OOM}Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        OnDemandThroughput={"MaxReadRequestUnits": 0},
    )
    yield _create(
        "little warm throughput",
        f"{OOM}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for "
        f"OnDemand. See: {_INITIAL}",
        WarmThroughput={"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 4_000},
    )
    yield _create(
        "disabled stream with a view",
        f"{OOM}Table is being created with a stream disabled, UpdateViewType should not be specified",
        StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"},
    )


def _local(keys: str, projection: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    made = index("by-l", keys)
    return [made if projection is None else {**made, "Projection": projection}]


def _indexes() -> Iterator[Row]:
    yield _create(
        "no local index",
        f"{OOM}List of LocalSecondaryIndexes is empty",
        keys="pk sk",
        LocalSecondaryIndexes=[],
    )
    yield _create(
        "no global index", f"{OOM}List of GlobalSecondaryIndexes is empty", GlobalSecondaryIndexes=[]
    )
    yield _create(
        "local on a hash table",
        f"{OOM}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        lsi={"by-l": "pk l"},
    )
    yield _create(
        "local without range",
        f"{OOM}Index KeySchema does not have a range key for index: by-l",
        keys="pk sk",
        lsi={"by-l": "pk"},
    )
    yield _create(
        "local of another hash",
        f"{OOM}Index KeySchema does not have the same leading hash key as table KeySchema for index: by-l. "
        "index hash key: sk, table hash key: pk",
        keys="pk sk",
        lsi={"by-l": "sk pk"},
    )
    both: dict[str, Any] = {"keys": "pk sk", "AttributeDefinitions": definitions("pk sk l")}

    def local(id: str, result: str, projection: dict[str, Any]) -> Row:
        return _create(id, result, **both, LocalSecondaryIndexes=_local("pk l", projection))

    path = "localSecondaryIndexes.1.member.projection"
    yield local("no projection type", f"{OOM}Unknown ProjectionType: null", {})
    yield local(
        "bad projection type",
        member(
            f"{path}.projectionType",
            "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
            value="'abc'",
        ),
        {"ProjectionType": "abc"},
    )
    yield local(
        "no names",
        member(
            f"{path}.nonKeyAttributes", "Member must have length greater than or equal to 1", value="'[]'"
        ),
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": []},
    )
    for kind in ("ALL", "KEYS_ONLY"):
        yield local(
            f"names with {kind}",
            f"{OOM}ProjectionType is {kind}, but NonKeyAttributes is specified",
            {"ProjectionType": kind, "NonKeyAttributes": ["x"]},
        )
    yield local(
        "include nothing",
        f"{OOM}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        {"ProjectionType": "INCLUDE"},
    )
    yield _create(
        "duplicate name",
        f"{OOM}Duplicate index name: same",
        keys="pk sk",
        AttributeDefinitions=definitions("pk sk l a"),
        LocalSecondaryIndexes=[index("same", "pk l")],
        GlobalSecondaryIndexes=[index("same", "a")],
    )
    yield _create(
        "six local indexes",
        f"{OOM}Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        keys="pk sk",
        lsi={f"by-l{number}": f"pk l{number}" for number in range(6)},
    )
    yield _create(
        "21 global indexes",
        f"{OOM}GlobalSecondaryIndex count exceeds the per-table limit of 20",
        gsi={f"by-a{number}": f"a{number}" for number in range(21)},
    )
    short = "failed to satisfy constraint: Member must have length greater than or equal to 3"
    yield _create(
        "short index names",
        f"2 validation errors detected: Value 'g1' at 'globalSecondaryIndexes.1.member.indexName' {short}; "
        f"Value 'l1' at 'localSecondaryIndexes.1.member.indexName' {short}",
        keys="pk sk",
        gsi={"g1": "a"},
        lsi={"l1": "pk l"},
    )
    yield _create(
        "three keys of a local index",
        member(
            "localSecondaryIndexes.1.member.keySchema",
            "Member must have length less than or equal to 2",
            value="'[KeySchemaElement(attributeName=pk, keyType=HASH), KeySchemaElement(attributeName=l, keyType=RANGE), "
            "KeySchemaElement(attributeName=m, keyType=RANGE)]'",
        ),
        keys="pk sk",
        lsi={"by-l": "pk l m"},
    )
    yield Row(
        "table exists",
        "CreateTable",
        table_request(TABLE, "pk"),
        f"Table already exists: {TABLE}",
        code="ResourceInUseException",
    )


def _updates() -> Iterator[Row]:
    def update(
        id: str, result: str, code: str = "ValidationException", table: str = TABLE, **rest: Any
    ) -> Row:
        return Row(id, "UpdateTable", {"TableName": table, **rest}, result, code)

    yield update(
        "nothing",
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
        "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
        "MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is "
        "required",
    )
    yield update(
        "provisioned without units",
        f"{OOM}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        BillingMode="PROVISIONED",
    )
    yield update(
        "empty index update",
        f"{OOM}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
        "GlobalSecondaryIndexUpdate.Delete must not be null",
        GlobalSecondaryIndexUpdates=[{}],
    )
    delete = {"Delete": {"IndexName": "by-a"}}
    yield update(
        "one index twice",
        f"{OOM}Only one global secondary index update per index is allowed simultaneously. Index: by-a",
        GlobalSecondaryIndexUpdates=[delete, delete],
    )
    yield update(
        "two deletes",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
        code="LimitExceededException",
        GlobalSecondaryIndexUpdates=[delete, {"Delete": {"IndexName": "by-c"}}],
    )
    yield update(
        "create an existing index",
        "Attempting to create an index which already exists",
        AttributeDefinitions=definitions("a"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by-a", "a")}],
    )
    yield update(
        "delete an unknown index",
        f"Requested resource not found: Index nobody for table {TABLE}",
        code="ResourceNotFoundException",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "nobody"}}],
    )
    yield update(
        "attribute of another type",
        f"{OOM}Attributes cannot be redefined. Please check that your attribute has the same type as previously "
        "defined. Existing schema: Schema:[SchemaElement: key{pk:S:HASH}] "
        "New schema: Schema:[SchemaElement: key{pk:N:HASH}]",
        table=HASH,
        AttributeDefinitions=definitions("pk:N"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by-pk", "pk")}],
    )


_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/"


def _tags_and_ttl() -> Iterator[Row]:
    arn = _ARN + TABLE
    tags = [{"Key": "k", "Value": "v"}]
    yield Row("no tags", "TagResource", {"ResourceArn": arn}, member("tags", _NULL))
    yield Row(
        "empty tags",
        "TagResource",
        {"ResourceArn": arn, "Tags": []},
        "Atleast one Tag needs to be provided as Input.",
    )
    yield Row(
        "empty keys",
        "UntagResource",
        {"ResourceArn": arn, "TagKeys": []},
        "Atleast one Tag Key needs to be provided as Input.",
    )
    yield Row("no arn", "TagResource", {"Tags": tags}, "Invalid TableArn")
    for operation, rest in (
        ("TagResource", {"Tags": tags}),
        ("UntagResource", {"TagKeys": ["k"]}),
        ("ListTagsOfResource", {}),
    ):
        yield Row(
            "malformed arn",
            operation,
            {"ResourceArn": "abcd", **rest},
            f"{OOM}ARNs must start with 'arn:': abcd",
        )
        other = f"arn:aws:dynamodb:eu-west-3:{ACCOUNT}:table/{TABLE}"
        yield Row(
            "arn of another region",
            operation,
            {"ResourceArn": other, **rest},
            f"Invalid TableArn: Invalid ResourceArn provided as input {other}",
        )
        backup = f"{arn}/backup/01700000000000-abcdef01"
        yield Row(
            "arn of a backup",
            operation,
            {"ResourceArn": backup, **rest},
            f"{OOM}Provided Arn is not a DynamoDB resource arn: {backup}",
        )
        stream = f"{arn}/stream/2026-10-09T00:29:04.041"
        yield Row(
            "arn of a stream",
            operation,
            {"ResourceArn": stream, **rest},
            f"Requested resource not found: ResourceArn: {stream} not found",
            code="ResourceNotFoundException",
        )
        yield Row(
            "missing table",
            operation,
            {"ResourceArn": _ARN + MISSING, **rest},
            f"Requested resource not found: ResourceArn: {_ARN}{MISSING} not found",
            code="ResourceNotFoundException",
        )
        yield Row(
            "arn of an index",
            operation,
            {"ResourceArn": f"{arn}/index/by-a", **rest},
            f"{OOM}Invalid resource arn provided, only table or stream is accepted. "
            f"Provided resource arn: {arn}/index/by-a",
        )
    yield Row(
        "empty attribute",
        "UpdateTimeToLive",
        {"TableName": TABLE, "TimeToLiveSpecification": {"AttributeName": "", "Enabled": True}},
        member(
            "timeToLiveSpecification.attributeName",
            "Member must have length greater than or equal to 1",
            value="''",
        ),
    )
    yield Row(
        "disable when off",
        "UpdateTimeToLive",
        {"TableName": MULTI, "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": False}},
        "TimeToLive is already disabled",
    )


@rows(_names())
def test_names_of_tables(send_raw: Callable[..., Answer], row: Row) -> None:
    """The control plane checks a table's name first and alone, and names a table that it cannot find."""
    check(send_raw, row)


@rows(_schemas())
def test_key_schemas(send_raw: Callable[..., Answer], row: Row) -> None:
    """A table has a hash attribute and perhaps a range attribute, each defined, none defined in vain."""
    check(send_raw, row)


@rows(_throughput())
def test_throughput_and_streams(send_raw: Callable[..., Answer], row: Row) -> None:
    """A billing mode and the provisioned units must fit each other."""
    check(send_raw, row)


@rows(_indexes())
def test_index_definitions(send_raw: Callable[..., Answer], row: Row) -> None:
    """An index has keys, a projection and a distinct name, and a table has a limited number."""
    check(send_raw, row)


@rows(_updates())
def test_table_updates(send_raw: Callable[..., Answer], row: Row) -> None:
    """An update changes something, and one index at a time."""
    check(send_raw, row)


@rows(_tags_and_ttl())
def test_tags_and_time_to_live(send_raw: Callable[..., Answer], row: Row) -> None:
    """Tags hang on the ARN of a table that exists; time to live names an attribute."""
    check(send_raw, row)


def test_an_update_of_an_unknown_index(send_raw: Callable[..., Answer], tables: Callable[..., str]) -> None:
    """The units of a missing index cannot change."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)
    change = {"Update": {"IndexName": "nobody", "ProvisionedThroughput": _UNITS}}

    answer = send_raw("UpdateTable", {"TableName": table, "GlobalSecondaryIndexUpdates": [change]})

    assert (answer.code, answer.text) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Index nobody for table {table}",
    )


def test_a_maximum_of_a_provisioned_table(
    send_raw: Callable[..., Answer], tables: Callable[..., str]
) -> None:
    """Requests are limited on demand alone."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)

    answer = send_raw("UpdateTable", {"TableName": table, "OnDemandThroughput": {"MaxReadRequestUnits": 5}})

    assert answer.text == (
        f"{OOM}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is "
        "PROVISIONED"
    )


def test_an_index_whose_attribute_is_not_defined(
    send_raw: Callable[..., Answer], tables: Callable[..., str]
) -> None:
    """A new index brings the definitions of its attributes with it."""
    table = tables()
    create = {"GlobalSecondaryIndexUpdates": [{"Create": index("by-a", "a")}]}

    bare = send_raw("UpdateTable", {"TableName": table, **create})
    wrong = send_raw("UpdateTable", {"TableName": table, "AttributeDefinitions": definitions("b"), **create})

    assert {bare.code, wrong.code} == {"ValidationException"}


def test_tags_of_another_account(send_raw: Callable[..., Answer]) -> None:
    """An ARN of another account is not ours to tag."""
    arn = f"arn:aws:dynamodb:{REGION}:999999999999:table/{TABLE}"

    answer = send_raw("TagResource", {"ResourceArn": arn, "Tags": [{"Key": "k", "Value": "v"}]})

    assert (answer.code, answer.text) == ("AccessDeniedException", "Access is denied")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("a b c d e / r", ["HASH"]),
        ("a / r s t u v", ["RANGE"]),
        ("a a / r", ["same name"]),
    ],
)
def test_keys_of_too_many_attributes(send_raw: Callable[..., Answer], keys: str, words: list[str]) -> None:
    """An index has at most four hash and four range attributes, each once; AWS's words are known in part."""
    answer = send_raw("CreateTable", table_request(_NEW, "pk", gsi={"multi": keys}))

    assert answer.code == "ValidationException"
    assert [word for word in words if word not in (answer.text or "")] == []


def test_hash_attributes_precede_range_attributes(send_raw: Callable[..., Answer]) -> None:
    """A schema of several attributes lists every hash attribute before the first range attribute."""
    mixed = {
        **index("multi", "a"),
        "KeySchema": [
            {"AttributeName": "a", "KeyType": "HASH"},
            {"AttributeName": "r", "KeyType": "RANGE"},
            {"AttributeName": "b", "KeyType": "HASH"},
        ],
    }
    request = table_request(_NEW, "pk", GlobalSecondaryIndexes=[mixed])

    answer = send_raw("CreateTable", {**request, "AttributeDefinitions": definitions("pk a r b")})

    assert answer.code == "ValidationException"
    assert "HASH" in (answer.text or "")
    assert "precede" in (answer.text or "")
