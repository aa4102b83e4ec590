"""Probing: a probe's calls, its patience, and the tables and backups of its own that it removes again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tavola.client.backend import Backend
from tavola.clock import monotonic, pause
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault

BUSY = frozenset(
    {"ResourceInUseException", "TableInUseException", "BackupInUseException", "LimitExceededException"}
)  # what passes when others have finished

_LACKING = frozenset({"UnknownOperationException", "ValidationException", "SerializationException"})
_LACKING_WORDS = ("unsupported", "not supported", "not implemented")
_STEP_S = 0.05


class ProbeBlocked(TavolaError):
    """A call that only prepares a finding failed: it says nothing of what was to be found out."""


@dataclass(slots=True)
class ProbeRun:
    """One run: the server, and the tables and backups that were made there."""

    backend: Backend
    prefix: str
    wait_s: float
    tables: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)  # their ARNs
    calls: int = 0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        self.calls += 1
        return self.backend.call(operation, request)

    def call_until_ready(self, operation: str, **request: Any) -> dict[str, Any]:
        """Ask again while something is busy there, until the patience ends; then its fault is the answer."""
        deadline = monotonic() + self.wait_s
        while True:
            try:
                return self.call(operation, **request)
            except Fault as fault:
                if not _passes(fault) or monotonic() >= deadline:
                    raise
            pause(_STEP_S)

    def name(self, part: str) -> str:
        return f"{self.prefix}-{part}"

    def make(self, part: str, **more: Any) -> str:
        """Make a table of one's own with a key of two texts, and wait for it."""
        name: str = more.pop("TableName", self.name(part))
        request: dict[str, Any] = {
            "TableName": name,
            "AttributeDefinitions": [text_attribute("pk"), text_attribute("sk")],
            "KeySchema": [hash_key("pk"), range_key("sk")],
            "BillingMode": "PAY_PER_REQUEST",
            **more,
        }
        self.tables.append(name)
        self.call("CreateTable", **request)
        self.wait_until(lambda: self.describe_table(name).get("TableStatus") == "ACTIVE")
        return name

    def describe_table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self.prepare("DescribeTable", TableName=name)["Table"]
        return table

    def prepare(self, operation: str, **request: Any) -> dict[str, Any]:
        """Ask for something that every engine has, and that is not what is to be found out."""
        try:
            return self.call_until_ready(operation, **request)
        except Fault as fault:
            raise ProbeBlocked(f"{operation} answers {fault.code}: {fault}") from fault

    def wait_until(self, done: Callable[[], bool]) -> bool:
        """Ask again until something is so, or the patience ends; return whether it came to be."""
        deadline = monotonic() + self.wait_s
        while not done():
            if monotonic() >= deadline:
                return False
            pause(_STEP_S)
        return True

    def put(self, table: str, pk: str, /, sk: str = "a", **more: Any) -> None:
        self.prepare("PutItem", TableName=table, Item={"pk": {"S": pk}, "sk": {"S": sk}, **more})

    def get(self, table: str, pk: str, sk: str = "a") -> dict[str, Any]:
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        answer = self.prepare("GetItem", TableName=table, Key=key, ConsistentRead=True)
        item: dict[str, Any] = answer.get("Item", {})
        return item

    def query(self, table: str, index: str | None, condition: str, **values: str) -> list[dict[str, Any]]:
        request: dict[str, Any] = {
            "TableName": table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in values.items()},
        }
        items: list[dict[str, Any]] = self.call(
            "Query", **(request if index is None else request | {"IndexName": index})
        )["Items"]
        return items

    def clear(self, clear_s: float) -> list[str]:
        """Take backups and tables away again, with patience while they are busy; return those that stayed."""
        deadline = monotonic() + clear_s
        left = [arn for arn in self.backups if not self._remove("DeleteBackup", deadline, BackupArn=arn)]
        left += [name for name in self.tables if not self._remove("DeleteTable", deadline, TableName=name)]
        for name in self.tables:
            while name not in left and self._exists(name) and monotonic() < deadline:
                pause(_STEP_S)
        return left

    def _remove(self, operation: str, deadline: float, **request: Any) -> bool:
        freed = False
        while True:
            try:
                self.call(operation, **request)
            except Fault as fault:
                if fault.code in ("ResourceNotFoundException", "BackupNotFoundException"):
                    return True
                if fault.code == "ValidationException" and "TableName" in request and not freed:
                    freed = unprotect_table(self, request["TableName"])  # a table that was made to be kept
                    if freed:
                        continue
                if not _passes(fault) or monotonic() >= deadline:
                    return False
            except TavolaError:
                return False
            else:
                return True
            pause(_STEP_S)

    def _exists(self, name: str) -> bool:
        try:
            self.call("DescribeTable", TableName=name)
        except TavolaError:
            return False
        return True


def unprotect_table(run: ProbeRun, name: str) -> bool:
    """Take a table's protection from deletion off; return whether it is off, or the table gone."""
    try:
        run.call("UpdateTable", TableName=name, DeletionProtectionEnabled=False)
    except Fault as fault:
        return fault.code == "ResourceNotFoundException"  # it was deleted after all
    return True


def is_unsupported(fault: Fault) -> bool:
    """Return whether a fault says that the server has no such thing; that somebody may not, or it is busy, says nothing."""
    if _passes(fault) or fault.code.startswith("AccessDenied"):
        return False
    return fault.code in _LACKING or any(word in str(fault).lower() for word in _LACKING_WORDS)


def _passes(fault: Fault) -> bool:
    """Return whether the same call may succeed in a while."""
    return fault.retryable or fault.code in BUSY


def text_attribute(name: str) -> dict[str, str]:
    """Return the definition of an attribute of text."""
    return {"AttributeName": name, "AttributeType": "S"}


def hash_key(name: str) -> dict[str, str]:
    """Return an attribute as a partition key."""
    return {"AttributeName": name, "KeyType": "HASH"}


def range_key(name: str) -> dict[str, str]:
    """Return an attribute as a sort key."""
    return {"AttributeName": name, "KeyType": "RANGE"}
