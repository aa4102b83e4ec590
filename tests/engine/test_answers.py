"""Every answer has the members that AWS's model knows, and no others; botocore reads all of them.

Each operation is called once in a plain story. What the model requires of an answer is nothing, so what
is looked for is what no SDK would show: a member that is misspelt, misplaced or of another type.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.model import ServiceModel
from botocore.parsers import create_parser

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.protocol.faults import Fault
from tavola.protocol.operations import OPERATIONS

_DATA = Path(botocore.__file__).parent / "data"
_VECTOR = {"L": [{"N": "1"}, {"N": "0"}]}
_KEY = {"pk": {"S": "a"}, "sk": {"N": "1"}}
_ITEM = {**_KEY, "who": {"S": "me"}, "ends": {"N": "1"}, "v": _VECTOR, "b": {"B": "AA=="}}
_ALL = {"ProjectionType": "ALL"}
_KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
_POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
                "Action": "dynamodb:GetItem",
                "Resource": "arn:aws:dynamodb:us-east-1:000000000000:table/notes",
            }
        ],
    }
)
_TABLE: dict[str, Any] = {
    "TableName": "notes",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "who", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-who",
            "KeySchema": [{"AttributeName": "who", "KeyType": "HASH"}],
            "Projection": _ALL,
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "who", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "VectorIndexes": [
        {
            "IndexName": "near",
            "VectorAttribute": {"AttributeName": "v"},
            "Dimensions": 2,
            "DistanceFunction": "COSINE",
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["ends"]},
            "SearchSchema": [{"AttributeName": "who", "SearchSchemaElementType": "INLINE_FILTER"}],
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "SSESpecification": {"Enabled": True},
    "TableClass": "STANDARD",
    "Tags": [{"Key": "k", "Value": "v"}],
    "WarmThroughput": {"ReadUnitsPerSecond": 12001, "WriteUnitsPerSecond": 4001},
    "OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 10},
    "GlobalTableSettingsReplicationMode": "ENABLED",
}
_COUNTED = {"ReturnConsumedCapacity": "INDEXES"}
_MEASURED = {**_COUNTED, "ReturnItemCollectionMetrics": "SIZE"}

# There is no answer but a refusal: of what AWS has let go, or of what one machine does not have.
_ALWAYS_REFUSED = {
    "CreateGlobalTable": {"GlobalTableName": "notes", "ReplicationGroup": []},
    "DescribeGlobalTable": {"GlobalTableName": "notes"},
    "DescribeGlobalTableSettings": {"GlobalTableName": "notes"},
    "DescribeTableReplicaAutoScaling": {"TableName": "notes"},
    "DisableKinesisStreamingDestination": {"TableName": "notes", "StreamArn": _KINESIS},
    "UpdateGlobalTable": {"GlobalTableName": "notes", "ReplicaUpdates": [{}]},
    "UpdateGlobalTableSettings": {"GlobalTableName": "notes"},
    "UpdateKinesisStreamingDestination": {
        "TableName": "notes",
        "StreamArn": _KINESIS,
        "UpdateKinesisStreamingConfiguration": {"ApproximateCreationDateTimePrecision": "MICROSECOND"},
    },
    "UpdateTableReplicaAutoScaling": {"TableName": "notes"},
}


@dataclass
class Story:
    """Calls of an engine, one after another, and what they answered."""

    engine: Engine
    clock: ManualClock
    answers: dict[str, list[dict[str, Any]]]

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Return an answer, and keep it."""
        answer = self.engine.call(operation, request)
        self.answers.setdefault(operation, []).append(answer)
        return answer


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Every operation that can succeed has been called."""
    clock = ManualClock(1_800_000_000.0)
    buckets = tmp_path_factory.mktemp("buckets")
    (buckets / "bucket").mkdir()
    with Engine.open(clock=clock, buckets=buckets) as engine:
        result = Story(engine, clock, {})
        arn = result.call("CreateTable", **_TABLE)["TableDescription"]["TableArn"]
        _tell_items(result)
        _tell_reads(result)
        _tell_settings(result, arn)
        _tell_streams(result)
        _tell_recovery(result, arn)
        _tell_transfers(result, arn)
        result.call("DeleteTable", TableName="copy")
        yield result


def _tell_items(result: Story) -> None:
    on = {"TableName": "notes"}
    result.call("PutItem", **on, Item=_ITEM, ReturnValues="ALL_OLD", **_MEASURED)
    result.call("PutItem", **on, Item=_ITEM, ReturnValues="ALL_OLD", **_MEASURED)
    result.call("GetItem", **on, Key=_KEY, **_COUNTED)
    result.call(
        "UpdateItem",
        **on,
        Key=_KEY,
        UpdateExpression="SET who = :w",
        ExpressionAttributeValues={":w": {"S": "you"}},
        ReturnValues="UPDATED_NEW",
        **_MEASURED,
    )
    result.call("DeleteItem", **on, Key={**_KEY, "sk": {"N": "2"}}, ReturnValues="ALL_OLD", **_MEASURED)
    write = {"PutRequest": {"Item": _ITEM}}
    result.call("BatchWriteItem", RequestItems={"notes": [write]}, **_MEASURED)
    result.call("BatchGetItem", RequestItems={"notes": {"Keys": [_KEY]}}, **_COUNTED)
    result.call("TransactGetItems", TransactItems=[{"Get": {**on, "Key": _KEY}}], **_COUNTED)
    result.call("TransactWriteItems", TransactItems=[{"Put": {**on, "Item": _ITEM}}], **_MEASURED)
    select = {"Statement": "SELECT * FROM notes WHERE pk = 'a' AND sk = 1"}
    result.call("ExecuteStatement", **select, **_COUNTED)
    result.call("BatchExecuteStatement", Statements=[select, {"Statement": "nonsense"}], **_COUNTED)
    result.call("ExecuteTransaction", TransactStatements=[select], **_COUNTED)


def _tell_reads(result: Story) -> None:
    on = {"TableName": "notes"}
    asked = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
    result.call("Query", **on, **asked, **_COUNTED, Limit=1)
    result.call("Query", **on, **asked, **_COUNTED, IndexName="local", Select="ALL_ATTRIBUTES")
    result.call("Scan", **on, **_COUNTED, IndexName="by-who")
    result.call("SearchVectors", **on, IndexName="near", SearchVector=_VECTOR["L"], TopK=3, **_COUNTED)


def _tell_settings(result: Story, arn: str) -> None:
    on = {"TableName": "notes"}
    result.call("DescribeTable", **on)
    result.call("ListTables", Limit=1)
    result.call("DescribeLimits")
    result.call("DescribeEndpoints")
    result.call("ListGlobalTables")
    result.call("UpdateTable", **on, DeletionProtectionEnabled=False)
    result.call("UpdateTable", **on, SSESpecification={"Enabled": False})
    result.call("DescribeTimeToLive", **on)
    result.call("UpdateTimeToLive", **on, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ends"})
    result.call("DescribeTimeToLive", **on)
    result.call("TagResource", ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
    result.call("ListTagsOfResource", ResourceArn=arn)
    result.call("UntagResource", ResourceArn=arn, TagKeys=["a"])
    result.call("PutResourcePolicy", ResourceArn=arn, Policy=_POLICY)
    result.clock.advance(60)
    result.call("GetResourcePolicy", ResourceArn=arn)
    result.call("DeleteResourcePolicy", ResourceArn=arn)
    result.call("UpdateContributorInsights", **on, ContributorInsightsAction="ENABLE")
    result.call("DescribeContributorInsights", **on)
    result.call("ListContributorInsights")
    result.call("EnableKinesisStreamingDestination", **on, StreamArn=_KINESIS)
    result.call("DescribeKinesisStreamingDestination", **on)


def _tell_streams(result: Story) -> None:
    stream = result.call("ListStreams", TableName="notes")["Streams"][0]["StreamArn"]
    shard = result.call("DescribeStream", StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = result.call(
        "GetShardIterator", StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )
    result.call("GetRecords", ShardIterator=iterator["ShardIterator"])


def _tell_recovery(result: Story, arn: str) -> None:
    result.call("DescribeContinuousBackups", TableName="notes")
    result.call(
        "UpdateContinuousBackups",
        TableName="notes",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 3},
    )
    result.clock.advance(3_600)
    result.call("PutItem", TableName="notes", Item={**_ITEM, "sk": {"N": "3"}})
    result.clock.advance(3_600)
    made = result.call("CreateBackup", TableName="notes", BackupName="before")["BackupDetails"]["BackupArn"]
    result.call("DescribeBackup", BackupArn=made)
    result.call("ListBackups")
    result.call("RestoreTableFromBackup", TargetTableName="copy", BackupArn=made)
    result.call("DescribeTable", TableName="copy")
    result.call(
        "RestoreTableToPointInTime",
        SourceTableArn=arn,
        TargetTableName="then",
        UseLatestRestorableTime=True,
    )
    result.call("DeleteBackup", BackupArn=made)


def _tell_transfers(result: Story, arn: str) -> None:
    made = result.call("ExportTableToPointInTime", TableArn=arn, S3Bucket="bucket", S3Prefix="out")
    export = made["ExportDescription"]["ExportArn"]
    result.call("DescribeExport", ExportArn=export)
    result.call("ListExports")
    data = f"out/AWSDynamoDB/{export.rpartition('/')[2]}/data/"
    source = {"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": data}}
    form = {"InputFormat": "DYNAMODB_JSON", "InputCompressionType": "GZIP"}
    imported = result.call(
        "ImportTable",
        **source,
        **form,
        TableCreationParameters={
            "TableName": "imported",
            "AttributeDefinitions": _TABLE["AttributeDefinitions"][:2],
            "KeySchema": _TABLE["KeySchema"],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    result.call("DescribeImport", ImportArn=imported["ImportTableDescription"]["ImportArn"])
    result.call("ListImports")
    bulk = {
        "TableName": "imported",
        "InputS3Configuration": {"S3Bucket": "bucket", "S3KeyPrefix": data, **form},
        "OutputS3Configuration": {"S3Bucket": "bucket", "S3KeyPrefix": "bulk", "OutputType": ["ERROR"]},
    }
    result.call("StartBulkPutItems", **bulk)
    result.engine.run_background_work()  # whoever tends the engine has taken over its work, so the next load is not done at once
    started = result.call("StartBulkPutItems", **bulk)["BulkOperationDescription"]["BulkOperationArn"]
    result.call("CancelBulkOperation", BulkOperationArn=started)
    result.call("DescribeBulkOperation", BulkOperationArn=started)
    result.call("ListBulkOperations")


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    """The service models, by service."""
    return {
        ours: json.loads(gzip.decompress((_DATA / theirs / "2012-08-10" / "service-2.json.gz").read_bytes()))
        for ours, theirs in (("dynamodb", "dynamodb"), ("streams", "dynamodbstreams"))
    }


_ANSWERED = sorted(
    name for name, each in OPERATIONS.items() if each.service != "tavola" and name not in _ALWAYS_REFUSED
)
# What Tavola tells beyond AWS, by a name that no SDK mistakes for AWS's.
_BEYOND = {"DescribeContributorInsights.TavolaHottestKeys"}


@pytest.mark.parametrize("operation", _ANSWERED)
def test_an_answer_has_the_models_members(
    story: Story, models: dict[str, dict[str, Any]], operation: str
) -> None:
    """Names, nesting and types are the model's, and botocore's parser reads them."""
    model = models[OPERATIONS[operation].service]
    shape = model["operations"][operation].get("output", {}).get("shape")

    for answer in story.answers[operation]:
        if shape is None:
            assert answer == {}
            continue
        assert set(_strange(model["shapes"], shape, answer, operation)) <= _BEYOND
        service = ServiceModel(model)
        parsed = create_parser("json").parse(
            {"body": json.dumps(answer).encode(), "headers": {}, "status_code": 200},
            service.operation_model(operation).output_shape,
        )
        unread = set(answer) - set(parsed)
        assert {f"{operation}.{member}" for member in unread} <= _BEYOND


@pytest.mark.parametrize(("operation", "request_"), sorted(_ALWAYS_REFUSED.items()))
def test_a_refusal_is_one_of_the_models(
    story: Story, models: dict[str, dict[str, Any]], operation: str, request_: dict[str, Any]
) -> None:
    """What can only be refused is refused by an error that the model gives the operation, or as invalid."""
    known = {each["shape"] for each in models["dynamodb"]["operations"][operation]["errors"]}

    with pytest.raises(Fault) as refused:
        story.engine.call(operation, request_)

    assert refused.value.code in known | {"ValidationException"}
    assert refused.value.message


def test_a_strange_member_is_found(models: dict[str, dict[str, Any]]) -> None:
    """The walk sees a name that the model does not know, at any depth, and a value of another type."""
    shapes = models["dynamodb"]["shapes"]
    answer = {"Table": {"TableName": "a", "Nonsense": 1, "ItemCount": "3", "Replicas": [{"Regions": "x"}]}}

    assert list(_strange(shapes, "DescribeTableOutput", answer, "")) == [
        ".Table.Nonsense",
        ".Table.ItemCount: str for long",
        ".Table.Replicas[].Regions",
    ]


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "blob": (str,),
    "integer": (int,),
    "long": (int,),
    "double": (int, float),
    "float": (int, float),
    "timestamp": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
}


def _strange(shapes: dict[str, Any], name: str, value: Any, path: str) -> Iterator[str]:
    """Yield where a value is not of the model's shape."""
    shape = shapes[name]
    kind = shape["type"]
    if type(value) not in _TYPES[kind]:
        yield f"{path}: {type(value).__name__} for {kind}"
        return
    match kind:
        case "structure":
            for member, inner in value.items():
                if member in shape["members"]:
                    yield from _strange(shapes, shape["members"][member]["shape"], inner, f"{path}.{member}")
                else:
                    yield f"{path}.{member}"
        case "list":
            for inner in value:
                yield from _strange(shapes, shape["member"]["shape"], inner, f"{path}[]")
        case "map":
            for inner in value.values():
                yield from _strange(shapes, shape["value"]["shape"], inner, f"{path}{{}}")
        case "string" if "enum" in shape and value not in shape["enum"]:
            yield f"{path}: {value} for {shape['enum']}"
        case _:
            return
