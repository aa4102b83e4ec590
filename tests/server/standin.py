"""An engine that stores rows in a dict: enough for the server's own rules, without DynamoDB."""

from __future__ import annotations

import json
from collections.abc import Generator
from time import sleep

from tavola.engine import ItemAccess, PendingCall, RequestContext
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.faults import ConditionalCheckFailedFault, ValidationFault


class StandIn:
    """Implements `ServedEngine`. PutItem writes, GetItem reads; other operations each show one behaviour."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Scope, str], bytes] = {}
        self.calls: list[tuple[str, Scope]] = []
        self.commits = 0
        self.tended = 0
        self.more_to_tend = 0
        self.commit_error: Exception | None = None
        self.unready_reason: str | None = None
        self.answer_bytes = 0  # of Scan
        self.read_slices = 3  # of ExecuteStatement and BatchGetItem
        self.rows_bytes = 1  # of what it reads for a missing row
        self.fails_in_slice = 0
        self.slices_run = self.reads_ended = self.most_reads_advanced = 0
        self._advancing: set[int] = set()  # reads past their first slice
        self._held = False
        self._pending: dict[tuple[Scope, str], bytes] = {}

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    def collect_writes(self) -> None:
        self._held = True

    def commit(self) -> None:
        pending, self._pending = self._pending, {}
        self._held = False
        self.commits += bool(pending)
        if self.commit_error is not None and pending:
            raise self.commit_error
        self.rows.update(pending)

    def run_background_work(self, budget_ms: float) -> bool:
        self.tended += 1
        self.more_to_tend -= self.more_to_tend > 0
        return self.more_to_tend > 0

    def resume(self, read: PendingCall, slice_s: float) -> bytes | None:
        return read.run(slice_s)

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope,
        context: RequestContext | None = None,
        *,
        slice_s: float | None = None,
    ) -> bytes | PendingCall:
        self.calls.append((operation, scope))
        if context is not None and context.accesses is not None:
            context.accesses.append(ItemAccess(table_arn(scope, "Orders"), None, body, 0.5, 0.0))
        match operation:
            case "PutItem":
                assert self._held, "the server writes inside a group"
                key = json.loads(body)["key"]
                self._pending[scope, key] = body
                return b"{}"
            case "GetItem":
                key = (scope, json.loads(body)["key"])
                return self._pending.get(key) or self.rows.get(key) or b"{}"
            case "DeleteItem":
                raise ConditionalCheckFailedFault
            case "Scan":
                return b'"' + b"x" * self.answer_bytes + b'"'
            case "ExecuteStatement" | "BatchGetItem":
                return PendingCall(self._long_read(scope))
            case "Query":
                raise ValidationFault("The table has no such index")
            case _:
                raise RuntimeError(f"secret of the inside: {operation}")

    def _long_read(self, scope: Scope) -> Generator[None, None, bytes]:
        """Read the key "long" in each of some slices."""
        seen = []
        try:
            for number in range(1, self.read_slices + 1):
                if number == self.fails_in_slice:
                    raise RuntimeError("planted")
                row = (
                    self._pending.get((scope, "long"))
                    or self.rows.get((scope, "long"))
                    or b"-" * self.rows_bytes
                )
                seen.append(row.decode())
                self.slices_run += 1
                if number > 1:
                    self._advancing.add(id(seen))
                    self.most_reads_advanced = max(self.most_reads_advanced, len(self._advancing))
                sleep(0.002)
                yield
            return json.dumps(seen).encode()
        finally:
            self._advancing.discard(id(seen))
            self.reads_ended += 1
