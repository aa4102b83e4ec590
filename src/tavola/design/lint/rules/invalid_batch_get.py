"""A batch read exceeds 100 keys, or its keys are incomplete.

Why: `BatchGetItem` accepts up to 100 keys per request, and each key must have both its partition key and its
sort key. DynamoDB rejects a request with more keys or with incomplete ones. Keys that it does not process
come back as `UnprocessedKeys` and have to be requested again.

Example: `batch_get_item` for 150 tickets by `PK` alone, in a table with the key `PK` and `SK`.

Instead: Send complete keys, up to 100 per request, and retry unprocessed keys. Tavola's client does both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.limits import BATCH_GET_KEYS_MAX

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs that fetch too many keys per request, or keys without a sort key."""
    for routed in context.routed_needs():
        if routed.route.operation not in ("get", "batch_get"):
            continue
        place = context.need_place(routed.need)
        items = routed.need.access.items if routed.need.access is not None else None
        if routed.route.operation == "batch_get" and items is not None:
            keys_per_request = -(-items // max(1, routed.route.queries))
            if keys_per_request > BATCH_GET_KEYS_MAX:
                yield Defect(
                    place,
                    f"Fetches {keys_per_request:,} keys per BatchGetItem request; the limit is {BATCH_GET_KEYS_MAX}",
                    f"Request up to {BATCH_GET_KEYS_MAX} keys at a time, and retry UnprocessedKeys",
                )
        key_fields = {key.field for key in routed.route.keys}
        missing = [name for name in routed.table.settings.key_names if name not in key_fields]
        if key_fields and missing:
            yield Defect(
                place,
                f"The keys omit {missing[0]}, part of the primary key of {routed.table.name}; DynamoDB rejects them",
                f"Add {missing[0]} to each key, or query by the partition key",
            )
