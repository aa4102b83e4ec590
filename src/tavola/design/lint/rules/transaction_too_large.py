"""A transaction has more items or bytes than DynamoDB allows.

Why: A transaction has 100 actions at most and a request of 4 MB. A larger one is refused whole: nothing of it is written,
at whatever time the data have grown that far.

Example: "close an account" that deletes its 250 items together.

Instead: Split it where it may be half done (an order with its first lines, the others after it), make the steps repeatable,
and let a last write, or a marker that readers look at, say that it is whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import TRANSACTION_ACTIONS_MAX, TRANSACTION_BYTES_MAX
from tavola.model.document import EntityDesign, TableDesign, WritePattern
from tavola.model.sizes import item_bytes

SEVERITY: Severity = "error"

_Part = tuple[TableDesign, EntityDesign, WritePattern]


def find(context: LintContext) -> Iterator[Finding]:
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
        yield from _check_size(f"the transaction {name!r} writes", place, items, size)
    for table, entity, pattern in context.design.patterns():
        access = pattern.access
        if access is not None and access.transactional and access.items is not None:
            size = access.items * (access.item_bytes or item_bytes(table, entity))
            yield from _check_size(
                "it reads, in a transaction,",
                context.pattern_place(table, entity, pattern),
                access.items,
                size,
            )


def _check_size(what: str, place: DesignPath, items: int, size: int) -> Iterator[Finding]:
    if items > TRANSACTION_ACTIONS_MAX:
        yield Finding(
            "transaction-too-large",
            SEVERITY,
            place,
            f"{what} {items:,} items, and a transaction has {TRANSACTION_ACTIONS_MAX} at most",
            "split it where it may be half done, and let a last write say that it is whole",
        )
    elif size > TRANSACTION_BYTES_MAX:
        yield Finding(
            "transaction-too-large",
            SEVERITY,
            place,
            f"{what} {size / 1024**2:,.1f} MB, and a transaction has {TRANSACTION_BYTES_MAX // 1024**2} MB at most",
            "split it, or keep the large part in a blob store or an item that is written before",
        )


def _transactions(context: LintContext) -> dict[str, list[_Part]]:
    """Return the writes of each named transaction, and those that are a transaction alone."""
    parts_by_name: dict[str, list[_Part]] = {}
    for table, entity, write in context.all_writes():
        if write.together or write.transactional:
            alone = f"{entity.name}.{write.title}"
            parts_by_name.setdefault(write.together or alone, []).append((table, entity, write))
    return parts_by_name
