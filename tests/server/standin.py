"""An engine that keeps rows in a dict: what the server's own rules need, and no DynamoDB."""

from __future__ import annotations

import json

from tavola.engine import ItemAccess, RequestContext
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
        self.write_failure: str | None = None
        self.answer_bytes = 0  # of Scan
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

    def execute(
        self, operation: str, body: bytes, scope: Scope, context: RequestContext | None = None
    ) -> bytes:
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
            case "Query":
                raise ValidationFault("The table has no such index")
            case _:
                raise RuntimeError(f"secret of the inside: {operation}")
