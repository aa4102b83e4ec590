"""A batch requests more keys than one request allows, or incomplete keys.

Why: `BatchGetItem` takes 100 keys, each whole: partition key and sort key. DynamoDB refuses more, and a key without its sort key. What it could
not process comes back and has to be asked for again.

Example: `batch_get_item` of 150 tickets by `PK` alone, in a table whose key is `PK` and `SK`.

Instead: Give whole keys, 100 at a time, and ask again for what was not processed; the client of Tavola does both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import BATCH_GET_KEYS_MAX

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs that fetch too many keys per request, or keys without a sort key."""
    for routed in context.routed_needs():
        if routed.route.operation not in ("get", "batch_get"):
            continue
        place = context.need_place(routed.need)
        items = routed.need.access.items if routed.need.access is not None else None
        if routed.route.operation == "batch_get" and items is not None:
            each = -(-items // max(1, routed.route.queries))
            if each > BATCH_GET_KEYS_MAX:
                yield Finding(
                    "batch-too-large",
                    SEVERITY,
                    place,
                    f"it fetches {each:,} keys in one request, and a batch takes {BATCH_GET_KEYS_MAX}",
                    f"ask for {BATCH_GET_KEYS_MAX} at a time, and again for what was not processed",
                )
        given = {key.field for key in routed.route.keys}
        missing = [name for name in routed.table.settings.key_names if name not in given]
        if given and missing:
            yield Finding(
                "batch-too-large",
                SEVERITY,
                place,
                f"its keys lack {missing[0]}, which is part of the key of {routed.table.name}: DynamoDB refuses them",
                f"give {missing[0]} with each key, or query by the partition key",
            )
