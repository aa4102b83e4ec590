"""Tables of other programs: the client adds no required attribute, prefix or tag."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tavola import (
    Attr,
    Collection,
    Connection,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    member,
    sort,
)


class Itsm(Table, name="poc-itsm-tickets", pk="ticket_id", sk=None, tag=None):
    """A table keyed by plain attributes."""

    by_caller = Gsi(pk="caller_id", sk="created_at", name="CallerIdIndex")


class Ticket(Entity, table=Itsm):
    """A ticket as another program writes it."""

    ticket_id: Attr[str]
    caller: Attr[str] = attr(name="caller_id")
    created_at: Attr[str]
    urgency: Attr[int] = attr(default=3)

    class Key(PrimaryKey["Ticket"]):
        ticket_id: str

    class OfCaller(Query["Ticket"], on=Itsm.by_caller):
        caller: str
        created_at: Sort[str] = sort()


class Legacy(Table, name="legacy", pk="PK", sk="SK", tag=None):
    """A single table with numeric sort keys in one index, and entities identified by their keys alone."""

    ranks = Gsi(pk="board", sk="points", name="Ranks")


class Player(Entity, table=Legacy):
    """A player; the keys were joined by hand, and case and spaces are preserved."""

    player_id: Attr[str] = attr(name="PlayerId")
    board: Attr[str | None] = attr(default=None)
    points: Attr[Decimal | None] = attr(default=None)

    class Key(PrimaryKey["Player"], pk="PLAYER#{player_id:raw}", sk="#META"):
        player_id: str

    class OnBoard(Query["Player"], on=Legacy.ranks, sparse=True):
        board: str
        points: Sort[Decimal] = sort()


class Game(Entity, table=Legacy):
    """A game of a player."""

    player_id: Attr[str] = attr(name="PlayerId")
    number: Attr[int]
    won: Attr[bool] = attr(default=False)

    class Key(PrimaryKey["Game"], pk="PLAYER#{player_id:raw}", sk="GAME#{number:04}"):
        player_id: str
        number: int


class Shelf(Collection, pk="PLAYER#{player_id:raw}"):
    """A player with all games."""

    player_id: str
    player: Player | None = member()
    games: list[Game] = member()


@pytest.fixture
def raw(opened: Callable[..., Connection]) -> tuple[Connection, Callable[[str, dict[str, Any]], None]]:
    """The tables, and how another program writes into them."""
    db = opened()
    db.create_tables(Itsm, Legacy)
    names = {n.rpartition("-poc-")[2] or n: n for n in db.call("ListTables")["TableNames"]}

    def write(table: str, item: dict[str, Any]) -> None:
        name = next(n for n in names.values() if n.endswith(table))
        db.call("PutItem", {"TableName": name, "Item": item})

    return db, write


def test_plain_key_attributes_need_no_template(raw: Any) -> None:
    """Key attributes that are fields of the entity need no template; no attribute is added to an item."""
    db, write = raw
    for n in range(3):
        write("itsm-tickets", {
            "ticket_id": {"S": f"INC{n}"}, "caller_id": {"S": "+49 30 1"}, "created_at": {"S": f"2026-03-0{n + 1}"},
            "comments": {"L": [{"S": "kept"}]},
        })  # fmt: skip

    assert [t.ticket_id for t in db.query(Ticket.OfCaller(caller="+49 30 1"), newest_first=True)] == [
        "INC2",
        "INC1",
        "INC0",
    ]
    db.update(Ticket.Key(ticket_id="INC1"), Ticket.urgency.set(1))
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("itsm-tickets"))
    item = db.call("GetItem", {"TableName": name, "Key": {"ticket_id": {"S": "INC1"}}})["Item"]
    assert item["comments"] == {"L": [{"S": "kept"}]}  # attributes outside the model are preserved
    assert set(item) == {"ticket_id", "caller_id", "created_at", "comments", "urgency"}
    db.put(Ticket(ticket_id="INC9", caller="c", created_at="2026"))
    item = db.call("GetItem", {"TableName": name, "Key": {"ticket_id": {"S": "INC9"}}})["Item"]
    assert set(item) == {"ticket_id", "caller_id", "created_at", "urgency"}


def test_entities_without_a_tag_are_identified_by_their_keys(raw: Any) -> None:
    """Without a tag, an item belongs to the entity whose key templates it matches;

    raw parts are preserved.
    """
    db, write = raw
    write("legacy", {"PK": {"S": "PLAYER#Ann B"}, "SK": {"S": "#META"}, "PlayerId": {"S": "Ann B"}, "board": {"S": "eu"}, "points": {"N": "12.5"}})  # fmt: skip
    for n in (1, 2):
        write("legacy", {"PK": {"S": "PLAYER#Ann B"}, "SK": {"S": f"GAME#000{n}"}, "PlayerId": {"S": "Ann B"}, "number": {"N": str(n)}})  # fmt: skip
    write("legacy", {"PK": {"S": "OTHER"}, "SK": {"S": "THING"}})

    shelf = db.collect(Shelf(player_id="Ann B"))
    assert shelf.player is not None
    assert shelf.player.points == Decimal("12.5")
    assert [game.number for game in shelf.games] == [1, 2]
    assert [p.player_id for p in db.query(Player.OnBoard(board="eu").points.gt(Decimal(12)))] == ["Ann B"]
    assert len(list(db.scan(Game))) == 2
    assert len(list(db.scan_table(Legacy))) == 3


def test_times_of_other_programs_can_be_read(opened: Callable[..., Connection]) -> None:
    """A timestamp in another form of ISO 8601 can be read; writes use Tavola's form."""

    class Logs(Table, tag=None):
        pass

    class Line(Entity, table=Logs):
        line_id: Attr[str]
        at: Attr[datetime]

        class Key(PrimaryKey["Line"], pk="{line_id}", sk="LINE"):
            line_id: str

    db = opened()
    db.create_tables(Logs)
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("Logs"))
    for n, text in enumerate(
        ("2026-03-01T10:00:00+00:00", "2026-03-01T11:00:00+01:00", "2026-03-01T10:00:00Z")
    ):
        item = {"pk": {"S": f"l{n}"}, "sk": {"S": "LINE"}, "line_id": {"S": f"l{n}"}, "at": {"S": text}}
        db.call("PutItem", {"TableName": name, "Item": item})

    for n in range(3):
        line = db.get(Line.Key(line_id=f"l{n}"))
        assert line is not None
        assert line.at == datetime(2026, 3, 1, 10, tzinfo=UTC)


class Crm(Table, name="crm", pk="PK", sk="SK", tag=None):
    """A single table of another program that stores ids only inside keys."""

    GSI1 = Gsi(pk="GSI1PK", sk="GSI1SK")


class Colleague(Entity):
    """The fields of a user that the mail index projects."""

    org_id: Attr[int]
    mail: Attr[str]


class User(Entity, table=Crm):
    """A user of an organisation."""

    org_id: Attr[int]
    no: Attr[int]
    mail: Attr[str]
    nick: Attr[str | None] = attr(default=None)

    class Key(PrimaryKey["User"], pk="ORG#{org_id:raw}", sk="USER#{no:raw}"):
        org_id: int
        no: int

    class ByMail(Query["Colleague"], on=Crm.GSI1, pk="MAIL", sk="{mail:raw}"):
        mail: Sort[str] = sort()


def _key_only(db: Any) -> str:
    """Make the table, with one item as its other program writes it."""
    db.create_tables(Crm)
    name: str = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("crm"))
    item = {"PK": "ORG#1", "SK": "USER#5", "GSI1PK": "MAIL", "GSI1SK": "u5@a.org"}
    db.call("PutItem", {"TableName": name, "Item": {n: {"S": value} for n, value in item.items()}})
    return name


def test_values_stored_only_in_keys_are_read_from_them(opened: Callable[..., Connection]) -> None:
    """A field that is not stored as an attribute is read from the table's key, or if required from an index's key."""
    db = opened()
    _key_only(db)
    five = User(org_id=1, no=5, mail="u5@a.org")

    assert db.get(User.Key(org_id=1, no=5)) == five
    assert list(db.scan(User)) == [five]
    assert db.query(User.ByMail()).items == [Colleague(org_id=1, mail="u5@a.org")]


def test_values_stored_only_in_keys_can_be_changed(opened: Callable[..., Connection]) -> None:
    """An update of such an item updates its keys, and a backfill stores the values as attributes."""
    db = opened()
    name = _key_only(db)

    assert db.update(User.Key(org_id=1, no=5), User.nick.set("five")).nick == "five"
    assert db.update(User.Key(org_id=1, no=5), User.mail.set("v@a.org")).mail == "v@a.org"
    assert [each.mail for each in db.query(User.ByMail())] == ["v@a.org"]
    assert db.verify_keys(Crm).sound
    db.backfill(Crm)
    key = {"PK": {"S": "ORG#1"}, "SK": {"S": "USER#5"}}
    item = db.call("GetItem", {"TableName": name, "Key": key})["Item"]
    assert (item["org_id"], item["no"], item["mail"]) == ({"N": "1"}, {"N": "5"}, {"S": "v@a.org"})


def test_an_optional_field_is_not_read_from_an_index_key(opened: Callable[..., Connection]) -> None:
    """An optional field whose attribute is missing is None, even if a stale index key contains a value."""

    class Crew(Table, tag=None):
        by_boat = Gsi(pk="g1pk", sk="g1sk")

    class Sailor(Entity, table=Crew):
        sailor_id: Attr[str]
        boat: Attr[str | None] = attr(default=None)

        class Key(PrimaryKey["Sailor"], pk="SAILOR#{sailor_id}", sk="SAILOR"):
            sailor_id: str

        class OfBoat(Query["Sailor"], on=Crew.by_boat, pk="BOAT#{boat}", sk="{sailor_id}", sparse=True):
            boat: str

    db = opened()
    db.create_tables(Crew)
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("Crew"))
    item = {"pk": "SAILOR#s1", "sk": "SAILOR", "g1pk": "BOAT#b1", "g1sk": "s1"}
    db.call("PutItem", {"TableName": name, "Item": {n: {"S": value} for n, value in item.items()}})

    assert db.get(Sailor.Key(sailor_id="s1")) == Sailor(sailor_id="s1", boat=None)
    assert [fault.kind for fault in db.verify_keys(Crew).problems] == ["superfluous"]
