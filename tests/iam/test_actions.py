"""Actions: what each operation asks for, on which resource, with which condition keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.iam import ACTIONS, AccessCheck, required_checks, unknown_actions
from tavola.iam.actions import PERMISSIONS
from tavola.protocol.operations import OPERATIONS
from tavola.protocol.requests import parse
from tests.iam.tables import ACCOUNT, ARN, SCOPE, STREAM, Tables, directory

GSI = f"{ARN}/index/ByOwner"
KEY = {"pk": {"S": "a"}, "sk": {"S": "1"}}
ABSENT = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Absent"


def _asked(operation: str, **request: Any) -> list[AccessCheck]:
    parsed = parse(operation, json.dumps(request).encode())
    return list(required_checks(operation, parsed, Tables(), SCOPE))


def _one(operation: str, **request: Any) -> AccessCheck:
    (access,) = _asked(operation, **request)
    return access


def _values(access: AccessCheck, **expected: tuple[str, ...]) -> None:
    found = {key: access.values(f"dynamodb:{key.lower()}") for key in expected}
    assert found == expected


def _pairs(operation: str, **request: Any) -> list[tuple[str, str]]:
    return [(each.action.removeprefix("dynamodb:"), each.resource) for each in _asked(operation, **request)]


def test_every_operation_is_known() -> None:
    """An operation that nobody has thought about could be done by everybody."""
    told = {action.removeprefix("dynamodb:") for action in ACTIONS} - set(PERMISSIONS)

    assert told == set(OPERATIONS)


def test_an_operation_that_nobody_has_thought_about_touches_everything() -> None:
    """Were one forgotten, only who may do everything could do it."""
    (access,) = required_checks("Forgotten", None, Tables(), SCOPE)

    assert (access.action, access.resource) == ("dynamodb:Forgotten", "*")


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.request])
def test_every_operation_reads_members_that_its_request_has(name: str) -> None:
    """Whatever names a resource in a request is asked for by the name that the request has for it."""
    shape: Any = OPERATIONS[name].request
    members = set(shape.__struct_fields__)

    class Probe:
        """Every member that the request has, and none that it has not."""

        def __getattr__(self, member: str) -> Any:
            assert member in members, f"{name} has no {member}"
            if member.endswith(("items", "statements", "tags")):
                return {} if member == "request_items" else []
            return None if member in ("index_name", "resource_policy") else Named()

    class Named(str):
        """A text that has a table's name, wherever one is looked for in it."""

        table_name = "Orders"

        def __new__(cls) -> Named:
            return super().__new__(cls, "Orders")

    if name != "ExecuteStatement":
        list(required_checks(name, Probe(), Tables(), SCOPE))


@pytest.mark.parametrize(
    ("operation", "request_", "action", "resource"),
    [
        ("GetItem", {"TableName": "Orders", "Key": KEY}, "GetItem", ARN),
        ("GetItem", {"TableName": ARN, "Key": KEY}, "GetItem", ARN),
        ("GetItem", {"TableName": "Absent", "Key": KEY}, "GetItem", ABSENT),
        ("ListItemVersions", {"TableName": "Orders", "Key": KEY}, "GetItem", ARN),
        ("PutItem", {"TableName": "Orders", "Item": KEY}, "PutItem", ARN),
        ("UpdateItem", {"TableName": "Orders", "Key": KEY}, "UpdateItem", ARN),
        ("DeleteItem", {"TableName": "Orders", "Key": KEY}, "DeleteItem", ARN),
        ("Scan", {"TableName": "Orders"}, "Scan", ARN),
        ("Scan", {"TableName": "Orders", "IndexName": "ByOwner"}, "Scan", GSI),
        ("DescribeTable", {"TableName": "Orders"}, "DescribeTable", ARN),
        ("DeleteTable", {"TableName": "Orders"}, "DeleteTable", ARN),
        ("ListTables", {}, "ListTables", "*"),
        ("DescribeLimits", {}, "DescribeLimits", "*"),
        ("ListBackups", {"TableName": "Orders"}, "ListBackups", "*"),
        ("ListStreams", {}, "ListStreams", "*"),
        ("ListStreams", {"TableName": "Orders"}, "ListStreams", f"{ARN}/stream/*"),
        ("DescribeStream", {"StreamArn": STREAM}, "DescribeStream", STREAM),
        ("GetRecords", {"ShardIterator": "an iterator"}, "GetRecords", STREAM),
        ("ListTagsOfResource", {"ResourceArn": ARN}, "ListTagsOfResource", ARN),
        ("TagResource", {"ResourceArn": STREAM, "Tags": [{"Key": "a", "Value": "b"}]}, "TagResource", ARN),
        ("GetResourcePolicy", {"ResourceArn": STREAM}, "GetResourcePolicy", STREAM),
        ("DescribeTable", {"TableName": ARN.replace("arn:aws:", "arn:aws-cn:")}, "DescribeTable", ARN),
        (
            "ListTagsOfResource",
            {"ResourceArn": ARN.replace("arn:aws:", "arn:aws-cn:")},
            "ListTagsOfResource",
            ARN,
        ),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "Orders"."ByOwner"'}, "PartiQLSelect", GSI),
        ("ExecuteStatement", {"Statement": "INSERT INTO Orders VALUE {'pk': 'a'}"}, "PartiQLInsert", ARN),
        (
            "ExecuteStatement",
            {"Statement": "UPDATE Orders SET n = 1 WHERE pk = 'a' AND sk = '1'"},
            "PartiQLUpdate",
            ARN,
        ),
        (
            "ExecuteStatement",
            {"Statement": "DELETE FROM Orders WHERE pk = 'a' AND sk = '1'"},
            "PartiQLDelete",
            ARN,
        ),
    ],
)
def test_an_operation_has_its_action_and_resource(
    operation: str, request_: dict[str, Any], action: str, resource: str
) -> None:
    """A permission is asked for on exactly what a request touches: the table, its index, its stream, or all."""
    assert _pairs(operation, **request_) == [(action, resource)]


def test_members_of_a_transaction_are_what_they_do() -> None:
    """There is no permission for a transaction; a condition check has one of its own."""
    condition = {"ConditionExpression": "attribute_exists(pk)"}
    where = {"TableName": "Orders"}
    asked = _asked(
        "TransactWriteItems",
        TransactItems=[
            {"Put": {**where, "Item": KEY}},
            {"Update": {**where, "Key": KEY, "UpdateExpression": "SET n = pk"}},
            {"Delete": {**where, "Key": KEY}},
            {"ConditionCheck": {**where, "Key": KEY, **condition}},
        ],
    )

    assert [each.action for each in asked] == [
        f"dynamodb:{name}" for name in ("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
    ]
    for each in asked:
        _values(each, EnclosingOperation=("TransactWriteItems",), LeadingKeys=("a",), ReturnValues=("NONE",))
    (read,) = _asked("TransactGetItems", TransactItems=[{"Get": {**where, "Key": KEY}}])
    assert read.action == "dynamodb:GetItem"
    _values(read, EnclosingOperation=("TransactGetItems",), Select=("ALL_ATTRIBUTES",))


def test_each_key_of_a_batch_is_decided_by_itself() -> None:
    """A batch is as many accesses as it has keys, on every table it names."""
    reads = _asked(
        "BatchGetItem",
        RequestItems={"Orders": {"Keys": [KEY, {**KEY, "pk": {"S": "b"}}]}, "Absent": {"Keys": [KEY]}},
    )
    writes = _asked(
        "BatchWriteItem",
        RequestItems={
            "Orders": [{"PutRequest": {"Item": {**KEY, "n": {"N": "1"}}}}, {"DeleteRequest": {"Key": KEY}}]
        },
        ReturnConsumedCapacity="TOTAL",
    )

    assert [(each.resource, each.values("dynamodb:leadingkeys")) for each in reads] == [
        (ARN, ("a",)),
        (ARN, ("b",)),
        (ABSENT, ()),
    ]
    _values(writes[0], Attributes=("pk", "sk", "n"), ReturnConsumedCapacity=("TOTAL",))
    _values(writes[1], Attributes=("pk", "sk"), LeadingKeys=("a",))


def test_a_key_is_compared_in_its_canonical_form() -> None:
    """The same number in another writing is the same key; what AWS passes over is passed over here."""
    tables = Tables()
    tables.known = type(tables.known)(arn=ARN, hash="n", range=None, types={"n": "N"}, indexes={})

    def leading(key: dict[str, Any]) -> tuple[str, ...]:
        request = parse("GetItem", json.dumps({"TableName": "Orders", "Key": {"n": key}}).encode())
        (access,) = required_checks("GetItem", request, tables, SCOPE)
        return access.values("dynamodb:leadingkeys")

    assert leading({"N": "1.50"}) == leading({"N": "15e-1"}) == leading({"N": "+01.5"}) == ("1.5",)
    assert leading({"N": "7", "S": None}) == ("7",)
    assert leading({"B": "AAE="}) == ("AAE=",)
    assert leading({"L": []}) == leading({"N": "x"}) == leading({}) == ()


@pytest.mark.parametrize(
    ("request_", "leading"),
    [
        ({"KeyConditionExpression": "pk = :v"}, ("a",)),
        ({"KeyConditionExpression": ":v = pk AND begins_with(sk, :w)"}, ("a",)),
        ({"KeyConditionExpression": "#p = :v", "ExpressionAttributeNames": {"#p": "pk"}}, ("a",)),
        ({"KeyConditionExpression": "pk > :v"}, ()),
        ({"KeyConditionExpression": "sk = :v"}, ()),
        ({"KeyConditionExpression": "not an expression"}, ()),
        ({"KeyConditionExpression": "whose = :v", "IndexName": "ByOwner"}, ("a",)),
        ({"KeyConditionExpression": "pk = :v", "IndexName": "ByOwner"}, ()),
        ({"KeyConditionExpression": "pk = :v", "IndexName": "Nowhere"}, ()),
        (
            {
                "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
                "ExpressionAttributeValues": None,
            },
            ("a",),
        ),
    ],
)
def test_a_query_leads_with_what_its_key_condition_gives(
    request_: dict[str, Any], leading: tuple[str, ...]
) -> None:
    """The partition key of the table or the index, however it is written; nothing where a query will be refused."""
    given = {"TableName": "Orders", "ExpressionAttributeValues": {":v": {"S": "a"}, ":w": {"S": "b"}}}

    access = _one("Query", **{k: v for k, v in {**given, **request_}.items() if v is not None})

    _values(access, LeadingKeys=leading, FirstPartitionKeyValues=leading)


def test_a_key_of_several_attributes_has_several_leading_values() -> None:
    """The second to fourth attributes have condition keys of their own."""
    access = _one(
        "Query",
        TableName="Orders",
        IndexName="BySite",
        KeyConditionExpression="site = :s AND #d = :d",
        ExpressionAttributeNames={"#d": "day"},
        ExpressionAttributeValues={":s": {"S": "x"}, ":d": {"N": "7.0"}},
    )

    _values(
        access,
        LeadingKeys=("x",),
        FirstPartitionKeyValues=("x",),
        SecondPartitionKeyValues=("7",),
        ThirdPartitionKeyValues=(),
        FourthPartitionKeyValues=(),
    )


def test_attributes_are_all_that_a_request_names() -> None:
    """Keys, items, projections, conditions and updates; top-level names only, in new parameters and old."""
    update = _one(
        "UpdateItem",
        TableName="Orders",
        Key=KEY,
        UpdateExpression="SET a.b = :v, #c = if_not_exists(d, :v) REMOVE e[0]",
        ConditionExpression="f = :v",
        ExpressionAttributeNames={"#c": "c"},
        ExpressionAttributeValues={":v": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    old = _one(
        "UpdateItem",
        TableName="Orders",
        Key=KEY,
        AttributeUpdates={"a": {"Action": "DELETE"}},
        Expected={"b": {"Exists": False}},
    )
    scan = _one(
        "Scan", TableName="Orders", ProjectionExpression="a.b, c", FilterExpression="attribute_exists(d)"
    )

    assert set(update.values("dynamodb:attributes")) == {"pk", "sk", "a", "c", "d", "e", "f"}
    assert set(old.values("dynamodb:attributes")) == {"pk", "sk", "a", "b"}
    assert set(scan.values("dynamodb:attributes")) == {"a", "c", "d"}
    _values(update, ReturnValues=("UPDATED_NEW",), Select=())


@pytest.mark.parametrize(
    ("operation", "request_", "select"),
    [
        ("GetItem", {"Key": KEY}, "ALL_ATTRIBUTES"),
        ("GetItem", {"Key": KEY, "ProjectionExpression": "a"}, "SPECIFIC_ATTRIBUTES"),
        ("GetItem", {"Key": KEY, "AttributesToGet": ["a"]}, "SPECIFIC_ATTRIBUTES"),
        ("Scan", {}, "ALL_ATTRIBUTES"),
        ("Scan", {"IndexName": "ByOwner"}, "ALL_PROJECTED_ATTRIBUTES"),
        ("Scan", {"Select": "COUNT"}, "COUNT"),
        ("Scan", {"ProjectionExpression": "a"}, "SPECIFIC_ATTRIBUTES"),
    ],
)
def test_what_is_selected_is_told_also_by_default(
    operation: str, request_: dict[str, Any], select: str
) -> None:
    """A read that does not say what it selects selects something nevertheless."""
    _values(_one(operation, TableName="Orders", **request_), Select=(select,))


def test_an_image_of_a_failure_is_an_image() -> None:
    """Whoever may not see the old item may not see it by way of a condition that fails."""
    put = _one(
        "PutItem",
        TableName="Orders",
        Item=KEY,
        ConditionExpression="attribute_exists(pk)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )

    _values(put, ReturnValues=("ALL_OLD",))
    _values(
        _one("DeleteItem", TableName="Orders", Key=KEY, ReturnValues="ALL_OLD"), ReturnValues=("ALL_OLD",)
    )
    _values(_one("DeleteItem", TableName="Orders", Key=KEY), ReturnValues=("NONE",))


def test_a_statement_is_told_by_what_it_does() -> None:
    """The keys that it gives, the attributes it names, what it selects, and whether it scans."""
    select = _one(
        "ExecuteStatement",
        Statement="SELECT a, b.c FROM Orders WHERE pk = ? AND d > 1",
        Parameters=[{"S": "x"}],
    )
    scan = _one("ExecuteStatement", Statement="SELECT * FROM Orders WHERE d = 1")
    update = _one(
        "ExecuteStatement",
        Statement="UPDATE Orders SET n = 1 WHERE pk = 'a' AND sk = '1' RETURNING MODIFIED OLD *",
    )
    several = _asked("ExecuteStatement", Statement="SELECT * FROM Orders WHERE pk IN ['a', 'b'] AND sk = '1'")

    _values(select, LeadingKeys=("x",), FullTableScan=("false",), Select=("SPECIFIC_ATTRIBUTES",))
    assert set(select.values("dynamodb:attributes")) == {"a", "b", "d", "pk"}
    _values(scan, LeadingKeys=(), FullTableScan=("true",), Select=("ALL_ATTRIBUTES",))
    _values(update, LeadingKeys=("a",), ReturnValues=("UPDATED_OLD",), FullTableScan=())
    assert [each.values("dynamodb:leadingkeys") for each in several] == [("a",), ("b",)]


def test_statements_of_a_transaction_say_so() -> None:
    """ExecuteTransaction encloses its statements; what cannot be parsed touches nothing."""
    asked = _asked(
        "ExecuteTransaction",
        TransactStatements=[
            {"Statement": "SELECT * FROM Orders WHERE pk = 'a' AND sk = '1'"},
            {"Statement": "no statement at all"},
        ],
    )

    assert [each.action for each in asked] == ["dynamodb:PartiQLSelect"]
    _values(asked[0], EnclosingOperation=("ExecuteTransaction",))


def test_a_new_table_may_ask_for_more() -> None:
    """Tags and a policy that a table is made with need the permissions to put them."""
    request: dict[str, Any] = {
        "TableName": "New",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    new = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/New"
    tagged = _asked("CreateTable", **request, Tags=[{"Key": "Team", "Value": "red"}], ResourcePolicy="{}")

    assert _pairs("CreateTable", **request) == [("CreateTable", new)]
    assert [each.action.removeprefix("dynamodb:") for each in tagged] == [
        "CreateTable",
        "TagResource",
        "PutResourcePolicy",
    ]
    assert tagged[0].values("aws:requesttag/team") == ("red",)
    assert tagged[0].values("aws:tagkeys") == ("Team",)


def test_tags_are_those_of_the_request_and_of_the_resource() -> None:
    """A table's own tags have no case in their keys; the keys that are taken away are told too."""
    untag = _one("UntagResource", ResourceArn=ARN, TagKeys=["a", "b"])

    assert untag.values("aws:tagkeys") == ("a", "b")
    assert untag.values("aws:resourcetag/env") == ("prod",)
    assert untag.values("aws:resourcetag/none") == ()


def test_a_restore_needs_all_that_fills_its_target() -> None:
    """The source, the target, and every action by which the target gets its items."""
    asked = _pairs(
        "RestoreTableToPointInTime",
        SourceTableName="Orders",
        TargetTableName="Again",
        UseLatestRestorableTime=True,
    )

    target = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Again"
    assert asked[:2] == [("RestoreTableToPointInTime", ARN), ("RestoreTableToPointInTime", target)]
    assert {action for action, resource in asked[2:] if resource == target} == {
        *("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchWriteItem")
    }


def test_a_mistyped_action_is_found() -> None:
    """An action that DynamoDB does not have is told with its place; other services' are theirs."""
    found = unknown_actions(directory({"Action": ["dynamodb:GetItems", "dynamodb:get*", "s3:Nothing"]}))

    assert list(found) == [("users.alice.inline.own, Statement[0]", "dynamodb:GetItems")]
