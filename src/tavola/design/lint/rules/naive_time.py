"""A time is stored without a time zone.

Why: `datetime.utcnow()` has no zone, and `.timestamp()` of it takes it for local time: outside UTC every expiry is hours
off. Written out without a zone, two writers in two zones sort wrongly, and twice a year the same hour comes again.

Example: `datetime.utcnow().isoformat()`, `int(datetime.utcnow().timestamp())`.

Instead: Use aware times, `datetime.now(UTC)`. Tavola's datetime fields refuse naive ones and store UTC.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import LintContext
from tavola.model.document import FieldDesign

SEVERITY: Severity = "warning"

_SIGNS = (
    frozenset({"naive"}),
    frozenset({"utcnow"}),
    frozenset({"local", "datetime"}),
    frozenset({"local", "time"}),
)


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the fields whose type or description says that the time has no zone."""
    for table, entity in context.all_entities():
        for field in entity.fields if table.foreign else ():
            if _naive(field):
                yield Finding(
                    "naive-time",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"{field.name} is a time without a zone ({field.type}): elsewhere than in UTC it is hours off",
                    "make it of an aware time: datetime.now(UTC)",
                )


def _naive(field: FieldDesign) -> bool:
    name_words = {
        *split_words(field.type),
        *(word for word in split_words(field.description) if word in ("naive", "utcnow")),
    }
    return any(sign <= name_words for sign in _SIGNS)
