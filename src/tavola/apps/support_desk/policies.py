"""IAM policies for the desk's tables, one per role.

DynamoDB itself restricts customers to their own tickets: their policy allows queries of the two customer indexes whose leading key is
the customer's name. It allows no action on the table, so no other ticket can be read by its id. Each document names its tables and
indexes; the only wildcards are the region and account that a caller may leave open.

The application's process needs `service`, and `projector` because it reads the stream itself; where a Lambda function maintains the
numbers, it has `projector` alone. `founder` creates the tables, once.
"""

from __future__ import annotations

from tavola.apps.policy_documents import PolicyDocument, policy_document, statement, table_arn
from tavola.apps.support_desk.model import TABLES, Metrics, Tickets
from tavola.apps.support_desk.similar import INDEX

_READS = ("GetItem", "BatchGetItem", "Query", "ConditionCheckItem")
_INDEXES = (
    Tickets.status_index,
    Tickets.recent_index,
    Tickets.customer_index,
    Tickets.customer_status_index,
    Tickets.operator_index,
    Tickets.escalated_index,
)


def customer(prefix: str = "", region: str = "*", account: str = "*") -> PolicyDocument:
    """Return the policy of a customer: query the tickets of the IAM user's name."""
    table = table_arn(prefix + Tickets.settings.name, region, account)
    indexes = [
        f"{table}/index/{index.name}" for index in (Tickets.customer_index, Tickets.customer_status_index)
    ]
    own_tickets = statement("OwnTickets", ("Query",), indexes)
    own_tickets["Condition"] = {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["CUSTOMER#${aws:username}"]},
        "Null": {"dynamodb:LeadingKeys": "false"},  # ForAllValues is true for a request without keys
    }
    return policy_document(own_tickets)


def agent(prefix: str = "", region: str = "*", account: str = "*") -> PolicyDocument:
    """Return the policy of an agent: read everything, write tickets and the items that belong to them; delete nothing.

    An agent who may write a ticket may write all of it: the policy does not prevent an agent's own program from rewriting events or
    setting an expiry in the past. The application enforces that, for callers that go through it.
    """
    table = table_arn(prefix + Tickets.settings.name, region, account)
    writes = statement("Work", ("PutItem", "UpdateItem"), [table])
    writes["Condition"] = {
        "ForAllValues:StringLike": {
            "dynamodb:LeadingKeys": ["TICKET#*", "EMBEDDING#*", "IDEMPOTENCY#*", "CACHE#*"]
        },
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    return policy_document(
        statement("Read", _READS, [table]),
        statement("Lists", ("Query",), [f"{table}/index/{index.name}" for index in _INDEXES]),
        statement("Similar", ("SearchVectors",), [f"{table}/index/{INDEX}"]),
        writes,
        statement("Numbers", ("Query",), [table_arn(prefix + Metrics.settings.name, region, account)]),
    )


def service(prefix: str = "", region: str = "*", account: str = "*") -> PolicyDocument:
    """Return the policy of the application: an agent's work, sessions, and removing files, sessions and cached answers."""
    table = table_arn(prefix + Tickets.settings.name, region, account)
    deletions = statement("Remove", ("DeleteItem",), [table])
    deletions["Condition"] = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["SESSION#*", "CACHE#*", "TICKET#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    return policy_document(
        statement("Tickets", (*_READS, "PutItem", "UpdateItem", "DescribeTable"), [table]),
        statement("Lists", ("Query",), [f"{table}/index/{index.name}" for index in _INDEXES]),
        statement("Similar", ("SearchVectors",), [f"{table}/index/{INDEX}"]),
        deletions,
        statement(
            "Numbers",
            ("Query", "DescribeTable"),
            [table_arn(prefix + Metrics.settings.name, region, account)],
        ),
    )


def projector(prefix: str = "", region: str = "*", account: str = "*") -> PolicyDocument:
    """Return the policy of the stream processor: read the stream, write the numbers, and scan the table to rebuild them."""
    table = table_arn(prefix + Tickets.settings.name, region, account)
    numbers = table_arn(prefix + Metrics.settings.name, region, account)
    stream = ("DescribeStream", "GetShardIterator", "GetRecords")
    return policy_document(
        statement("Stream", stream, [f"{table}/stream/*"]),
        statement("Streams", ("ListStreams",), ["*"]),
        statement("Rebuild", ("Scan", "BatchGetItem", "GetItem", "DescribeTable"), [table]),
        statement("Numbers", (*_READS, "Scan", "PutItem", "UpdateItem", "DescribeTable"), [numbers]),
    )


def founder(prefix: str = "", region: str = "*", account: str = "*") -> PolicyDocument:
    """Return the policy for creating the tables with their settings and the vector index; no item is read or written."""
    actions = (
        "CreateTable",
        "DescribeTable",
        "UpdateTable",
        "TagResource",
        "UpdateTimeToLive",
        "DescribeTimeToLive",
        "UpdateContinuousBackups",
        "DescribeContinuousBackups",
    )
    tables = [table_arn(prefix + table.settings.name, region, account) for table in TABLES]
    return policy_document(statement("Tables", actions, tables))
