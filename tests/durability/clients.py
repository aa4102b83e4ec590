"""Clients: threads on one engine, each asking transactions; what they saw is a history for the checker."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tavola.engine import Engine
from tavola.protocol.faults import Fault, InternalServerFault
from tests.durability.serial import Transaction

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
TABLE = "lists"
_LISTS = 4


def create(ask: Ask) -> None:
    """Make the table of lists."""
    ask(
        "CreateTable",
        {
            "TableName": TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        },
    )


def run_clients(ask: Ask, threads: int, transactions: int, seed: int) -> list[Transaction]:
    """Let threads append to and read lists; return what each did and saw."""
    ticks, numbers = count(), count(1)
    history: list[Transaction] = []
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        random = Random(f"{seed}/{thread}")
        try:
            for _ in range(transactions):
                keys = [f"list {key}" for key in random.sample(range(_LISTS), random.randint(1, 3))]
                transaction = Transaction(next(numbers))
                history.append(transaction)
                transaction.asked = next(ticks)
                match random.randrange(5):
                    case 0 | 1:
                        _append(ask, transaction, keys, spoilt=random.random() < 0.1)
                    case 2:
                        _append(ask, transaction, keys[:1], spoilt=False)
                    case 3:
                        _read_together(ask, transaction, keys)
                    case _:
                        _read_one(ask, transaction, keys[0])
                transaction.answered = next(ticks)
        except BaseException as error:  # noqa: BLE001  # told by the thread that waits
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change places as often as they can
    try:
        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise failures[0]
    return history


def final_lists(ask: Ask) -> dict[str, tuple[int, ...]]:
    """Return the lists as they are in the end."""
    items = ask("Scan", {"TableName": TABLE})["Items"]
    return {item["pk"]["S"]: _members(item) for item in items}


def torn(engine: Engine) -> Ask:
    """Return a planted fault: transactions done one action after another."""

    def ask(operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation == "TransactWriteItems":
            for action in request["TransactItems"]:
                ((kind, one),) = action.items()
                if kind == "Update":
                    engine.call("UpdateItem", one)
            return {}
        if operation == "TransactGetItems":
            gets = [engine.call("GetItem", action["Get"]) for action in request["TransactItems"]]
            return {"Responses": gets}
        return engine.call(operation, request)

    return ask


def stale(engine: Engine) -> Ask:
    """Return a planted fault: now and then a read is answered with what was true a moment ago."""
    kept: dict[str, dict[str, Any]] = {}
    turns = count()

    def ask(operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation != "GetItem":
            return engine.call(operation, request)
        name = request["Key"]["pk"]["S"]
        if next(turns) % 7 or name not in kept:
            kept[name] = engine.call(operation, request)
        return kept[name]

    return ask


def _append(ask: Ask, transaction: Transaction, keys: list[str], *, spoilt: bool) -> None:
    transaction.appends = tuple(keys)
    updates = [
        {
            "TableName": TABLE,
            "Key": {"pk": {"S": key}},
            "UpdateExpression": "SET members = list_append(if_not_exists(members, :none), :own)",
            "ExpressionAttributeValues": {
                ":none": {"L": []},
                ":own": {"L": [{"N": str(transaction.number)}]},
            },
        }
        for key in keys
    ]
    try:
        if len(updates) == 1 and not spoilt:
            ask("UpdateItem", updates[0])
            return
        actions: list[dict[str, Any]] = [{"Update": update} for update in updates]
        if spoilt:
            check = {
                "TableName": TABLE,
                "Key": {"pk": {"S": "nothing"}},
                "ConditionExpression": "attribute_exists(pk)",
            }
            actions.append({"ConditionCheck": check})
        ask("TransactWriteItems", {"TransactItems": actions})
    except InternalServerFault:
        raise
    except Fault:
        transaction.refused = True


def _read_together(ask: Ask, transaction: Transaction, keys: list[str]) -> None:
    gets = [{"Get": {"TableName": TABLE, "Key": {"pk": {"S": key}}}} for key in keys]
    answers = ask("TransactGetItems", {"TransactItems": gets})["Responses"]
    for key, answer in zip(keys, answers, strict=True):
        transaction.reads[key] = _members(answer.get("Item"))


def _read_one(ask: Ask, transaction: Transaction, key: str) -> None:
    answer = ask("GetItem", {"TableName": TABLE, "Key": {"pk": {"S": key}}, "ConsistentRead": True})
    transaction.reads[key] = _members(answer.get("Item"))


def _members(item: dict[str, Any] | None) -> tuple[int, ...]:
    return tuple(int(member["N"]) for member in item["members"]["L"]) if item else ()
