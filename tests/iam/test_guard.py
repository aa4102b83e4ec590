"""The guard on an engine: tenants are kept apart on every path to an item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext
from tavola.iam import Account, ConnectionProperties, Directory, Guards, User
from tavola.protocol.arns import Scope
from tavola.protocol.faults import AccessDeniedFault, Fault
from tests.iam.tables import ACCOUNT, NOW_S, OTHER, SCOPE, guard, policy

TABLE = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Tickets"
STREAMED = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
OWN = {
    "Resource": [TABLE, f"{TABLE}/index/*"],
    "Action": "dynamodb:*",
    "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}},
}
NO_SCANS: list[dict[str, Any]] = [
    {"Effect": "Deny", "Action": "dynamodb:Scan"},
    {
        "Effect": "Deny",
        "Action": "dynamodb:PartiQLSelect",
        "Condition": {"Bool": {"dynamodb:FullTableScan": "true"}},
    },
]


def _table(name: str = "Tickets", **more: Any) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [{"AttributeName": a, "AttributeType": "S"} for a in ("pk", "sk", "whose")],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "ByWhose",
                "KeySchema": [{"AttributeName": "whose", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": STREAMED,
        "VectorIndexes": [
            {
                "IndexName": "Near",
                "VectorAttribute": {"AttributeName": "v"},
                "Dimensions": 2,
                "DistanceFunction": "COSINE",
                "Projection": {"ProjectionType": "ALL"},
                "SearchSchema": [{"AttributeName": "whose", "SearchSchemaElementType": "HASH"}],
            }
        ],
        **more,
    }


def _item(owner: str) -> dict[str, Any]:
    near = {"L": [{"N": "1"}, {"N": "0"}]}
    return {"pk": {"S": owner}, "sk": {"S": "1"}, "whose": {"S": owner}, "v": near}


def _key(owner: str) -> dict[str, Any]:
    return {"pk": {"S": owner}, "sk": {"S": "1"}}


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with a table in which alice and bob have an item each."""
    with Engine.open(clock=ManualClock(NOW_S)) as opened:
        opened.call("CreateTable", _table(), SCOPE)
        kept = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": "Tickets", "PointInTimeRecoverySpecification": kept}
        opened.call("UpdateContinuousBackups", request, SCOPE)
        for owner in ("alice", "bob"):
            opened.call("PutItem", {"TableName": "Tickets", "Item": _item(owner)}, SCOPE)
        yield opened


def _reads(owner: str) -> dict[str, dict[str, Any]]:
    """Every request that reads one item."""
    by_key = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": owner}}}
    legacy = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": owner}]}}
    by_index = {**by_key, "KeyConditionExpression": "whose = :p", "IndexName": "ByWhose"}
    select = f"SELECT * FROM Tickets WHERE pk = '{owner}' AND sk = '1'"
    return {
        "GetItem": {"TableName": "Tickets", "Key": _key(owner)},
        "GetItem by ARN": {"TableName": TABLE, "Key": _key(owner)},
        "BatchGetItem": {"RequestItems": {"Tickets": {"Keys": [_key(owner)]}}},
        "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "Tickets", "Key": _key(owner)}}]},
        "Query": {"TableName": "Tickets", **by_key},
        "Query by KeyConditions": {"TableName": "Tickets", "KeyConditions": legacy},
        "Query an index": {"TableName": "Tickets", **by_index},
        "ListItemVersions": {"TableName": "Tickets", "Key": _key(owner)},
        "SearchVectors": {
            "TableName": "Tickets",
            "IndexName": "Near",
            "SearchVector": [{"N": "1"}, {"N": "0"}],
            "TopK": 1,
            "SearchConditionExpression": "whose = :p",
            "ExpressionAttributeValues": {":p": {"S": owner}},
        },
        "ExecuteStatement": {"Statement": select},
        "ExecuteStatement with a parameter": {
            "Statement": "SELECT * FROM Tickets WHERE pk = ?",
            "Parameters": [{"S": owner}],
        },
        "ExecuteStatement on an index": {
            "Statement": f'SELECT * FROM "Tickets"."ByWhose" WHERE whose IN [\'{owner}\']'
        },
        "ExecuteTransaction": {"TransactStatements": [{"Statement": select}]},
        "BatchExecuteStatement": {"Statements": [{"Statement": select}]},
    }


def _writes(owner: str) -> dict[str, dict[str, Any]]:
    """Every request that writes one item."""
    update = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
    check = {"ConditionExpression": "attribute_exists(pk)"}
    named = {"TableName": "Tickets", "Key": _key(owner)}
    where = f"WHERE pk = '{owner}' AND sk = '1'"
    insert = f"INSERT INTO Tickets VALUE {{'pk': '{owner}', 'sk': '2'}}"
    return {
        "PutItem": {"TableName": "Tickets", "Item": _item(owner)},
        "UpdateItem": {**named, **update},
        "BatchWriteItem": {"RequestItems": {"Tickets": [{"PutRequest": {"Item": _item(owner)}}]}},
        "BatchWriteItem of a delete": {
            "RequestItems": {"Tickets": [{"DeleteRequest": {"Key": {**_key(owner), "sk": {"S": "none"}}}}]}
        },
        "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": "Tickets", "Item": _item(owner)}}]},
        "TransactWriteItems of an update": {"TransactItems": [{"Update": {**named, **update}}]},
        "TransactWriteItems of a check": {"TransactItems": [{"ConditionCheck": {**named, **check}}]},
        "ExecuteStatement of an insert": {"Statement": insert},
        "ExecuteStatement of an update": {"Statement": f"UPDATE Tickets SET n = 2 {where}"},
        "ExecuteTransaction of an update": {
            "TransactStatements": [{"Statement": f"UPDATE Tickets SET n = 3 {where}"}]
        },
        "BatchExecuteStatement of an update": {
            "Statements": [{"Statement": f"UPDATE Tickets SET n = 4 {where}"}]
        },
        "ExecuteStatement of a delete": {"Statement": f"DELETE FROM Tickets {where}"},
        "DeleteItem": named,
    }


def _allowed(
    engine: Engine, path: str, request: dict[str, Any], context: RequestContext, scope: Scope = SCOPE
) -> bool:
    """Tell whether a request passes the guard; a batch of statements tells each by itself."""
    try:
        answer = engine.call(path.partition(" ")[0], request, scope, context)
    except AccessDeniedFault:
        return False
    codes = [
        each.get("Error", {}).get("Code") for each in answer.get("Responses", []) if isinstance(each, dict)
    ]
    return "AccessDenied" not in codes


@pytest.mark.parametrize("path", [*_reads(""), *_writes("")])
def test_a_tenant_reaches_their_own_items_alone(engine: Engine, path: str) -> None:
    """On every path a customer gets at their own partition and at nobody else's."""
    context = RequestContext(guard=guard(OWN, *NO_SCANS))

    own = _allowed(engine, path, {**_reads("alice"), **_writes("alice")}[path], context)
    others = _allowed(engine, path, {**_reads("bob"), **_writes("bob")}[path], context)

    assert own
    assert not others


CONDITIONS: list[dict[str, Any]] = [
    {},
    {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "alice"}},
    {"StringLike": {"dynamodb:LeadingKeys": "a*"}},
    {"ForAnyValue:StringEqualsIgnoreCase": {"dynamodb:LeadingKeys": "ALICE"}},
    {"StringNotEquals": {"dynamodb:FirstPartitionKeyValues": "bob"}},
    {"Null": {"dynamodb:LeadingKeys": "false"}},
    {"ForAllValues:StringEquals": {"dynamodb:SecondPartitionKeyValues": "none"}},
    {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
    {"StringEquals": {"aws:ResourceTag/env": "prod"}},
    {"Bool": {"aws:SecureTransport": "true"}},
    {"DateGreaterThan": {"aws:CurrentTime": "2030-01-01"}},
    {"StringEquals": {"dynamodb:ReturnConsumedCapacity": "NONE"}},
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("effect", ["Allow", "Deny"])
@pytest.mark.parametrize("owner", ["alice", "bob"])
def test_every_path_to_an_item_has_the_same_decision(
    engine: Engine, condition: dict[str, Any], effect: str, owner: str
) -> None:
    """Whatever the condition, single, batch, transaction, statement and index agree."""
    statements = [{"Effect": effect, "Condition": condition}, *([{}] if effect == "Deny" else [])]
    context = RequestContext(
        guard=guard(*statements, circumstances=ConnectionProperties(source_ip="10.1.1.1"))
    )

    decisions = {path: _allowed(engine, path, request, context) for path, request in _reads(owner).items()}
    decisions |= {path: _allowed(engine, path, request, context) for path, request in _writes(owner).items()}

    assert len(set(decisions.values())) == 1, decisions


def test_a_denied_member_denies_the_whole(engine: Engine) -> None:
    """A batch or transaction with one key that is not allowed does nothing, and says which resource it was."""
    context = RequestContext(guard=guard(OWN))
    both = [_key("alice"), _key("bob")]
    put = [
        {"Put": {"TableName": "Tickets", "Item": {**_item(owner), "new": {"S": "x"}}}}
        for owner in ("alice", "bob")
    ]

    for operation, request in (
        ("BatchGetItem", {"RequestItems": {"Tickets": {"Keys": both}}}),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "Tickets", "Key": key}} for key in both]},
        ),
        ("TransactWriteItems", {"TransactItems": put}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM Tickets WHERE pk IN ['alice', 'bob']"}),
    ):
        with pytest.raises(AccessDeniedFault, match=f"on resource: {TABLE} because no identity-based policy"):
            engine.call(operation, request, SCOPE, context)
    got = engine.call("GetItem", {"TableName": "Tickets", "Key": _key("alice")}, SCOPE)
    assert "new" not in got["Item"]


def test_statements_of_a_batch_are_denied_one_by_one(engine: Engine) -> None:
    """The others of a batch of statements are answered; the denied one has its code and its words."""
    statements = [
        {"Statement": f"SELECT * FROM Tickets WHERE pk = '{who}' AND sk = '1'"} for who in ("alice", "bob")
    ]

    answer = engine.call(
        "BatchExecuteStatement", {"Statements": statements}, SCOPE, RequestContext(guard=guard(OWN))
    )

    allowed, denied = answer["Responses"]
    assert allowed["Item"]["pk"] == {"S": "alice"}
    assert denied["Error"]["Code"] == "AccessDenied"
    assert (
        "because no identity-based policy allows the dynamodb:PartiQLSelect action"
        in denied["Error"]["Message"]
    )


def test_a_scan_has_no_leading_keys(engine: Engine) -> None:
    """As on AWS: for all of no keys anything holds, so whoever goes by LeadingKeys does not grant scans."""
    scan = {"TableName": "Tickets"}
    everything = {"Statement": "SELECT * FROM Tickets"}

    assert _allowed(engine, "Scan", scan, RequestContext(guard=guard(OWN)))
    assert _allowed(engine, "ExecuteStatement", everything, RequestContext(guard=guard(OWN)))
    assert not _allowed(engine, "Scan", scan, RequestContext(guard=guard(OWN, *NO_SCANS)))
    assert not _allowed(engine, "ExecuteStatement", everything, RequestContext(guard=guard(OWN, *NO_SCANS)))


@pytest.mark.parametrize(
    "key",
    [
        {"S": "bob", "N": None},
        {"S": "bob", "B": None, "Unknown": 1},
        {"S": "bob", "NULL": None},
    ],
)
def test_what_the_engine_reads_as_a_key_the_guard_reads_too(engine: Engine, key: dict[str, Any]) -> None:
    """A value in a form that AWS converts is the key that it is converted to, for the guard as for the table."""
    request = {"TableName": "Tickets", "Key": {"pk": key, "sk": {"S": "1"}}}
    found: dict[str, Any] = {}
    try:
        found = engine.call("GetItem", request, SCOPE)
    except Fault:
        pass

    allowed = _allowed_or_refused(engine, request)

    assert not (allowed and found)


def _allowed_or_refused(engine: Engine, request: dict[str, Any]) -> bool:
    try:
        return "Item" in engine.call("GetItem", request, SCOPE, RequestContext(guard=guard(OWN)))
    except Fault:
        return False


def test_streams_have_policies_of_their_own(engine: Engine) -> None:
    """Who may read a table may not therefore read its stream; an iterator is as good as the stream it reads."""
    stream = engine.call("DescribeTable", {"TableName": "Tickets"}, SCOPE)["Table"]["LatestStreamArn"]
    shard = engine.call("DescribeStream", {"StreamArn": stream}, SCOPE)["StreamDescription"]["Shards"][0]
    asked = {"StreamArn": stream, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = engine.call("GetShardIterator", asked, SCOPE)["ShardIterator"]
    table_only = RequestContext(guard=guard({"Resource": TABLE}))
    stream_too = RequestContext(guard=guard({"Resource": f"{TABLE}/stream/*"}))

    assert not _allowed(engine, "DescribeStream", {"StreamArn": stream}, table_only)
    assert not _allowed(engine, "GetRecords", {"ShardIterator": iterator}, table_only)
    assert _allowed(engine, "GetRecords", {"ShardIterator": iterator}, stream_too)
    grant = policy(
        {
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/alice"},
            "Action": ["dynamodb:DescribeStream", "dynamodb:GetRecords"],
            "Resource": stream,
        }
    )
    engine.call("PutResourcePolicy", {"ResourceArn": stream, "Policy": json.dumps(grant)}, SCOPE)
    assert _allowed(engine, "GetRecords", {"ShardIterator": iterator}, table_only)


def test_a_resource_policy_is_in_force_at_once(engine: Engine) -> None:
    """What is put on a table lets in, and what is taken away keeps out, with the next request."""
    get = {"TableName": "Tickets", "Key": _key("bob")}
    context = RequestContext(guard=guard(OWN))
    grant = {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/alice"}, "Action": "dynamodb:GetItem"}
    put = {"ResourceArn": TABLE, "Policy": json.dumps(policy(grant))}

    before = _allowed(engine, "GetItem", get, context)
    engine.call("PutResourcePolicy", put, SCOPE)
    during = _allowed(engine, "GetItem", get, context)
    engine.call("DeleteResourcePolicy", {"ResourceArn": TABLE}, SCOPE)
    after = _allowed(engine, "GetItem", get, context)

    assert (before, during, after) == (False, True, False)


def test_another_accounts_table_is_reached_by_its_arn_and_both_policies(engine: Engine) -> None:
    """A table lets another account in by its policy, and nobody who is not let in learns whether it is there."""
    visitor = Directory({OTHER: Account(users={"carol": User(inline={"own": policy({})})})})
    scope = Scope(OTHER, "us-east-1")
    context = RequestContext(guard=Guards().guard(visitor, visitor.user(OTHER, "carol"), scope))
    get = {"TableName": TABLE, "Key": _key("alice")}
    grant = policy({"Principal": {"AWS": OTHER}, "Action": "dynamodb:GetItem"})

    with pytest.raises(
        AccessDeniedFault, match="because no resource-based policy allows the dynamodb:GetItem"
    ):
        engine.call("GetItem", get, scope, context)
    with pytest.raises(AccessDeniedFault):
        engine.call("GetItem", {**get, "TableName": f"{TABLE}Absent"}, scope, context)
    engine.call("PutResourcePolicy", {"ResourceArn": TABLE, "Policy": json.dumps(grant)}, SCOPE)

    assert engine.call("GetItem", get, scope, context)["Item"]["pk"] == {"S": "alice"}
    with pytest.raises(AccessDeniedFault):
        engine.call("PutItem", {"TableName": TABLE, "Item": _item("alice")}, scope, context)


def test_nobody_locks_themselves_out_unawares(engine: Engine) -> None:
    """A policy that denies its author the next one needs a confirmation."""
    context = RequestContext(guard=guard({}))
    closed = policy({"Effect": "Deny", "Principal": "*", "Action": "dynamodb:PutResourcePolicy"})
    put = {"ResourceArn": TABLE, "Policy": json.dumps(closed)}

    with pytest.raises(AccessDeniedFault) as refused:
        engine.call("PutResourcePolicy", put, SCOPE, context)
    engine.call("PutResourcePolicy", {**put, "ConfirmRemoveSelfResourceAccess": True}, SCOPE, context)

    assert str(refused.value) == (
        "The new resource policy will not allow you to update the resource policy in the future."
    )
    with pytest.raises(AccessDeniedFault, match="with an explicit deny in a resource-based policy"):
        engine.call("PutResourcePolicy", {**put, "ConfirmRemoveSelfResourceAccess": True}, SCOPE, context)


def test_tags_decide_by_what_they_are_now(engine: Engine) -> None:
    """A table's tags are read with each request, and so are those that a request would give it."""
    context = RequestContext(guard=guard({"Condition": {"StringEquals": {"aws:ResourceTag/Team": "red"}}}))
    get = {"TableName": "Tickets", "Key": _key("alice")}

    before = _allowed(engine, "GetItem", get, context)
    engine.call("TagResource", {"ResourceArn": TABLE, "Tags": [{"Key": "team", "Value": "red"}]}, SCOPE)

    assert not before
    assert _allowed(engine, "GetItem", get, context)


def test_circumstances_are_those_of_the_request() -> None:
    """Where a request comes from, how, when and to which region."""
    here = ConnectionProperties(source_ip="10.0.0.7", secure=True, user_agent="probe")
    asked = guard({}, circumstances=here)

    told = {key: asked.connection_value(f"aws:{key}") for key in ("sourceip", "securetransport", "useragent")}

    assert told == {"sourceip": ("10.0.0.7",), "securetransport": ("true",), "useragent": ("probe",)}
    assert asked.connection_value("aws:requestedregion") == ("us-east-1",)
    assert asked.connection_value("aws:epochtime") == (f"{NOW_S:.6f}",)
    assert guard({}).connection_value("aws:sourceip") == ()


def test_an_explanation_names_what_decided(engine: Engine) -> None:
    """Each access of a request is explained with every statement and the condition that failed."""
    from tavola.engine.operations.call import OperationCall
    from tavola.protocol.requests import parse

    asked = guard({**OWN, "Sid": "Own"}, {"Action": "dynamodb:Scan"})
    request = parse(
        "BatchGetItem", json.dumps({"RequestItems": {"Tickets": {"Keys": [_key("bob")]}}}).encode()
    )

    (explained,) = asked.explain(
        "BatchGetItem", request, OperationCall("BatchGetItem", b"", SCOPE, engine._services)
    )

    assert not explained.decision.allowed
    assert [(each.rule.sid, each.outcome, each.place) for each in explained.evaluated] == [
        ("Own", "condition", "Statement[0].Condition.ForAllValues:StringEquals.dynamodb:LeadingKeys"),
        (None, "another action", None),
    ]


def test_guards_are_kept_while_the_directory_is_the_same() -> None:
    """The same caller gets the same guard; another directory makes all of them anew."""
    first = Directory({ACCOUNT: Account(users={"alice": User()})})
    second = Directory({ACCOUNT: Account(users={"alice": User()})})
    guards = Guards()
    alice = first.user(ACCOUNT, "alice")

    one = guards.guard(first, alice, SCOPE)

    assert guards.guard(first, alice, SCOPE) is one
    assert guards.guard(first, alice, SCOPE, ConnectionProperties(source_ip="10.0.0.1")) is not one
    assert guards.guard(second, alice, SCOPE) is not one


def test_who_may_not_get_an_item_may_not_see_what_it_was(engine: Engine) -> None:
    """The versions of an item are read with the permission to get it, and with no other."""
    request = {"TableName": "Tickets", "Key": _key("alice")}
    denied = RequestContext(guard=guard({}, {"Effect": "Deny", "Action": "dynamodb:GetItem"}))
    getter = RequestContext(guard=guard({"Action": "dynamodb:GetItem"}))

    assert not _allowed(engine, "ListItemVersions", request, denied)
    assert _allowed(engine, "ListItemVersions", request, getter)


@pytest.mark.parametrize("operation", ["ListBackups", "ListContributorInsights"])
def test_a_list_of_another_accounts_table_needs_its_consent(engine: Engine, operation: str) -> None:
    """Who may do everything in one account learns nothing of another's table by naming its ARN."""
    foreign = f"arn:aws:dynamodb:us-east-1:{OTHER}:table/Secret"
    engine.call("CreateTable", _table("Secret"), Scope(OTHER, "us-east-1"))
    context = RequestContext(guard=guard({}))

    assert _allowed(engine, operation, {"TableName": "Tickets"}, context)
    assert not _allowed(engine, operation, {"TableName": foreign}, context)
