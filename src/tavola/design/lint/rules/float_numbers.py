"""Numbers are floats, but DynamoDB stores decimals.

Why: DynamoDB numbers have up to 38 decimal digits. boto3 rejects floats, and common workarounds are wrong:
`Decimal(0.1)` has 55 digits and is rejected as inexact, for some values only; `str(round(x, 2))` loses
digits, so sums and comparisons are off.

Example: `"risk_score": float(score)`.

Instead: Compute and store `Decimal`. In Tavola use `Attr[Decimal]`, or `Attr[Annotated[float, Exact]]`, which
stores the shortest decimal that reads back as the same float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"

_FLOAT = re.compile(r"\b(float|double)\b", re.IGNORECASE)


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the float fields of foreign tables. Tavola itself stores a float exactly or refuses it."""
    for table, entity in context.all_entities():
        for field in entity.fields if table.foreign else ():
            if _FLOAT.search(field.type):
                yield Defect(
                    context.field_place(table, entity, field),
                    f"{field.name} is a {field.type}, but DynamoDB numbers are decimals with 38 digits: a float is rejected or rounded",
                    "Use Decimal, or Annotated[float, Exact] in Tavola",
                )
