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


def test_get_returns_the_entity_that_was_put(db: Connection) -> None:
    """The entities are equal in every field."""
    stored = db.put(ticket())

    assert db.get(Ticket.Key(ticket_id="t1")) == stored


def test_a_missing_item_is_none(db: Connection) -> None:
    """A get of a key without an item returns None."""
    assert db.get(Ticket.Key(ticket_id="t0")) is None


def test_a_creation_never_overwrites(db: Connection) -> None:
    """Creating an existing item is refused; the error holds the stored entity."""
    db.create(ticket())

    with pytest.raises(ItemExists) as refused:
        db.create(ticket(subject="other"))

    assert refused.value.found == ticket()


def test_an_update_of_a_missing_item_is_refused(db: Connection) -> None:
    """The update does not create an item."""
    with pytest.raises(ItemMissing):
        db.update(Ticket.Key(ticket_id="t9"), Ticket.status.set("closed"))

    assert db.get(Ticket.Key(ticket_id="t9")) is None
