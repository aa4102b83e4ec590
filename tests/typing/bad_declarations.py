"""Mistakes in declaring, one a line; nothing here is ever run, and most would be refused at import."""

from __future__ import annotations

from tavola import (
    Attr,
    Collection,
    Entity,
    Gsi,
    Lsi,
    PrimaryKey,
    Query,
    Shards,
    Sort,
    Table,
    attr,
    sort,
)
from tests.client.desk import Desk, Ticket


class Wrong(Table, nam="wrong"):  # error: misspelt keyword
    """A table."""


class WrongStream(Table, stream="NEW"):  # error: no such view
    """A table."""

    one = Gsi(sk="sk")  # error: an index without a partition key
    two = Gsi(pk="pk", projection="SOME")  # error: no such projection
    three = Lsi(pk="pk", sk="sk")  # error: a local index has the table's partition key
    four = Gsi(pk=["a", "b"])  # error: a list for a tuple


class Note(Entity, table=Desk):
    """An entity."""

    note_id: Attr[str]
    count: Attr[int] = attr(default="0")  # error: wrong default
    tags: Attr[set[str]] = attr(default_factory=list[str])  # error: wrong factory
    size: Attr[int] = 0  # error: a bare default
    stored: Attr[int] = attr(default=0, alias="s")  # error: no such option; name= is the attribute's
    kind: Attr[str] = attr(default="a", default_factory=str)  # error: two defaults

    class Key(PrimaryKey["Note"], pkk="NOTE#{note_id}"):  # error: misspelt keyword
        note_id: str

    class ByTag(Query["Note"], on=Desk.gsi9, pk="TAG#{tags}"):  # error: no such index
        tags: str

    class ByCount(Query["Note"], on=Desk.gsi1, pk="N#{count}", shards="8"):  # error: a text for shards
        count: int
        size: Sort[int] = sort(init=True)  # error: a sort part is no argument

    class BySize(Query["Note"], on="gsi1", pk="N#{size}"):  # error: an index by name
        size: int

    class ByNumber(Query["Note"], on=Desk.gsi2, pk=7):  # error: a number for a template
        count: int

    class OfTable(Query["Desk"], on=Desk.gsi2):  # error: a table is no entity
        count: int

    class OfNobody(Query["Nobody"], on=Desk.gsi2):  # error: no such class
        count: int


class File(Collection, key="TICKET#{ticket_id}"):  # error: misspelt keyword
    """A collection."""

    ticket_id: str
    tickets: list[Ticket] = found(init=True)  # error: a member is no argument


Shards("8")  # error: a text for a count
Shards(8, by="luck")  # error: no such way
