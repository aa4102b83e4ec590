"""Mistakes with streams, one a line; nothing here is ever run."""

from __future__ import annotations

from tavola import AsyncConnection, Connection, EntityChange, Router
from tavola.patterns import Outbox, Projector
from tests.patterns.board import Board, Case, Counted, Helpdesk, Numbers, Rating
from tests.patterns.test_outbox import Outgoing, Relaying
from tests.typing.ok_streams import on_case, shares

router = Router(Helpdesk)


def read(change: EntityChange[Case]) -> None:
    """A change is of its entity, and one side of it may be none."""
    change.new.status  # error: it may be gone
    change.nwe  # error: no such member
    if change.new is not None:
        change.new.stars  # error: a case has no stars


router.on(Rating)(on_case)  # error: that function is for cases
router.on(Case, "deleted")  # error: no such kind
router.on(Board)  # error: a table is no entity


def called(db: Connection) -> None:
    """Verbs take what they say."""
    projector = Projector(db, Helpdesk, Numbers, Counted)
    projector.of(Rating)(shares)  # error: it looks at cases
    projector.value(3)  # error: a name is text
    projector.value("cases").maen  # error: no such member
    Projector(db, Helpdesk, Counted, Numbers)  # error: a mark is no metric
    Projector(db, Case, Numbers, Counted)  # error: an entity is no table
    db.subscribe(Case)  # error: an entity has no stream
    db.subscribe(Helpdesk, from_="yesterday")  # error: no such beginning
    outbox = Outbox(db, Outgoing, Relaying, Outgoing.Waiting)
    outbox.add(db, "case/c")  # error: an event goes into a transaction
    Outbox(db, Relaying, Outgoing, Outgoing.Waiting)  # error: a lease holds no events


async def awaited(db: AsyncConnection) -> None:
    """What must be awaited is not there before."""
    projector = Projector(db, Helpdesk, Numbers, Counted)
    projector.value("cases").count  # error: it is not awaited
    async for _ in db.subscribe(Helpdesk):  # error: it is not awaited
        pass
