"""A consumer's event source mapping ignores the records that its handler reports as failed.

Why: A handler that returns `batchItemFailures` instead of raising has succeeded, as far as Lambda can see, unless
the mapping has ReportBatchItemFailures in its FunctionResponseTypes. Without it the response is ignored: records
that failed count as handled, are never delivered again, and appear in no metric and no dead-letter queue.

Example: A handler that ends with `return {"batchItemFailures": failed}`, and a mapping with the API's defaults.

Instead: Let the mapping read the response: `report_batch_item_failures=True`. It changes nothing for a handler
that raises. Or let the handler raise. `tavola lint` finds out what a handler returns from its source, if it is on
the Python path or in the template; otherwise declare `returns_batch_item_failures=True`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "error"

_REMEDY = "Set report_batch_item_failures=True; it changes nothing for a handler that raises"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers whose mapping does not read the response; an error if the handler is known to use it."""
    for table, consumer in context.all_consumers():
        if consumer.report_batch_item_failures:
            continue
        place = context.consumer_place(table, consumer)
        if consumer.returns_batch_item_failures:
            yield Defect(
                place,
                f"{consumer.handler or 'The handler'} returns batchItemFailures, which the mapping does not read: records that fail "
                "count as handled and are lost",
                _REMEDY,
            )
        else:
            yield Defect(
                place,
                "The mapping does not read batchItemFailures: if the handler returns any, these records count as handled and are "
                "lost",
                _REMEDY,
                severity="advice",
            )
