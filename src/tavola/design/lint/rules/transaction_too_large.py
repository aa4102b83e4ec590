"""A transaction exceeds DynamoDB's limits on items or size.

Why: A transaction supports up to 100 actions and 4 MB. DynamoDB rejects a larger one as a whole, possibly
only after the data has grown.

Example: "Close an account" deletes its 250 items in one transaction.

Instead: Split it into steps that can be retried, and mark completion with a final write or a status that
readers check.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size
from tavola.limits import TRANSACTION_ACTIONS_MAX, TRANSACTION_BYTES_MAX
from tavola.model.document import EntityDesign, TableDesign, WritePattern
from tavola.model.sizes import item_bytes

SEVERITY = "error"

_Part = tuple[TableDesign, EntityDesign, WritePattern]


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the transactions that exceed the limits: groups of writes, and single transactional writes."""
    for name, parts in _transactions(context).items():
        items = sum(write.items for _, _, write in parts)
        size = sum(
            write.items * (write.item_bytes or item_bytes(table, entity))
            for table, entity, write in parts
            if write.kind != "delete"
        )
        table, entity, write = parts[0]
        place = context.write_place(table, entity, write)
        yield from _check_size(f"Transaction {name!r} writes", place, items, size)
    for table, entity, pattern in context.design.patterns():
        access = pattern.access
        if access is not None and access.transactional and access.items is not None:
            size = access.items * (access.item_bytes or item_bytes(table, entity))
            yield from _check_size(
                "The transaction reads", context.pattern_place(table, entity, pattern), access.items, size
            )


def _check_size(what: str, place: DesignPath, items: int, size: int) -> Iterator[Defect]:
    if items > TRANSACTION_ACTIONS_MAX:
        yield Defect(
            place,
            f"{what} {items:,} items; the limit is {TRANSACTION_ACTIONS_MAX}",
            "Split it into steps that can be retried, and mark completion with a final write"
            if what.endswith("writes")
            else "Read the items in several transactions, or with BatchGetItem if they need no common snapshot",
        )
    elif size > TRANSACTION_BYTES_MAX:
        yield Defect(
            place,
            f"{what} {format_size(size)}; the limit is {format_size(TRANSACTION_BYTES_MAX)}",
            "Split it, or store the large part in S3 or in an item that is written before",
        )


def _transactions(context: LintContext) -> dict[str, list[_Part]]:
    """Return the writes of each named transaction, and those that are a transaction alone."""
    parts_by_name: dict[str, list[_Part]] = {}
    for table, entity, write in context.all_writes():
        if write.together or write.transactional:
            own_transaction = f"{entity.name}.{write.title}"
            parts_by_name.setdefault(write.together or own_transaction, []).append((table, entity, write))
    return parts_by_name
