"""What the service desk is allowed to do: four actions on one table and its index, without a wildcard."""

from __future__ import annotations

from typing import Any

from tavola.apps.service_desk.model import Tickets

TABLE_ACTIONS = ("PutItem", "GetItem", "UpdateItem", "Query")


def least_privilege(region: str, account: str, table_name: str = Tickets.settings.name) -> dict[str, Any]:
    """Return the policy of the application's identity, as IAM has it.

    It makes no table: whoever deploys does. The application asks by its index alone; Query on the table itself is in
    the design that it follows.
    """
    table = f"arn:aws:dynamodb:{region}:{account}:table/{table_name}"
    index = f"{table}/index/{Tickets.by_caller.name}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            _allow("Tickets", TABLE_ACTIONS, table),
            _allow("TicketsByCaller", ("Query",), index),
        ],
    }


def _allow(sid: str, actions: tuple[str, ...], resource: str) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": resource,
    }
