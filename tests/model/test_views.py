"""Views: what an index holds of an entity, typed as what it is."""

from __future__ import annotations

from datetime import UTC, datetime

from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, connect, sort

LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Door(Table, ttl="ends"):
    """Sessions by agent, of which the index holds a part."""

    by_agent = Gsi(pk="gpk", sk="gsk", projection=("ends", "n"))


class Login(Entity, table=Door):
    """A login."""

    login_id: Attr[str]
    agent: Attr[str]
    at: Attr[datetime]
    ends: Attr[datetime]
    note: Attr[str | None] = attr(default=None, name="n")
    secret: Attr[str] = attr(default="x")

    class Key(PrimaryKey["Login"], pk="LOGIN#{login_id}", sk="LOGIN"):
        login_id: str

    class ByAgent(Query["LoginRef"], on=Door.by_agent, pk="AGENT#{agent}", sk="{at}"):
        agent: str
        at: Sort[datetime] = sort()


class LoginRef(Entity):
    """What the index tells of a login."""

    login_id: Attr[str]
    at: Attr[datetime]
    ends: Attr[datetime]
    note: Attr[str | None] = attr(default=None, name="n")


def test_a_view_has_what_is_projected_and_what_the_keys_tell() -> None:
    """Attributes come from the projection, the time to live as its table writes it, the rest out of the keys."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with connect("memory:") as db:
        db.create_tables(Door)
        db.put(Login(login_id="l1", agent="ann", at=at, ends=LATER, note="here"))
        db.put(Login(login_id="l2", agent="ann", at=at, ends=LATER))
        asked = Login.ByAgent(agent="ann").at.gte(at)

        assert [view.note for view in db.query(asked)] == ["here", None]
        assert db.query(asked).items[0] == LoginRef(login_id="l1", at=at, ends=LATER, note="here")


def test_a_filter_names_what_the_view_has() -> None:
    """Fields of the view are compared as the table stores them."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with connect("memory:") as db:
        db.create_tables(Door)
        db.put(Login(login_id="l1", agent="ann", at=at, ends=LATER))
        asked = Login.ByAgent(agent="ann")

        assert len(db.query(asked.where(LoginRef.ends > at)).items) == 1
        assert len(db.query(asked.where(LoginRef.note.exists())).items) == 0
