"""A probe run: calls with retries, and the tables and backups that it creates and removes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tavola.client.backend import Backend
from tavola.clock import monotonic, pause
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault

# Transient: another operation must finish first
BUSY = frozenset(
    {"ResourceInUseException", "TableInUseException", "BackupInUseException", "LimitExceededException"}
)

_LACKING = frozenset({"UnknownOperationException", "ValidationException", "SerializationException"})
_LACKING_WORDS = ("unsupported", "not supported", "not implemented")
_STEP_S = 0.05


class ProbeBlocked(TavolaError):
    """A call that prepares a test failed, so the test has no result."""


@dataclass(slots=True)
class ProbeRun:
    """One run: the endpoint, and the tables and backups created there."""

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
        """Call again while a resource is busy, until the time is up; then raise the fault."""
        deadline = monotonic() + self.wait_s
        while True:
            try:
                return self.call(operation, **request)
            except Fault as fault:
                if not _is_transient(fault) or monotonic() >= deadline:
                    raise
            pause(_STEP_S)

    def name(self, part: str) -> str:
        return f"{self.prefix}-{part}"

    def create_table(self, part: str, **options: Any) -> str:
        """Create a table with a partition and a sort key of type S, and wait for it."""
        name: str = options.pop("TableName", self.name(part))
        request: dict[str, Any] = {
            "TableName": name,
            "AttributeDefinitions": [text_attribute("pk"), text_attribute("sk")],
            "KeySchema": [hash_key("pk"), range_key("sk")],
            "BillingMode": "PAY_PER_REQUEST",
            **options,
        }
        self.tables.append(name)
        self.call("CreateTable", **request)
        self.wait_until(lambda: self.describe_table(name).get("TableStatus") == "ACTIVE")
        return name

    def describe_table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self.prepare("DescribeTable", TableName=name)["Table"]
        return table

    def prepare(self, operation: str, **request: Any) -> dict[str, Any]:
        """Make a call that every implementation supports and that is not under test."""
        try:
            return self.call_until_ready(operation, **request)
        except Fault as fault:
            raise ProbeBlocked(f"{operation} answers {fault.code}: {fault}") from fault

    def wait_until(self, done: Callable[[], bool]) -> bool:
        """Poll until `done` is true or the time is up; return whether it became true."""
        deadline = monotonic() + self.wait_s
        while not done():
            if monotonic() >= deadline:
                return False
            pause(_STEP_S)
        return True

    def put(self, table: str, pk: str, /, sk: str = "a", **attributes: Any) -> None:
        self.prepare("PutItem", TableName=table, Item={"pk": {"S": pk}, "sk": {"S": sk}, **attributes})

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
        """Delete backups and tables, waiting while they are busy; return those that remain."""
        deadline = monotonic() + clear_s
        remaining = [arn for arn in self.backups if not self._remove("DeleteBackup", deadline, BackupArn=arn)]
        remaining += [
            name for name in self.tables if not self._remove("DeleteTable", deadline, TableName=name)
        ]
        for name in self.tables:
            while name not in remaining and self._exists(name) and monotonic() < deadline:
                pause(_STEP_S)
        return remaining

    def _remove(self, operation: str, deadline: float, **request: Any) -> bool:
        unprotected = False
        while True:
            try:
                self.call(operation, **request)
            except Fault as fault:
                if fault.code in ("ResourceNotFoundException", "BackupNotFoundException"):
                    return True
                if fault.code == "ValidationException" and "TableName" in request and not unprotected:
                    # Deletion protection was under test
                    unprotected = unprotect_table(self, request["TableName"])
                    if unprotected:
                        continue
                if not _is_transient(fault) or monotonic() >= deadline:
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
    """Disable a table's deletion protection; return whether it is off, or the table gone."""
    try:
        run.call("UpdateTable", TableName=name, DeletionProtectionEnabled=False)
    except Fault as fault:
        return fault.code == "ResourceNotFoundException"  # it was deleted after all
    return True


def is_unsupported(fault: Fault) -> bool:
    """Return whether a fault means that the feature does not exist; denied or busy does not."""
    if _is_transient(fault) or fault.code.startswith("AccessDenied"):
        return False
    return fault.code in _LACKING or any(word in str(fault).lower() for word in _LACKING_WORDS)


def _is_transient(fault: Fault) -> bool:
    """Return whether the same call may succeed later."""
    return fault.retryable or fault.code in BUSY


def text_attribute(name: str) -> dict[str, str]:
    """Return the definition of an attribute of type S."""
    return {"AttributeName": name, "AttributeType": "S"}


def hash_key(name: str) -> dict[str, str]:
    """Return the schema element of a partition key."""
    return {"AttributeName": name, "KeyType": "HASH"}


def range_key(name: str) -> dict[str, str]:
    """Return the schema element of a sort key."""
    return {"AttributeName": name, "KeyType": "RANGE"}


def index_definition(name: str, *schema: dict[str, str], included: Sequence[str] = ()) -> dict[str, Any]:
    """Return the definition of an index that projects all attributes, or only some."""
    projection = (
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": included} if included else {"ProjectionType": "ALL"}
    )
    return {"IndexName": name, "KeySchema": list(schema), "Projection": projection}
