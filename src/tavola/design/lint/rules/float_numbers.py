"""Numbers are floats, while DynamoDB stores decimals.

Why: DynamoDB keeps 38 decimal digits. boto3 refuses a float, and what people write around that goes wrong: `Decimal(0.1)` has 55 digits
and is refused as inexact, on some values and not on others; `str(round(x, 2))` drops what was behind, so that sums and comparisons are off.

Example: `"risk_score": float(score)`.

Instead: Compute and store `Decimal`; in Tavola `Attr[Decimal]`, or `Attr[Annotated[float, Exact]]`, which stores the
shortest decimal that reads back as the same float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"

_FLOAT = re.compile(r"\b(float|double)\b", re.IGNORECASE)


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the float fields of foreign tables. Tavola itself stores a float exactly or refuses it."""
    for table, entity in context.all_entities():
        for field in entity.fields if table.foreign else ():
            if _FLOAT.search(field.type):
                yield Finding(
                    "float-numbers",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"{field.name} is a {field.type}, and DynamoDB's numbers are decimals of 38 digits: a float is refused, or rounded on the way",
                    "use Decimal, or in Tavola Annotated[float, Exact]",
                )
