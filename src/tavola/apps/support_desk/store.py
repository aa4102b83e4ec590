"""SupportDeskStore: the desk's tables on a connection, with the patterns they use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from tavola import AsyncConnection
from tavola.apps.support_desk.domain import CLOSED_STATUSES, Priority, TicketStatus
from tavola.apps.support_desk.metrics import DeskProjector, create_projector
from tavola.apps.support_desk.model import TABLES, CachedAnswer, Login, RequestOutcome
from tavola.apps.support_desk.similar import DIMENSIONS, SimilarIndex
from tavola.patterns import Blobs, BlobStore, Cache, Idempotency, Sessions

REQUEST_LIFE = timedelta(hours=24)
CACHE_LIFE = timedelta(minutes=15)
SESSION_LIFE = timedelta(hours=24)
# Larger attachments go to the blob store, because a ticket's page reads this item
ATTACHMENT_BYTES_INLINE = 4 * 1024


class TicketOpened(BaseModel):
    """The stored answer to opening a ticket, returned again when the request is repeated."""

    ticket_id: str
    customer_id: str
    status: TicketStatus
    priority: Priority
    subject: str
    created_at: datetime
    version: int


class FeedbackGiven(BaseModel):
    """The stored answer to feedback, returned again when the request is repeated."""

    ticket_id: str
    feedback_id: str
    operator_id: str
    submitted_at: datetime
    rating: int


class NoteAdded(BaseModel):
    """The stored answer to a note, returned again when the request is repeated."""

    ticket_id: str
    at: datetime
    sequence: int
    actor: str | None
    note: str


class CachedNeighbour(BaseModel):
    """A similar ticket, as cached."""

    ticket_id: str
    distance: float


@dataclass(frozen=True, slots=True)
class Retention:
    """How long old data is kept; None keeps it forever."""

    tickets: timedelta | None = None  # after they were closed
    audit: timedelta | None = None  # events, after they happened


class SupportDeskStore:
    """The desk on a connection; `blobs` holds what is too large for an item."""

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
        self.neighbours = Cache(db, CachedAnswer, list[CachedNeighbour], life=CACHE_LIFE)
        self.projector: DeskProjector = create_projector(db)
        self.similar = SimilarIndex(db, dimensions)

    async def create_tables(self) -> None:
        """Create the missing tables, and the vector index if the target supports it."""
        await self.db.create_tables(*TABLES)
        await self.similar.open()

    def now(self) -> datetime:
        """Return the current time of the connection's clock."""
        return datetime.fromtimestamp(self.db.context.clock.now(), UTC)

    def event_expiry(self, at: datetime) -> datetime | None:
        """Return when an event expires; None if events are kept forever."""
        return None if self.retention.audit is None else at + self.retention.audit

    def ticket_expiry(self, status: TicketStatus, at: datetime) -> datetime | None:
        """Return when a ticket that got a status at some time expires; None if it does not."""
        life = self.retention.tickets
        return at + life if life is not None and status in CLOSED_STATUSES else None

    def new_id(self, kind: str) -> str:
        """Return a new unique id: the kind, and 80 random bits."""
        return f"{kind}_{self.db.context.entropy.bytes(10).hex()}"
