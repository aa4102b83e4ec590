"""The TTL attribute is in another unit than seconds.

Why: Time to live is counted in seconds since 1970. Milliseconds are a date some fifty thousand years from now, so nothing
is ever deleted; a number of seconds or days to live is a moment in 1970, which DynamoDB takes for a mistake and ignores; a
time that is written out is no number at all.

Example: `ttl = int(time.time() * 1000) + 86_400_000`; `ttl = 86_400`.

Instead: Store the moment at which the item may go in whole epoch seconds: `int(moment.timestamp())`. In Tavola, declare
the field as `datetime`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import LintContext
from tavola.design.lint.rules.ttl_type import TIMES
from tavola.model.document import FieldDesign

SEVERITY: Severity = "error"

_MILLISECONDS = frozenset({"ms", "millis", "milliseconds", "millisecond"})
_LENGTHS = frozenset({"days", "hours", "minutes", "duration"})


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the TTL fields that are not epoch seconds, by type and name."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            wrong = _wrong_unit(field) if field.attribute == table.settings.ttl else None
            if wrong is not None:
                yield Finding(
                    "ttl-unit",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"{table.name} expires items by {field.attribute}, and here it is {wrong}",
                    "store the moment in epoch seconds: int(moment.timestamp())",
                )


def _wrong_unit(field: FieldDesign) -> str | None:
    if "N" not in field.tags:
        return "a time that is written out: such items never expire" if field.type in TIMES else None
    name_words = {*split_words(field.name), *split_words(field.type)}
    if name_words & _MILLISECONDS:
        return "in milliseconds, a date some fifty thousand years from now: such items never expire"
    if name_words & _LENGTHS:
        return "how long the item lives, and not until when: a moment of 1970, which is ignored"
    return None
