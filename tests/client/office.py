"""An office with orders and accounts: a table with a lock, a time to live and one index."""

from __future__ import annotations

from datetime import datetime

from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, sort


class Office(Table, name="office", ttl="ends"):
    """A second table, with a lock and an index."""

    by_state = Gsi(pk="gsi1pk", sk="gsi1sk")


class Order(Entity, table=Office):
    """An order of a customer, indexed by state."""

    order_id: Attr[str]
    customer: Attr[str]
    state: Attr[str] = attr(default="new")
    total: Attr[int] = attr(default=0)
    note: Attr[str | None] = attr(default=None)
    ends: Attr[datetime | None] = attr(default=None)
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
        order_id: str

    class ByState(Query["Order"], on=Office.by_state, pk="{customer}#{state}", sk="{total:06}"):
        customer: str
        state: str
        total: Sort[int] = sort()


class Fixed(Entity, table=Office, stale="refuse"):
    """An entity that refuses updates that need a read first."""

    fixed_id: Attr[str]
    group: Attr[str]
    rank: Attr[int]

    class Key(PrimaryKey["Fixed"], pk="FIXED#{fixed_id}", sk="FIXED"):
        fixed_id: str

    class ByGroup(Query["Fixed"], on=Office.by_state, pk="G#{group}", sk="{rank:04}"):
        group: str
        rank: Sort[int] = sort()


class Account(Entity, table=Office):
    """Some money."""

    account_id: Attr[int]
    balance: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Account"], pk="ACCOUNT#{account_id}", sk="ACCOUNT"):
        account_id: int
