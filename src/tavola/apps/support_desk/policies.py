"""Policies: who may do what with the desk's tables, as IAM documents.

A customer reads their own tickets and nothing else, and DynamoDB sees to it: the policy allows a query of the two customer indexes whose leading key
is the customer's own name. There is no action for the table itself, so no ticket of another is read by its id either.
Each document names its tables and indexes; none has a wildcard but the region and account that a caller may leave open.

The application's process wants `service`, and `projector` because it follows the stream itself; where the numbers are kept by a Lambda function, that
has `projector` alone. `founder` makes the tables, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tavola.apps.support_desk.model import TABLES, Metrics, Tickets
from tavola.apps.support_desk.similar import INDEX

Document: TypeAlias = dict[str, Any]

_READS = ("GetItem", "BatchGetItem", "Query", "ConditionCheckItem")
_INDEXES = (
    Tickets.status_index,
    Tickets.recent_index,
    Tickets.customer_index,
    Tickets.customer_status_index,
    Tickets.operator_index,
    Tickets.escalated_index,
)


def customer(prefix: str = "", region: str = "*", account: str = "*") -> Document:
    """Return what a customer may do: query their own tickets; their name is that of the IAM user."""
    table = _arn(prefix + Tickets.settings.name, region, account)
    indexes = [
        f"{table}/index/{index.name}" for index in (Tickets.customer_index, Tickets.customer_status_index)
    ]
    statement = _allow("OwnTickets", ("Query",), indexes)
    statement["Condition"] = {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["CUSTOMER#${aws:username}"]},
        "Null": {"dynamodb:LeadingKeys": "false"},  # for all of no keys, anything would hold
    }
    return _document(statement)


def agent(prefix: str = "", region: str = "*", account: str = "*") -> Document:
    """Return what an agent may do: read everything, write tickets and what hangs on them; there is no action to delete.

    Who may write a ticket may write all of it: a policy does not keep an agent's own program from rewriting an event, nor from
    giving an item an end that is past. That is the application's rule, and holds for who goes through it.
    """
    table = _arn(prefix + Tickets.settings.name, region, account)
    written = _allow("Work", ("PutItem", "UpdateItem"), [table])
    written["Condition"] = {
        "ForAllValues:StringLike": {
            "dynamodb:LeadingKeys": ["TICKET#*", "EMBEDDING#*", "IDEMPOTENCY#*", "CACHE#*"]
        },
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    return _document(
        _allow("Read", _READS, [table]),
        _allow("Lists", ("Query",), [f"{table}/index/{index.name}" for index in _INDEXES]),
        _allow("Similar", ("SearchVectors",), [f"{table}/index/{INDEX}"]),
        written,
        _allow("Numbers", ("Query",), [_arn(prefix + Metrics.settings.name, region, account)]),
    )


def service(prefix: str = "", region: str = "*", account: str = "*") -> Document:
    """Return what the application does for people: an agent's work, sessions, and taking away what may go."""
    table = _arn(prefix + Tickets.settings.name, region, account)
    removed = _allow("Remove", ("DeleteItem",), [table])
    removed["Condition"] = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["SESSION#*", "CACHE#*", "TICKET#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    return _document(
        _allow("Tickets", (*_READS, "PutItem", "UpdateItem", "DescribeTable"), [table]),
        _allow("Lists", ("Query",), [f"{table}/index/{index.name}" for index in _INDEXES]),
        _allow("Similar", ("SearchVectors",), [f"{table}/index/{INDEX}"]),
        removed,
        _allow(
            "Numbers", ("Query", "DescribeTable"), [_arn(prefix + Metrics.settings.name, region, account)]
        ),
    )


def projector(prefix: str = "", region: str = "*", account: str = "*") -> Document:
    """Return what the stream processor may do: read the stream, keep the numbers, and read the table to rebuild them."""
    table = _arn(prefix + Tickets.settings.name, region, account)
    numbers = _arn(prefix + Metrics.settings.name, region, account)
    stream = ("DescribeStream", "GetShardIterator", "GetRecords")
    return _document(
        _allow("Stream", stream, [f"{table}/stream/*"]),
        _allow("Streams", ("ListStreams",), ["*"]),
        _allow("Rebuild", ("Scan", "BatchGetItem", "GetItem", "DescribeTable"), [table]),
        _allow("Numbers", (*_READS, "Scan", "PutItem", "UpdateItem", "DescribeTable"), [numbers]),
    )


def founder(prefix: str = "", region: str = "*", account: str = "*") -> Document:
    """Return what making the tables wants, with their settings and the vector index; no item is read or written."""
    made = (
        "CreateTable",
        "DescribeTable",
        "UpdateTable",
        "TagResource",
        "UpdateTimeToLive",
        "DescribeTimeToLive",
        "UpdateContinuousBackups",
        "DescribeContinuousBackups",
    )
    tables = [_arn(prefix + table.settings.name, region, account) for table in TABLES]
    return _document(_allow("Tables", made, tables))


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": list(resources),
    }


def _arn(table: str, region: str, account: str) -> str:
    return f"arn:aws:dynamodb:{region}:{account}:table/{table}"
