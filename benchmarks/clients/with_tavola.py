"""Tavola's typed client, on an engine in this process or on an endpoint."""

from datetime import datetime

from benchmarks.clients.timing import arguments, each, fields, name_of, report
from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, connect, sort


class Entities(Table):
    """The table that every client works on."""

    by_customer = Gsi(pk="gsi1pk", sk="gsi1sk")


class Ticket(Entity, table=Entities):
    """The entity that every client stores."""

    ticket_id: Attr[str]
    customer_id: Attr[str]
    subject: Attr[str]
    body: Attr[str]
    status: Attr[str]
    channel: Attr[str]
    language: Attr[str]
    assignee: Attr[str]
    priority: Attr[int]
    replies: Attr[int]
    score: Attr[int]
    created_at: Attr[datetime]
    updated_at: Attr[datetime]
    tags: Attr[list[str]]
    address: Attr[dict[str, str]]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str

    class ByCustomer(
        Query["Ticket"], on=Entities.by_customer, pk="CUSTOMER#{customer_id}", sk="{created_at}"
    ):
        customer_id: str
        created_at: Sort[datetime] = sort()


def main() -> None:
    """Time it."""
    from tavola.client.context import Context
    from tavola.client.marshalling import entity_of, item_of
    from tavola.model import shape_of

    told = arguments()
    shape, context, whole = shape_of(Ticket), Context(), Ticket(**fields(0))
    with connect(told.endpoint or "memory:") as db:
        if told.create or told.endpoint is None:
            db.create_tables(Entities)
        report(
            told,
            lambda n: db.put(Ticket(**fields(n))),
            lambda n: db.get(Ticket.Key(ticket_id=name_of(n))),
            both_ways=each(lambda _: entity_of(Ticket, item_of(shape, whole, context))),
        )


if __name__ == "__main__":
    main()
