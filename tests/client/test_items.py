"""One entity at a time: get, put, create, update, delete."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tavola import Connection, ItemExists, ItemMissing
from tests.client.desk import Ticket

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def ticket(**more: object) -> Ticket:
    """Return a ticket."""
    return Ticket(**{"ticket_id": "t1", "customer_id": "c1", "subject": "VPN", "created_at": AT, **more})  # type: ignore[arg-type]


def test_what_is_put_is_got(db: Connection) -> None:
    """A get returns the entity that was put, equal in every field."""
    stored = db.put(ticket())

    assert db.get(Ticket.Key(ticket_id="t1")) == stored


def test_nothing_is_none(db: Connection) -> None:
    """A key that nothing is stored under gives None."""
    assert db.get(Ticket.Key(ticket_id="t0")) is None


def test_a_creation_never_overwrites(db: Connection) -> None:
    """Creating what is there is refused, with what is there on the error."""
    db.create(ticket())

    with pytest.raises(ItemExists) as refused:
        db.create(ticket(subject="other"))

    assert refused.value.found == ticket()


def test_an_update_makes_no_ghost(db: Connection) -> None:
    """Changing an item that is not there is refused, and leaves nothing."""
    with pytest.raises(ItemMissing):
        db.update(Ticket.Key(ticket_id="t9"), Ticket.status.set("closed"))

    assert db.get(Ticket.Key(ticket_id="t9")) is None
