"""Kills: a consumer in a process of its own is killed with SIGKILL again and again, while eight writers write.

The consumer keeps its checkpoints in a file and its effects in a table: for each record a marker that can be
written once, in one transaction with the count of its key. So a redelivery changes nothing, and what is lost
or counted twice shows. Shards roll about three times a second, so that consumers die amid lineages too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tavola import Engine
from tavola.protocol.faults import TransactionCanceledFault
from tavola.server.listener import running
from tavola.triggers import Backoff, EventSourceMapping, Trigger
from tests.triggers.endpoint import PlainEndpoint
from tests.triggers.scenario import checkpoint_before_the_handler, children_before_their_parents

WRITERS = 8
SHARD_LIFE_S = 0.3
PLANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "": nullcontext,
    "checkpoint": checkpoint_before_the_handler,
    "children": children_before_their_parents,
}


@dataclass
class Run:
    """What was written, what was delivered, and how often the consumer died."""

    written: dict[str, int] = field(default_factory=dict)
    delivered: list[tuple[str, int]] = field(default_factory=list)
    kills: int = 0
    shards: int = 0  # that there were in the end, closed ones too


def consume(url: str, checkpoints: Path, seed: int, plant: str, *, to_the_end: bool) -> None:
    """Be the consumer; each record that comes is told on standard output, and then counted."""
    random = Random(seed)
    endpoint = PlainEndpoint(url)
    # Half of them die by their own hand at the worst moments: before a record is counted, or just after.
    worst = plant == "checkpoint" or random.random() < 0.5
    left = 1 if plant else random.choice([1, 2, 5])
    before = plant == "checkpoint" or random.random() < 0.5

    def handler(event: dict[str, Any], context: object) -> None:
        nonlocal left
        for record in event["Records"]:
            image = record["dynamodb"]["NewImage"]
            os.write(1, f"{image['pk']['S']} {image['version']['N']}\n".encode())
            left -= 1
            if left == 0 and worst and before and not to_the_end:
                os.kill(os.getpid(), signal.SIGKILL)
            _count(endpoint, record["eventID"], image)
            if left == 0 and worst and not to_the_end:
                os.kill(os.getpid(), signal.SIGKILL)

    mapping = EventSourceMapping(
        batch_size=50 if plant else random.choice([1, 5, 50]),  # a planted fault shows in large batches
        bisect_batch_on_function_error=random.random() < 0.5,
    )
    with (
        PLANTS[plant](),
        Trigger(
            endpoint,
            table="events",
            handler=handler,
            mapping=mapping,
            checkpoints=checkpoints,
            backoff=Backoff(first_s=0.01),
            poll_s=0.01,
            discovery_s=0.1,
        ) as trigger,
    ):
        if to_the_end:
            trigger.drain(60)
        else:
            trigger.run()


def _count(endpoint: PlainEndpoint, event_id: str, image: dict[str, Any]) -> None:
    """Count a record once, however often it comes."""
    try:
        endpoint.call(
            "TransactWriteItems",
            {
                "TransactItems": [
                    {
                        "Put": {
                            "TableName": "counts",
                            "Item": {"pk": {"S": f"event#{event_id}"}},
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                    {
                        "Update": {
                            "TableName": "counts",
                            "Key": {"pk": {"S": f"sum#{image['pk']['S']}"}},
                            "UpdateExpression": "SET latest = :version ADD counted :one",
                            "ExpressionAttributeValues": {":one": {"N": "1"}, ":version": image["version"]},
                        }
                    },
                ]
            },
        )
    except TransactionCanceledFault as fault:
        if fault.reasons[0].code != "ConditionalCheckFailed":  # only that means: counted already
            raise


def campaign(folder: Path, seed: int, kills: int, writes: int, plant: str = "") -> tuple[Run, list[str]]:
    """Kill a consumer so often under eight writers, let the last one finish, and return what is wrong."""
    random = Random(seed)
    run = Run()
    with (
        patch("tavola.engine.streams.STREAM_SHARD_LIFE_S", SHARD_LIFE_S),
        patch("tavola.engine.background._CLEANUP_S", SHARD_LIFE_S / 5),
        Engine.open(folder / "store.db", sync="off") as engine,
        running(engine) as endpoint,
    ):
        _make(engine)
        writers = [
            threading.Thread(target=_write, args=(engine, writer, writes, seed, run))
            for writer in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        while run.kills < kills:
            _kill_one(endpoint.url, folder / "checkpoints", random, plant, run)
        for writer in writers:
            writer.join()
        _consume_the_rest(endpoint.url, folder / "checkpoints", plant, run)
        run.shards = len(
            engine.call("DescribeStream", {"StreamArn": _stream(engine)})["StreamDescription"]["Shards"]
        )
        return run, _faults(engine, run)


def _kill_one(url: str, checkpoints: Path, random: Random, plant: str, run: Run) -> None:
    left = random.choice([1, 1, 3, 10, 30])
    with _consumer(url, checkpoints, random.getrandbits(30), plant, "run") as child:
        assert child.stdout is not None
        idle_s = 20.0 if plant else 1.0  # where nothing is left to be delivered it dies idle
        killer = threading.Timer(idle_s, child.kill)
        killer.start()
        for line in child.stdout:
            _note(line, run)
            left -= 1
            if left == 0:
                child.send_signal(signal.SIGKILL)
        killer.cancel()
    run.kills += 1


def _consume_the_rest(url: str, checkpoints: Path, plant: str, run: Run) -> None:
    with _consumer(url, checkpoints, 1, plant, "drain") as child:
        assert child.stdout is not None
        for line in child.stdout:
            _note(line, run)
    assert child.returncode == 0, "the last consumer did not come to the end"


def _consumer(url: str, checkpoints: Path, seed: int, plant: str, how: str) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "tests.triggers.kills", url, str(checkpoints), str(seed), plant, how]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def _note(line: bytes, run: Run) -> None:
    if line.endswith(b"\n"):
        key, version = line.decode().split()
        run.delivered.append((key, int(version)))


def _write(engine: Engine, writer: int, writes: int, seed: int, run: Run) -> None:
    """Write versions of a few keys of one's own, one after the other."""
    random = Random(f"{seed}/{writer}")
    pause = threading.Event()
    for _ in range(writes):
        key = f"w{writer}-{random.randint(0, 3)}"
        version = run.written.get(key, 0) + 1
        item = {"pk": {"S": key}, "version": {"N": str(version)}}
        engine.call("PutItem", {"TableName": "events", "Item": item})
        run.written[key] = version
        pause.wait(random.random() * 0.04)


def _make(engine: Engine) -> None:
    for table, stream in (("events", True), ("counts", False)):
        engine.call(
            "CreateTable",
            {
                "TableName": table,
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
                if stream
                else {"StreamEnabled": False},
            },
        )


def _stream(engine: Engine) -> str:
    arn: str = engine.call("DescribeTable", {"TableName": "events"})["Table"]["LatestStreamArn"]
    return arn


def _faults(engine: Engine, run: Run) -> list[str]:
    faults: list[str] = []
    for key, version in sorted(run.written.items()):
        found = engine.call("GetItem", {"TableName": "counts", "Key": {"pk": {"S": f"sum#{key}"}}}).get(
            "Item"
        )
        counted = 0 if found is None else int(found["counted"]["N"])
        if counted != version:
            faults.append(f"I5 {key} was written {version} times and counted {counted} times")
        elif found is not None and int(found["latest"]["N"]) != version:
            faults.append(f"I5 {key} ends at {found['latest']['N']} and not at {version}")
    first: dict[str, list[int]] = {}
    for key, version in dict.fromkeys(run.delivered):
        first.setdefault(key, []).append(version)
    faults += [f"I5 {key} came out of order: {came}" for key, came in first.items() if came != sorted(came)]
    return faults


if __name__ == "__main__":
    consume(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], to_the_end=sys.argv[5] == "drain")
