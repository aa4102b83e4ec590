"""A transaction writes one item so often that transactions conflict.

Why: While a transaction is in progress, another transaction on the same item is cancelled with
TransactionConflict, and SDKs do not retry it. Transactional writes also consume twice the write units, of the
1,000 per second that a partition supports.

Example: Every order updates the same `TOTALS` item in its transaction, 50 times per second.

Instead: Take the shared item out of the transaction: aggregate from the stream, or update it separately
afterwards. If it must be part of the transaction, shard it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from tavola.design.lint.rates import PLANNED_SHARE, busiest_item_rate
from tavola.design.lint.rule import Defect, LintContext
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.sizes import item_bytes
from tavola.values import transact_write_units

SEVERITY = "warning"

_RUN_S = 0.02  # typical duration of a transaction
_SHARE = 0.1  # share of cancelled transactions that is worth reporting


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the transactional writes whose busiest item is written too often, where the number of items is known."""
    for table, entity, write in context.all_writes():
        rate = busiest_item_rate(entity, write)
        if rate is None or not (write.transactional or write.together):
            continue
        if write.kind == "put" and entity.immutable:
            continue  # it creates an item that no other write touches
        conflicts = 1 - exp(-min(rate, 1e6) * _RUN_S)
        size = write.item_bytes or item_bytes(table, entity)
        units = rate * transact_write_units(size, size)
        if conflicts < _SHARE and units < PLANNED_SHARE * PARTITION_WRITES_PER_S:
            continue
        yield Defect(
            context.write_place(table, entity, write),
            f"Transactions write one item {rate:,.0f} times per second: at {_RUN_S * 1000:.0f} ms each, about {conflicts:.0%} are cancelled by "
            f"a conflict, and they use {units:,.0f} of the {PARTITION_WRITES_PER_S:,} write units per second that a partition supports",
            "Take this item out of the transaction (update it separately, or from the stream), or shard it",
        )
