"""A timestamp is stored without a time zone.

Why: `datetime.utcnow()` has no time zone, and `.timestamp()` interprets it as local time, so outside UTC
every expiry is hours off. Timestamps written in different zones sort incorrectly, and one hour repeats when
daylight saving time ends.

Example: `datetime.utcnow().isoformat()`, `int(datetime.utcnow().timestamp())`.

Instead: Use timezone-aware values, `datetime.now(UTC)`. Tavola's datetime fields reject naive values and
store UTC.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import FieldDesign

SEVERITY = "warning"

_NAIVE_WORDS = (
    frozenset({"naive"}),
    frozenset({"utcnow"}),
    frozenset({"local", "datetime"}),
    frozenset({"local", "time"}),
)


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the fields whose type or description says that the time has no zone."""
    for table, entity in context.all_entities():
        for field in entity.fields if table.foreign else ():
            if _is_naive(field):
                yield Defect(
                    context.field_place(table, entity, field),
                    f"{field.name} is a timestamp without a time zone ({field.type}): outside UTC it is hours off",
                    "Use a timezone-aware value: datetime.now(UTC)",
                )


def _is_naive(field: FieldDesign) -> bool:
    name_words = {
        *split_words(field.type),
        *(word for word in split_words(field.description) if word in ("naive", "utcnow")),
    }
    return any(words <= name_words for words in _NAIVE_WORDS)
