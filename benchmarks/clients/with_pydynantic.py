"""pydynantic, on an endpoint whose table is there."""

from datetime import datetime

import boto3
from pydynantic import Entity, Table, key

from benchmarks.clients.timing import TABLE, arguments, each, fields, name_of, report

told = arguments()
client = boto3.client(
    "dynamodb",
    endpoint_url=told.endpoint,
    region_name="us-east-1",
    aws_access_key_id="local",
    aws_secret_access_key="local",
)
table = Table(
    name=TABLE, pk="pk", sk="sk", indexes={"by_customer": {"pk": "gsi1pk", "sk": "gsi1sk"}}, client=client
)


class Ticket(Entity, table=table, name="ticket"):  # type: ignore[call-arg]  # its package is not installed here
    """The entity that every client stores."""

    ticket_id: str
    customer_id: str
    subject: str
    body: str
    status: str
    channel: str
    language: str
    assignee: str
    priority: int
    replies: int
    score: int
    created_at: datetime
    updated_at: datetime
    tags: list[str]
    address: dict[str, str]

    class Meta:
        """Its keys."""

        primary = key(pk="TICKET#{ticket_id}", sk="TICKET")
        by_customer = key(index="by_customer", pk="CUSTOMER#{customer_id}", sk="{created_at}")


def main() -> None:
    """Time it."""
    whole = Ticket(**fields(0))
    report(
        told,
        lambda n: Ticket.put(Ticket(**fields(n))),
        lambda n: Ticket.get(ticket_id=name_of(n)),
        both_ways=each(lambda _: Ticket.from_dynamo(whole.to_dynamo())),
    )


if __name__ == "__main__":
    main()
