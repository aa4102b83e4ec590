"""Loops: sixteen tasks on one connection, and a server on the same loop, in a process that is killed while they write.

Each task writes items of its own, one after another and in batches, and tells each that was answered through a pipe.
What came through must be in the file when it is opened again: an answer comes after its sync, anyone who made it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from tavola import AsyncConnection, connect_async
from tavola.backends import embedded
from tavola.engine import Engine
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import Server
from tests.durability.history import open_store
from tests.durability.state import scan

TASKS = 16
SERVED = 4  # of them, over HTTP
TABLE = {
    "TableName": "told",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}


async def write(path: Path, *, blind: bool) -> None:
    """Write until killed. `blind` is a planted fault: a connection that waits for no sync."""
    if blind:
        setattr(embedded._SharedCommit, "is_pending", property(lambda _: False))  # noqa: B010 - planted
    engine = open_store(path)
    if not engine.call("ListTables", {})["TableNames"]:
        engine.call("CreateTable", TABLE)
    server = Server(engine, port=0)
    await server.start()
    async with connect_async(engine) as connection:
        served = 0 if blind else SERVED
        await asyncio.gather(
            *(_ask(connection, task) for task in range(TASKS - served)),
            *(_post(server.endpoint, task) for task in range(TASKS - served, TASKS)),
        )


async def _ask(connection: AsyncConnection, task: int) -> None:
    """Write by the connection: every third time several at once."""
    number = 0
    while True:
        names = [_name(task, number + n) for n in range(60 if number % 3 == 2 else 1)]
        puts = [{"PutRequest": {"Item": {"pk": {"S": name}}}} for name in names]
        if len(puts) == 1:
            await connection.call("PutItem", {"TableName": "told", **puts[0]["PutRequest"]})
        else:
            parts = [puts[at : at + 25] for at in range(0, len(puts), 25)]
            backend = connection.backend
            assert isinstance(backend, embedded.AsyncEmbeddedBackend)
            answers = await backend.call_all(
                [("BatchWriteItem", {"RequestItems": {"told": part}}) for part in parts]
            )
            assert all(isinstance(answer, dict) for answer in answers), answers
        _tell(names)
        number += len(names)


async def _post(endpoint: ServerEndpoint, task: int) -> None:
    """Write over HTTP, to the server on the same loop."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    number = 0
    while True:
        name = _name(task, number)
        body = json.dumps({"TableName": "told", "Item": {"pk": {"S": name}}})
        writer.write(
            f"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"
            f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        assert head.startswith(b"HTTP/1.1 200"), head
        _tell([name])
        number += 1


def _name(task: int, number: int) -> str:
    return f"{os.getpid()}-{task}-{number}"


def _tell(names: list[str]) -> None:
    os.write(1, "".join(f"{name}\n" for name in names).encode())


def kill_once(path: Path, random: Random, *, blind: bool = False) -> set[str]:
    """Start a writer and kill it after a random number of answers; return what it reported."""
    arguments = [sys.executable, "-m", "tests.durability.loops", str(path), str(int(blind))]
    result: set[str] = set()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        left = random.randint(20, 2000)
        for line in child.stdout:
            if line.endswith(b"\n"):
                result.add(line.decode().strip())
            left -= 1
            if left == 0:
                child.send_signal(signal.SIGKILL)
    return result


def stored(path: Path) -> set[str]:
    """Return what is in the file."""
    engine: Engine
    with open_store(path) as engine:
        items: list[dict[str, Any]] = scan(engine, "told")
        return {item["pk"]["S"] for item in items}


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), blind=sys.argv[2] == "1"))
