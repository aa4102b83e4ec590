"""The TTL attribute is not in epoch seconds.

Why: DynamoDB TTL counts seconds since 1970. A value in milliseconds is a date more than fifty thousand years
ahead, so nothing expires. A duration such as 86,400 is a moment in 1970, and TTL ignores items that expired
more than five years ago. A formatted date is not a number at all.

Example: `ttl = int(time.time() * 1000) + 86_400_000`; `ttl = 86_400`.

Instead: Store the expiry time in whole epoch seconds: `int(moment.timestamp())`. In Tavola, declare the field
as `datetime`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.lint.rules.ttl_type import TIMES
from tavola.model.document import FieldDesign

SEVERITY = "error"

_MILLISECONDS = frozenset({"ms", "millis", "milliseconds", "millisecond"})
_LENGTHS = frozenset({"days", "hours", "minutes", "duration"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the TTL fields that are not epoch seconds, by type and name."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            wrong = _wrong_unit(field) if field.attribute == table.settings.ttl else None
            if wrong is not None:
                yield Defect(
                    context.field_place(table, entity, field),
                    f"The TTL attribute {field.attribute} of {table.name} is {wrong}",
                    "Store the expiry time in epoch seconds: int(moment.timestamp())",
                )


def _wrong_unit(field: FieldDesign) -> str | None:
    if "N" not in field.tags:
        return "a formatted date, not a number: these items never expire" if field.type in TIMES else None
    name_words = {*split_words(field.name), *split_words(field.type)}
    if name_words & _MILLISECONDS:
        return "in milliseconds, a date more than fifty thousand years ahead: these items never expire"
    if name_words & _LENGTHS:
        return "a duration, not a time: it is a moment in 1970, which TTL ignores"
    return None
