"""The support desk as its document has it: FastAPI, boto3 and DynamoDB Local, no more than a team would write.

The keys, indexes, transactions and stream counters are those of the document. Where its samples disagree with each
other (a created ticket without the index keys that its lists need) the ones that make the routes answer are taken.
Served by uvicorn with the settings that ours has; routes are plain functions, because boto3 blocks.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import boto3
from boto3.dynamodb.conditions import Key
from botocore.config import Config
from fastapi import FastAPI, HTTPException, Request

TABLE: Final = "prod-tickets-unified"
METRICS: Final = "prod-metrics"
STATUSES: Final = ("NEW", "PROCESSING", "READY", "FAILED", "ESCALATED")

_ENDPOINT: Final = os.environ.get("BASELINE_ENDPOINT", "http://127.0.0.1:8000")
_SESSION: Final = boto3.session.Session("bench", "bench", region_name="us-east-1")
_CONFIG: Final = Config(max_pool_connections=64)
resource: Final[Any] = _SESSION.resource("dynamodb", endpoint_url=_ENDPOINT, config=_CONFIG)
client: Final[Any] = _SESSION.client("dynamodb", endpoint_url=_ENDPOINT, config=_CONFIG)
streams: Final[Any] = _SESSION.client("dynamodbstreams", endpoint_url=_ENDPOINT, config=_CONFIG)
table: Final[Any] = resource.Table(TABLE)
metrics: Final[Any] = resource.Table(METRICS)


def create_tables() -> None:
    """Make both tables, as the document's templates do."""
    indexes = [
        ("GSI1-customer-index", "GSI1", {"ProjectionType": "ALL"}),
        ("GSI2-status-index", "GSI2", {"ProjectionType": "ALL"}),
        (
            "GSI3-operator-index",
            "GSI3",
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["ticket_id", "rating", "was_helpful"]},
        ),
    ]
    names = ["PK", "SK", *(f"{prefix}{part}" for _, prefix, _ in indexes for part in ("PK", "SK"))]
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=_keys("PK", "SK"),
        GlobalSecondaryIndexes=[
            {"IndexName": name, "KeySchema": _keys(f"{prefix}PK", f"{prefix}SK"), "Projection": projection}
            for name, prefix, projection in indexes
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    client.create_table(
        TableName=METRICS,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "metric_name", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "metric_name", "KeyType": "HASH"}],
    )


def _keys(hash_: str, range_: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_, "KeyType": "HASH"}, {"AttributeName": range_, "KeyType": "RANGE"}]


def item_of(ticket: dict[str, Any]) -> dict[str, Any]:
    """Return a ticket as the item that the document puts."""
    customer, status, created = ticket["customer"]["id"], ticket["status"], ticket["created_at"]
    return {
        "PK": f"TICKET#{ticket['ticket_id']}",
        "SK": "METADATA",
        "entity_type": "ticket",
        "ticket_id": ticket["ticket_id"],
        "customer_id": customer,
        "status": status,
        "created_at": created,
        "symptom_text": ticket["symptom_text"],
        "priority": ticket["priority"],
        "GSI1PK": f"CUSTOMER#{customer}",
        "GSI1SK": f"STATUS#{status}#{created}",
        "GSI2PK": f"STATUS#{status}",
        "GSI2SK": created,
        "data": ticket,
    }


class Counters:
    """The stream's processor: what the document runs in Lambda, in a thread here."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="counters", daemon=True)

    def start(self) -> None:
        """Begin to follow the stream from its end."""
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        arn = client.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]
        iterators: dict[str, str] = {}
        while not self._stop.is_set():
            for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                if shard["ShardId"] not in iterators:
                    iterators[shard["ShardId"]] = streams.get_shard_iterator(
                        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
                    )["ShardIterator"]
            for shard_id, iterator in list(iterators.items()):
                if iterator:
                    answer = streams.get_records(ShardIterator=iterator, Limit=100)
                    iterators[shard_id] = answer.get("NextShardIterator", "")
                    for record in answer["Records"]:
                        self._count(record)
            time.sleep(0.25)

    def _count(self, record: dict[str, Any]) -> None:
        new = record["dynamodb"].get("NewImage", {})
        if record["eventName"] == "INSERT" and new.get("SK", {}).get("S") == "METADATA" and "status" in new:
            metrics.update_item(
                Key={"metric_name": f"tickets_by_status#{new['status']['S']}"},
                UpdateExpression="ADD count_value :one",
                ExpressionAttributeValues={":one": 1},
            )


@asynccontextmanager
async def _life(_: FastAPI) -> AsyncIterator[None]:
    counters = Counters()
    counters.start()
    yield
    counters.stop()


app = FastAPI(lifespan=_life)


@app.get("/tickets/{ticket_id}")
def get_ticket(ticket_id: str) -> Any:
    """A ticket by its id."""
    found = table.get_item(Key={"PK": f"TICKET#{ticket_id}", "SK": "METADATA"}).get("Item")
    if found is None:
        raise HTTPException(404)
    return _plain(found["data"])


@app.get("/tickets")
def list_tickets(customer: str, limit: int = 20) -> Any:
    """A customer's tickets."""
    answer = table.query(
        IndexName="GSI1-customer-index",
        KeyConditionExpression=Key("GSI1PK").eq(f"CUSTOMER#{customer}"),
        Limit=limit,
        ScanIndexForward=False,
    )
    return [_plain(item["data"]) for item in answer["Items"]]


@app.get("/dashboard")
def dashboard() -> Any:
    """Tickets per status, and the average time to a resolution."""
    answer = resource.batch_get_item(
        RequestItems={METRICS: {"Keys": [{"metric_name": f"tickets_by_status#{each}"} for each in STATUSES]}}
    )
    counts = {
        item["metric_name"].split("#")[1]: int(item.get("count_value", 0))
        for item in answer["Responses"][METRICS]
    }
    averages = metrics.get_item(Key={"metric_name": "avg_resolution_time"}).get("Item", {})
    count = int(averages.get("count_value", 0))
    total = float(averages.get("total_time", 0))
    return {"by_status": counts, "resolution_s": total / count if count else 0}


@app.post("/tickets", status_code=201)
def create_ticket(body: dict[str, Any], request: Request) -> Any:
    """A new ticket with its first event, once for each key."""
    key = request.headers.get("idempotency-key", uuid.uuid4().hex)
    held = table.get_item(Key={"PK": f"IDEMPOTENCY#{key}", "SK": "METADATA"}).get("Item")
    if held is not None:
        return json.loads(held["response"])
    now = datetime.now(UTC)
    ticket = {
        "ticket_id": f"tkt_{uuid.uuid4()}",
        "customer": {"id": body["customer_id"]},
        "status": "NEW",
        "created_at": now.isoformat(),
        "symptom_text": body["symptom_text"],
        "priority": body.get("priority", "P3"),
    }
    reply = {"ticket_id": ticket["ticket_id"], "status": "NEW"}
    expires = int((now + timedelta(hours=24)).timestamp())
    absent = "attribute_not_exists(PK)"
    outcome = {"PK": f"IDEMPOTENCY#{key}", "SK": "METADATA", "response": json.dumps(reply), "ttl": expires}
    event = {
        "PK": f"TICKET#{ticket['ticket_id']}",
        "SK": f"EVENT#{now.isoformat()}#001",
        "event_type": "ticket_created",
        "timestamp": now.isoformat(),
    }
    resource.meta.client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": TABLE, "Item": outcome, "ConditionExpression": absent}},
            {"Put": {"TableName": TABLE, "Item": item_of(ticket)}},
            {"Put": {"TableName": TABLE, "Item": event}},
        ]
    )
    return reply


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    return value
