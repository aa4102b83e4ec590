"""Store: the desk's tables on a connection, with the patterns wired."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from tavola import AsyncConnection
from tavola.apps.support_desk.domain import CLOSED, Priority, Status
from tavola.apps.support_desk.embeddings import DIMENSIONS
from tavola.apps.support_desk.model import TABLES, CachedAnswer, Login, RequestOutcome
from tavola.apps.support_desk.numbers import DeskProjector, projector_of
from tavola.apps.support_desk.similar import SimilarIndex
from tavola.patterns import Blobs, BlobStore, Cache, Idempotency, Sessions

REQUEST_LIFE = timedelta(hours=24)
CACHE_LIFE = timedelta(minutes=15)
SESSION_LIFE = timedelta(hours=24)
ATTACHMENT_BYTES_INLINE = 4 * 1024  # a ticket's page reads its attachments too, and should stay small


class TicketOpened(BaseModel):
    """The answer to the opening of a ticket, given again to who asks again."""

    ticket_id: str
    customer_id: str
    status: Status
    priority: Priority
    subject: str
    created_at: datetime
    version: int


class FeedbackGiven(BaseModel):
    """The answer to feedback, given again to who asks again."""

    ticket_id: str
    feedback_id: str
    operator_id: str
    submitted_at: datetime
    rating: int


class NoteAdded(BaseModel):
    """The answer to a note, given again to who asks again."""

    ticket_id: str
    at: datetime
    sequence: int
    actor: str | None
    note: str


class Neighbour(BaseModel):
    """A ticket whose text is near another's, as it is cached."""

    ticket_id: str
    distance: float


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is over is kept; None is for ever."""

    tickets: timedelta | None = None  # after they are closed
    audit: timedelta | None = None  # events, after they happened


class SupportDeskStore:
    """The desk at work on a connection; `blobs` takes what is too large for an item."""

    def __init__(
        self,
        db: AsyncConnection,
        blobs: BlobStore,
        *,
        retention: Retention = Retention(),  # noqa: B008 - it is frozen
        dimensions: int = DIMENSIONS,
    ) -> None:
        self.db = db
        self.retention = retention
        self.blobs = Blobs(db, blobs, inline=ATTACHMENT_BYTES_INLINE)
        self.tickets_opened = Idempotency(db, RequestOutcome, TicketOpened, life=REQUEST_LIFE)
        self.feedback_given = Idempotency(db, RequestOutcome, FeedbackGiven, life=REQUEST_LIFE)
        self.notes_added = Idempotency(db, RequestOutcome, NoteAdded, life=REQUEST_LIFE)
        self.sessions = Sessions(db, Login, life=SESSION_LIFE, longest=7 * SESSION_LIFE)
        self.neighbours = Cache(db, CachedAnswer, list[Neighbour], life=CACHE_LIFE)
        self.projector: DeskProjector = projector_of(db)
        self.similar = SimilarIndex(db, dimensions)

    async def create_tables(self) -> None:
        """Make the tables that are missing, and the vector index where the target can have one."""
        await self.db.create_tables(*TABLES)
        await self.similar.open()

    def now(self) -> datetime:
        """Return the present moment, by the connection's clock."""
        return datetime.fromtimestamp(self.db.context.clock.now(), UTC)

    def audit_ends(self, at: datetime) -> datetime | None:
        """Return when an event of a moment is no longer kept."""
        return None if self.retention.audit is None else at + self.retention.audit

    def ticket_ends(self, status: Status, at: datetime) -> datetime | None:
        """Return when a ticket that came to a status at a moment is no longer kept."""
        life = self.retention.tickets
        return at + life if life is not None and status in CLOSED else None

    def new_id(self, kind: str) -> str:
        """Return an id that nobody has: `tkt_` and 80 random bits."""
        return f"{kind}_{self.db.context.entropy.bytes(10).hex()}"
