"""Tavola's typed client, on an engine in this process or on an endpoint."""

from datetime import datetime

from timing import arguments, fields, report

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

    class ByCustomer(Query["Ticket"], on=Entities.by_customer, pk="CUSTOMER#{customer_id}", sk="{created_at}"):
        customer_id: str
        created_at: Sort[datetime] = sort()


def main() -> None:
    """Time it."""
    told = arguments()
    with connect(told.endpoint or "memory:") as db:
        db.create_tables(Entities)
        report(
            lambda n: db.put(Ticket(**fields(n))),  # type: ignore[arg-type]
            lambda n: db.get(Ticket.Key(ticket_id=f"t{n:06}")),
            told.seconds,
        )


if __name__ == "__main__":
    main()
