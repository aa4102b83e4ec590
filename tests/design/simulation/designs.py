"""Designs that the simulator is shown."""

from __future__ import annotations

from tavola.model.document import Design
from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update

BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")


def by_status(per_second: float = 3_000, shards: int | None = None, skew: float | None = 0.0) -> Design:
    """The documents' flaw: an index with a status of five values as its partition key."""
    more = {} if shards is None else {"shards": shards}
    return design(
        table(
            entity(
                "Ticket",
                text("ticket_id"),
                choice("status", "NEW", "OPEN", "WAITING", "DONE", "CLOSED"),
                moment("created_at"),
                pk="TICKET#{ticket_id}",
                keys=[key(BY_STATUS, "STATUS#{status}", "{created_at}", **more)],
                patterns=[query("ByStatus", BY_STATUS, "status", "created_at", per_second=20, items=20)],
                writes=[
                    put(per_second=per_second, peak_per_second=per_second, item_bytes=900, skew=skew),
                    update("status", per_second=per_second / 30),
                ],
                items=10_000_000,
            ),
            indexes=[BY_STATUS],
        )
    )
