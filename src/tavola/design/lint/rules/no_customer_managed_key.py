"""A production table is encrypted with an AWS owned key.

Why: DynamoDB encrypts all tables at rest, by default with an AWS owned key. You cannot control who uses that
key, audit its use in CloudTrail, or revoke it. If contracts or regulations require that, use a customer
managed KMS key.

Example: `class Tickets(Table, tags={"Environment": "production"})` with `customer_id: Attr[str] =
attr(tenant=True)`.

Instead: Set `encryption="alias/tickets"` to use your own KMS key, or suppress this finding with the reason
why the AWS owned key is sufficient. A customer managed key has a monthly charge, and deleting it makes the
table unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "advice"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the production tables without a key of their own that hold tenant data, or come from a file that does not say."""
    for table in context.production_tables_without("encryption"):
        tenants = [
            f"{entity.name}.{field.name}"
            for entity in table.entities
            for field in entity.fields
            if field.tenant
        ]
        if not tenants and not table.foreign:
            continue  # a design declared with Tavola marks tenant data
        what = (
            f"The table holds data of several tenants ({tenants[0]})" if tenants else "The production table"
        )
        yield Defect(
            context.table_place(table),
            f"{what}{' and' if tenants else ''} is encrypted with an AWS owned key, which you cannot audit, restrict or revoke",
            'Set a customer managed KMS key, encryption="alias/…", or suppress this with the reason why the AWS owned key is sufficient',
        )
