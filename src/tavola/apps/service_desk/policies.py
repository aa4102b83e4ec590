"""The IAM policy of the service desk: four actions on one table and its index, without wildcards."""

from __future__ import annotations

from tavola.apps.policy_documents import PolicyDocument, policy_document, statement, table_arn
from tavola.apps.service_desk.model import ServiceTickets

TABLE_ACTIONS = ("PutItem", "GetItem", "UpdateItem", "Query")


def least_privilege(
    region: str, account: str, table_name: str = ServiceTickets.settings.name
) -> PolicyDocument:
    """Return the IAM policy of the application, which does not allow it to create the table.

    The application queries only the index; Query on the table is part of the original design.
    """
    table = table_arn(table_name, region, account)
    return policy_document(
        statement("Tickets", TABLE_ACTIONS, table),
        statement("TicketsByCaller", ("Query",), f"{table}/index/{ServiceTickets.by_caller.name}"),
    )
