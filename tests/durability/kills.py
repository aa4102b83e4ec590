"""Kills: a writer in a process of its own is killed with SIGKILL while it works, and its file opened again.

The writer tells each acknowledgement through a pipe; what came through is the ledger. Each of its threads has a
table of its own, so that each thread's work is a history of its own, in one store.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

from tavola.engine import Engine, StoreError
from tavola.protocol.faults import Fault
from tests.durability.history import open_store
from tests.durability.state import faults_in, scan, settle

THREADS = 4
ACCOUNTS = 4
TOTAL = 100 * ACCOUNTS


def table_of(thread: int) -> str:
    """Return the name of a thread's table."""
    return f"ledger-{thread}"


def write(path: Path, seed: int, early: bool) -> None:
    """Write until killed; after each acknowledged step, tell its thread and number on standard output.

    A step counts all accounts of its table up, in one transaction with a token, and moves an amount between two.
    `early` is a planted fault: the step is reported before it is done.
    """
    engine = open_store(path)
    for thread in range(THREADS):
        _make(engine, table_of(thread))
    workers = [
        threading.Thread(target=_work, args=(engine, thread, seed, early), daemon=True)
        for thread in range(THREADS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _work(engine: Engine, thread: int, seed: int, early: bool) -> None:
    number = _reached(engine, table_of(thread))
    while True:
        number += 1
        if early:
            _tell(thread, number)
        engine.call("TransactWriteItems", step(thread, number, seed))
        if not early:
            _tell(thread, number)


def step(thread: int, number: int, seed: int) -> dict[str, object]:
    """Return a thread's step: one transaction over every account."""
    random = Random(f"{seed}/{thread}/{number}")
    source, target = random.sample(range(ACCOUNTS), 2)
    moved = random.randint(1, 9)
    changes = {source: -moved, target: moved}
    return {
        "ClientRequestToken": f"{thread}-{number}",
        "TransactItems": [
            {
                "Update": {
                    "TableName": table_of(thread),
                    "Key": {"pk": {"S": f"account {account}"}},
                    "UpdateExpression": "SET step = :step, note = :note ADD amount :moved",
                    "ConditionExpression": "step = :before",
                    "ExpressionAttributeValues": {
                        ":step": {"N": str(number)},
                        ":before": {"N": str(number - 1)},
                        ":moved": {"N": str(changes.get(account, 0))},
                        ":note": {"S": "x" * random.choice([10, 2000])},
                    },
                }
            }
            for account in range(ACCOUNTS)
        ],
    }


def faults_after_kill(path: Path, ledger: dict[int, int], seed: int) -> list[str]:
    """Return what is wrong with a store whose writer was killed after these acknowledgements.

    The ledger is brought up to what was found, for the next writer on the same file.
    """
    wrong: list[str] = []
    try:
        engine = open_store(path)
    except StoreError as error:
        return [f"I10 the store cannot be opened: {error}"]
    with engine:
        settle(engine)
        try:
            wrong += [f"I4 {fault}" for fault in faults_in(engine)]
            tables = engine.call("ListTables", {})["TableNames"]
            for thread in range(THREADS):
                result = ledger.get(thread, 0)
                if table_of(thread) in tables:
                    wrong += _thread_faults(engine, thread, ledger, seed)
                elif result:
                    wrong.append(f"I1 the table of thread {thread} is gone")
        except (Fault, StoreError) as error:
            wrong.append(f"I10 the store cannot be read: {error}")
    return wrong


def _thread_faults(engine: Engine, thread: int, ledger: dict[int, int], seed: int) -> list[str]:
    table, result = table_of(thread), ledger.get(thread, 0)
    items = scan(engine, table)
    steps = {int(item["step"]["N"]) for item in items}
    if not items and not result:
        return []
    if len(items) != ACCOUNTS:
        return [f"I1 {table} has {len(items)} accounts"]
    if len(steps) != 1:
        return [f"I2 {table} holds parts of the steps {sorted(steps)}"]
    if sum(int(item["amount"]["N"]) for item in items) != TOTAL:
        return [f"I2 {table} has lost or made money"]
    (reached,) = steps
    ledger[thread] = reached
    if not result <= reached <= result + 1:
        return [f"I1 {table} is at step {reached}; {result} were acknowledged"]
    if reached:
        engine.call("TransactWriteItems", step(thread, reached, seed))
        if _reached(engine, table) != reached or scan(engine, table) != items:
            return [f"I7 the token of step {reached} of {table} had a second effect"]
    return []


def kill_once(path: Path, ledger: dict[int, int], random: Random, seed: int, *, early: bool = False) -> None:
    """Start a writer and kill it after a random number of acknowledgements, which go into the ledger."""
    arguments = [sys.executable, "-m", "tests.durability.kills", str(path), str(seed), str(int(early))]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        left = random.randint(1, 60)
        for line in child.stdout:
            if line.endswith(b"\n"):
                thread, number = line.split()
                ledger[int(thread)] = int(number)
            left -= 1
            if left == 0:
                child.send_signal(signal.SIGKILL)


def kill_server(path: Path, ledger: dict[int, int], random: Random, seed: int) -> None:
    """Start `tavola serve` on the file, write to it over HTTP, and kill it; what was answered is the ledger."""
    with open_store(path) as engine:
        for thread in range(THREADS):
            _make(engine, table_of(thread))
            ledger[thread] = _reached(engine, table_of(thread))
    arguments = [sys.executable, "-m", "tavola", "serve", str(path), "--port", "0", "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        result = json.loads(server.stdout.readline())
        enough = threading.Event()
        left = [random.randint(1, 100)]

        def ask(thread: int) -> None:
            connection = HTTPConnection(result["host"], result["port"], timeout=10)
            headers = {
                "X-Amz-Target": "DynamoDB_20120810.TransactWriteItems",
                "Content-Type": "application/x-amz-json-1.0",
            }
            number = ledger[thread]
            try:
                while True:
                    number += 1
                    connection.request("POST", "/", json.dumps(step(thread, number, seed)), headers)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status != 200:
                        return
                    ledger[thread] = number
                    left[0] -= 1
                    if left[0] <= 0:
                        enough.set()
            except (OSError, HTTPException):
                return  # killed while it was asked
            finally:
                connection.close()
                enough.set()

        clients = [threading.Thread(target=ask, args=(thread,)) for thread in range(THREADS)]
        for client in clients:
            client.start()
        enough.wait(20)
        server.send_signal(signal.SIGKILL)
        for client in clients:
            client.join()


_TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "step", "AttributeType": "N"},
        {"AttributeName": "amount", "AttributeType": "N"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-step",
            "KeySchema": [
                {"AttributeName": "step", "KeyType": "HASH"},
                {"AttributeName": "amount", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def _make(engine: Engine, table: str) -> None:
    """Make a table and its accounts, or what a killed writer left undone of that."""
    if table not in engine.call("ListTables", {})["TableNames"]:
        engine.call("CreateTable", {"TableName": table, **_TABLE})
    if scan(engine, table):
        return
    accounts = [
        {"PutRequest": {"Item": {"pk": {"S": f"account {n}"}, "step": {"N": "0"}, "amount": {"N": "100"}}}}
        for n in range(ACCOUNTS)
    ]
    engine.call("BatchWriteItem", {"RequestItems": {table: accounts}})


def _reached(engine: Engine, table: str) -> int:
    return max(int(item["step"]["N"]) for item in scan(engine, table))


def _tell(thread: int, number: int) -> None:
    os.write(1, f"{thread} {number}\n".encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
