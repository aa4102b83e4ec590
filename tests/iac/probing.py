"""Every operation there is, asked by somebody who may do some things: what a policy must keep out.

A probe knows which action it is, on which resource, led by which partition key. What may be done is what was seen to be done for
the access patterns; a probe that is answered otherwise than these say is a surprise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tavola import AccessDeniedFault, Connection, Engine
from tavola.engine import RequestContext
from tavola.errors import TavolaError
from tavola.iam import required_checks
from tavola.model.document import Design, TableDesign
from tavola.protocol.arns import Scope
from tavola.protocol.faults import UnknownOperationFault
from tavola.protocol.operations import OPERATIONS

REGION = "us-east-1"
ACCOUNT = "111122223333"
SCOPE = Scope(ACCOUNT, REGION)
ELSEWHERE = "elsewhere"  # a table of the same keys, of which no design knows
OTHER = "OTHER"  # a partition key that no entity has
PROBED = "probed"

# An action, a resource, how the partition key begins, what encloses it, and whether it names what it reads.
Allowance = tuple[str, str, str, str, bool]


@dataclass(frozen=True)
class Probe:
    """A request, and what it comes to."""

    operation: str
    request: dict[str, Any]
    action: str  # what IAM calls it
    resource: str
    begins: str | None = None  # the partition key; None: it has none
    enclosing: str = ""
    never: bool = False  # nobody may who has an application's role, also where the action is allowed

    def __str__(self) -> str:
        led = "" if self.begins is None else f" led by {self.begins!r}"
        inside = f" in {self.enclosing}" if self.enclosing else ""
        return f"{self.operation}: {self.action}{inside} on {self.resource}{led}"


class Seen:
    """What is asked, as IAM sees it: a guard that lets everything through and takes it down."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = tuple(prefixes)
        self.allowances: set[Allowance] = set()

    def check(self, operation: str, request: Any, resources: Any) -> None:
        """Take down what a request is."""
        for access in required_checks(operation, request, resources, SCOPE):
            led = access.values("dynamodb:leadingkeys")
            begins = beginning(led[0], self._prefixes) if led else ""
            action = access.action.removeprefix("dynamodb:")
            named = action != "Query" and access.values("dynamodb:select") == ("SPECIFIC_ATTRIBUTES",)
            self.allowances.add((action, access.resource, begins, access.enclosing, named))

    def check_statement(self, operation: str, place: int, request: Any, resources: Any) -> None:
        """Let a statement through: no pattern has one."""

    def allow(self, probe: Probe) -> bool:
        """Return whether a probe is one of what was asked."""
        if probe.never:
            return False
        place = (probe.action, probe.resource, probe.begins or "")
        return any((*place, inside, False) in self.allowances for inside in ("", probe.enclosing))


class Watched:
    """An engine as a backend, whose requests are taken down."""

    def __init__(self, engine: Engine, seen: Seen) -> None:
        self._engine = engine
        self._visit = RequestContext(guard=seen)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the engine."""
        answer = self._engine.execute(operation, json.dumps(request).encode(), SCOPE, self._visit)
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """Leave the engine to who opened it."""


def beginning(text: str, prefixes: Iterable[str]) -> str:
    """Return which of some beginnings a partition key has; none, where keys are fields' own values."""
    return max((prefix for prefix in prefixes if prefix and text.startswith(prefix)), key=len, default="")


def keys_of(design: Design) -> dict[str, str]:
    """Return a partition key of each kind that a design has, of tables and indexes, by how it begins."""
    found = {}
    for table in design.tables:
        for entity in table.entities:
            for field in (field for field in entity.fields if field.unique):
                for word in ("UNIQUE", "LONGUNIQUE"):
                    begins = f"{word}#{entity.tag}#{field.name}#"
                    found[begins] = f"{begins}{PROBED}"
            for key in (entity.key, *entity.keys):
                for source in () if key is None else key.hash:
                    if source.template is not None:
                        told = source.template.segments
                        text = "".join(each if isinstance(each, str) else PROBED for each in told)
                        found[text.partition(PROBED)[0]] = text
    return dict(sorted(found.items()))


def surprises(db: Connection, probes: Iterable[Probe], seen: Seen) -> list[str]:
    """Return the probes that are answered otherwise than they should be."""
    found = []
    for probe in probes:
        denied = is_denied(db, probe)
        if denied is seen.allow(probe):
            found.append(f"{'denied' if denied else 'allowed'}: {probe}")
    return found


def is_denied(db: Connection, probe: Probe) -> bool:
    """Return whether a probe is refused for want of permission; any other answer means that it got through."""
    try:
        answer = db.call(probe.operation, probe.request)
    except (AccessDeniedFault, UnknownOperationFault):  # what is not served is done by nobody
        return True
    except TavolaError:
        return False
    told = [
        each.get("Error", {}).get("Code") for each in answer.get("Responses", ()) if isinstance(each, dict)
    ]
    return bool(told) and set(told) == {"AccessDenied"}


class Probes:
    """All requests that can be made of the tables of a design, and of one table besides."""

    def __init__(self, design: Design, admin: Connection) -> None:
        self._design = design
        self._admin = admin
        keys = {begins: text for begins, text in keys_of(design).items() if begins}
        more = {f"{text}{OTHER}": f"{text}{OTHER}" for text in keys.values() if PROBED not in text}
        self._keys = keys | more | {OTHER: f"{OTHER}#{PROBED}"}

    def __iter__(self) -> Iterator[Probe]:
        for table in self._design.tables:
            for name in (table.name, ELSEWHERE):
                yield from self._items(table, name)
                yield from self._ranges(table, name)
                yield from self._administered(table, name)

    def _led(self, table: TableDesign, index: str | None = None) -> dict[str, str]:
        """Return the partition keys that are probed, by how they begin; one, where they are fields' own values."""
        keys = [key for entity in table.entities if (key := entity.key_on(index)) is not None]
        templated = not keys or any(key.hash[0].template is not None for key in keys)
        return self._keys if templated else {"": PROBED}

    def _items(self, table: TableDesign, name: str) -> Iterator[Probe]:
        """Give every request about one item, by each beginning that its partition key may have."""
        arn = _arn(name)
        for begins, text in self._led(table).items():
            key = {attribute: {"S": text} for attribute in table.settings.key_names}
            at = {"TableName": name, "Key": key}
            put = {"TableName": name, "Item": key}
            spelled = " AND ".join(f"\"{n}\"='{v['S']}'" for n, v in key.items())
            value = "{" + ", ".join(f"'{n}': '{v['S']}'" for n, v in key.items()) + "}"
            select = f'SELECT * FROM "{name}" WHERE {spelled}'
            insert = f'INSERT INTO "{name}" VALUE {value}'
            change = f'UPDATE "{name}" SET extra=1 WHERE {spelled}'
            remove = f'DELETE FROM "{name}" WHERE {spelled}'
            yield Probe("GetItem", at, "GetItem", arn, begins)
            yield Probe("ListItemVersions", at, "GetItem", arn, begins)
            yield Probe("PutItem", put, "PutItem", arn, begins)
            yield Probe("UpdateItem", at, "UpdateItem", arn, begins)
            strange = {
                **at, "UpdateExpression": "SET no_attribute_of_it = :v", "ExpressionAttributeValues": {":v": {"S": "x"}},
            }  # fmt: skip
            yield Probe("UpdateItem", strange, "UpdateItem", arn, begins, never=True)
            within = {"TransactItems": [{"Update": strange}]}
            yield Probe(
                "TransactWriteItems", within, "UpdateItem", arn, begins, "TransactWriteItems", never=True
            )
            yield Probe("DeleteItem", at, "DeleteItem", arn, begins)
            yield Probe(
                "BatchGetItem", {"RequestItems": {name: {"Keys": [key]}}}, "BatchGetItem", arn, begins
            )
            for write in ({"PutRequest": {"Item": key}}, {"DeleteRequest": {"Key": key}}):
                yield Probe(
                    "BatchWriteItem", {"RequestItems": {name: [write]}}, "BatchWriteItem", arn, begins
                )
            got = {"TransactItems": [{"Get": at}]}
            yield Probe("TransactGetItems", got, "GetItem", arn, begins, "TransactGetItems")
            exists = {**at, "ConditionExpression": f"attribute_exists({table.settings.hash})"}
            for verb, part, action in (
                ("Put", put, "PutItem"), ("Update", at | {"UpdateExpression": f"REMOVE {_own(table)}"}, "UpdateItem"),
                ("Delete", at, "DeleteItem"), ("ConditionCheck", exists, "ConditionCheckItem"),
            ):  # fmt: skip
                whole = {"TransactItems": [{verb: part}]}
                yield Probe("TransactWriteItems", whole, action, arn, begins, "TransactWriteItems")
            for text, action in (
                (select, "PartiQLSelect"), (insert, "PartiQLInsert"), (change, "PartiQLUpdate"), (remove, "PartiQLDelete"),
            ):  # fmt: skip
                yield Probe("ExecuteStatement", {"Statement": text}, action, arn, begins)
                yield Probe(
                    "BatchExecuteStatement", {"Statements": [{"Statement": text}]}, action, arn, begins
                )
                several = {"TransactStatements": [{"Statement": text}]}
                yield Probe("ExecuteTransaction", several, action, arn, begins, "ExecuteTransaction")

    def _ranges(self, table: TableDesign, name: str) -> Iterator[Probe]:
        """Give every request about many items: of the table and each of its indexes, and of one that is not there."""
        arn = _arn(name)
        places: list[tuple[str | None, tuple[str, ...]]] = [(None, (table.settings.hash,))]
        places += [(index.name, index.hash) for index in table.indexes]
        for index, hashes in places:
            where = {"TableName": name} if index is None else {"TableName": name, "IndexName": index}
            resource = arn if index is None else f"{arn}/index/{index}"
            yield Probe("Scan", where, "Scan", resource)
            source = f'"{name}"' if index is None else f'"{name}"."{index}"'
            yield Probe(
                "ExecuteStatement", {"Statement": f"SELECT * FROM {source}"}, "PartiQLSelect", resource
            )
            for begins, text in self._led(table, index).items():
                told = {f":p{n}": {"S": text} for n, _ in enumerate(hashes)}
                asked = {
                    **where,
                    "KeyConditionExpression": " AND ".join(f"{h} = :p{n}" for n, h in enumerate(hashes)),
                    "ExpressionAttributeValues": told,
                }
                yield Probe("Query", asked, "Query", resource, begins)
        strange = {"TableName": name, "IndexName": "no-index"}
        yield Probe("Scan", strange, "Scan", f"{arn}/index/no-index")
        search = {**strange, "SearchVector": [{"N": "1"}], "TopK": 1}
        yield Probe("SearchVectors", search, "SearchVectors", f"{arn}/index/no-index")

    def _administered(self, table: TableDesign, name: str) -> Iterator[Probe]:
        """Give one request of every operation that is about no item."""
        covered = {probe.operation for probe in (*self._items(table, name), *self._ranges(table, name))}
        stream = self._stream(name)
        requests = _administration(name, table, stream)
        assert covered | requests.keys() | {"GetRecords"} == set(OPERATIONS), "every operation is asked"
        for operation, (request, resource) in requests.items():
            yield Probe(operation, request, operation, resource)
        if stream is not None:
            iterator = self._iterator(stream)
            yield Probe("GetRecords", {"ShardIterator": iterator}, "GetRecords", stream)

    def _stream(self, name: str) -> str | None:
        told: str | None = self._admin.call("DescribeTable", {"TableName": name})["Table"].get(
            "LatestStreamArn"
        )
        return told

    def _iterator(self, stream: str) -> str:
        described = self._admin.call("DescribeStream", {"StreamArn": stream})["StreamDescription"]
        shard = described["Shards"][0]["ShardId"]
        asked = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        found: str = self._admin.call("GetShardIterator", asked)["ShardIterator"]
        return found


def _administration(
    name: str, table: TableDesign, stream: str | None
) -> dict[str, tuple[dict[str, Any], str]]:
    arn = _arn(name)
    own = {"TableName": name}
    backup, export = f"{arn}/backup/01489602797149-73d8d5bc", f"{arn}/export/01489602797149-73d8d5bc"
    import_, bulk = f"{arn}/import/01489602797149-73d8d5bc", f"{arn}/bulk-operation/01489602797149-73d8d5bc"
    flow = stream or f"{arn}/stream/2024-01-01T00:00:00.000"
    schema = {
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
    }
    made = {**own, **schema, "BillingMode": "PAY_PER_REQUEST"}
    bucket = {"S3Bucket": "bucket"}
    latest = {"UseLatestRestorableTime": True}
    loaded = {
        "InputS3Configuration": {**bucket, "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {**bucket, "OutputType": ["ERROR"]},
    }
    precise = {"UpdateKinesisStreamingConfiguration": {"ApproximateCreationDateTimePrecision": "MILLISECOND"}}
    regions = [{"Create": {"RegionName": "eu-west-1"}}]
    kinesis = {**own, "StreamArn": f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/s"}
    worldwide = f"arn:aws:dynamodb::{ACCOUNT}:global-table/{name}"
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": ACCOUNT},
        "Action": "dynamodb:GetItem",
        "Resource": arn,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    shard = {"StreamArn": flow, "ShardId": "shardId-00000000000000000000", "ShardIteratorType": "LATEST"}
    return {
        "CancelBulkOperation": ({"BulkOperationArn": bulk}, bulk),
        "CreateBackup": ({**own, "BackupName": "probe"}, arn),
        "CreateGlobalTable": ({"GlobalTableName": name, "ReplicationGroup": [{"RegionName": REGION}]}, worldwide),
        "CreateTable": (made, arn),
        "DeleteBackup": ({"BackupArn": backup}, backup),
        "DeleteResourcePolicy": ({"ResourceArn": arn}, arn),
        "DeleteTable": (own, arn),
        "DescribeBackup": ({"BackupArn": backup}, backup),
        "DescribeBulkOperation": ({"BulkOperationArn": bulk}, bulk),
        "DescribeContinuousBackups": (own, arn),
        "DescribeContributorInsights": (own, arn),
        "DescribeEndpoints": ({}, "*"),
        "DescribeExport": ({"ExportArn": export}, export),
        "DescribeGlobalTable": ({"GlobalTableName": name}, worldwide),
        "DescribeGlobalTableSettings": ({"GlobalTableName": name}, worldwide),
        "DescribeImport": ({"ImportArn": import_}, import_),
        "DescribeKinesisStreamingDestination": (own, arn),
        "DescribeLimits": ({}, "*"),
        "DescribeStream": ({"StreamArn": flow}, flow),
        "DescribeTable": (own, arn),
        "DescribeTableReplicaAutoScaling": (own, arn),
        "DescribeTimeToLive": (own, arn),
        "DisableKinesisStreamingDestination": (kinesis, arn),
        "EnableKinesisStreamingDestination": (kinesis, arn),
        "ExportTableToPointInTime": ({"TableArn": arn, **bucket}, arn),
        "GetResourcePolicy": ({"ResourceArn": arn}, arn),
        "GetShardIterator": (shard, flow),
        "ImportTable": (
            {"S3BucketSource": bucket, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": made}, arn,
        ),
        "ListBackups": (own, "*"),
        "ListBulkOperations": ({}, "*"),
        "ListContributorInsights": (own, "*"),
        "ListExports": ({"TableArn": arn}, "*"),
        "ListGlobalTables": ({}, "*"),
        "ListImports": ({"TableArn": arn}, "*"),
        "ListStreams": (own, f"{arn}/stream/*"),
        "ListTables": ({}, "*"),
        "ListTagsOfResource": ({"ResourceArn": arn}, arn),
        "PutResourcePolicy": ({"ResourceArn": arn, "Policy": policy}, arn),
        "RestoreTableFromBackup": ({"TargetTableName": name, "BackupArn": backup}, backup),
        "RestoreTableToPointInTime": ({"TargetTableName": f"{name}-2", "SourceTableName": name, **latest}, arn),
        "StartBulkPutItems": ({"TableName": arn, **loaded}, arn),
        "TagResource": ({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]}, arn),
        "UntagResource": ({"ResourceArn": arn, "TagKeys": ["a"]}, arn),
        "UpdateContinuousBackups": (
            {**own, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False}}, arn,
        ),
        "UpdateContributorInsights": ({**own, "ContributorInsightsAction": "DISABLE"}, arn),
        "UpdateGlobalTable": ({"GlobalTableName": name, "ReplicaUpdates": regions}, worldwide),
        "UpdateGlobalTableSettings": ({"GlobalTableName": name}, worldwide),
        "UpdateKinesisStreamingDestination": ({**kinesis, **precise}, arn),
        "UpdateTable": ({**own, "DeletionProtectionEnabled": False}, arn),
        "UpdateTableReplicaAutoScaling": (own, arn),
        "UpdateTimeToLive": (
            {**own, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "gone"}}, arn,
        ),
    }  # fmt: skip


def _own(table: TableDesign) -> str:
    """Return an attribute that every update of the table may name."""
    return table.settings.ttl or table.settings.tag or "updated_at"


def _arn(table: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}"
