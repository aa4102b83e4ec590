"""A production table is encrypted with a key that only AWS controls.

Why: DynamoDB encrypts every table at rest, by default with a key that AWS owns: nothing lies there in the clear. What that
key lacks is a say over it: who may use it, a log of each use, and taking it away. Where contracts or rules about the data
of others ask for that, a table needs a KMS key of your own.

Example: `class Tickets(Table, tags={"Environment": "production"})` with `customer_id: Attr[str] = attr(tenant=True)`.

Instead: `encryption="alias/tickets"`, a key of yours; or leave it, and say so with an ignore and its reason. A key of your own
costs a little each month, and its loss is the table's.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import is_production
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "advice"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the production tables without a key of their own that hold tenant data, or come from a file that does not say."""
    for table in context.design.tables:
        if table.settings.encryption or "encryption" in table.settings.unknown:
            continue
        if not (context.production or is_production(table)):
            continue
        tenants = [
            f"{entity.name}.{field.name}"
            for entity in table.entities
            for field in entity.fields
            if field.tenant
        ]
        if not tenants and not table.foreign:
            continue  # a design of ours says whose data it holds
        whose = f"it holds the data of several tenants ({tenants[0]})" if tenants else "it is in production"
        yield Finding(
            "encryption-missing",
            SEVERITY,
            context.table_place(table),
            f"{whose} under AWS's own key: encrypted at rest, but with no say over who uses the key and no log of it",
            'name a KMS key of yours, encryption="alias/…", or ignore this with the reason why AWS\'s own will do',
        )
