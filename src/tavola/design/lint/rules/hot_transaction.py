"""A transaction writes one item so often that its runs conflict with each other.

Why: While a transaction runs, another one on the same item is cancelled with TransactionConflict, and the SDKs do not
repeat it. On the table a transactional write also takes twice the units, of the 1,000 a second that one partition has.

Example: every order adds to the same `TOTALS` item in its transaction, fifty times a second.

Instead: Leave the shared item out of the transaction: count from the stream, or add with a plain update after it; where it
must be in it, spread it over shards so that few runs meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rates import PLANNED_SHARE, busiest_item_rate
from tavola.design.lint.rule import LintContext
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.sizes import item_bytes
from tavola.values import transact_write_units

SEVERITY: Severity = "warning"

_RUN_S = 0.02  # that a transaction takes, as a rule
_SHARE = 0.1  # of runs that are cancelled, from which on it is felt


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the transactional writes whose busiest item is written too often, where the number of items is known."""
    for table, entity, write in context.all_writes():
        rate = busiest_item_rate(entity, write)
        if (
            rate is None
            or not (write.transactional or write.together)
            or _creates(write.kind, entity.immutable)
        ):
            continue
        conflicts = 1 - exp(-min(rate, 1e6) * _RUN_S)
        size = write.item_bytes or item_bytes(table, entity)
        units = rate * transact_write_units(size, size)
        if conflicts < _SHARE and units < PLANNED_SHARE * PARTITION_WRITES_PER_S:
            continue
        yield Finding(
            "hot-transaction",
            SEVERITY,
            context.write_place(table, entity, write),
            f"one item is written {rate:,.0f} times a second in transactions: at {_RUN_S * 1000:.0f} ms each, about {conflicts:.0%} are cancelled "
            f"by another, and they take {units:,.0f} of the {PARTITION_WRITES_PER_S:,} write units of its partition",
            "leave this item out of the transaction (a plain update, or the stream), or spread it over shards",
        )


def _creates(kind: str, immutable: bool) -> bool:
    """Return whether a write creates an item that no other write touches."""
    return kind == "put" and immutable
