"""The errors that the support desk raises.

Messages name the ticket; the details that go into HTTP responses do not, because responses end up in logs.
"""

from __future__ import annotations

from tavola.apps.errors import ApplicationError
from tavola.apps.support_desk.domain import TRANSITIONS, Status
from tavola.errors import ErrorKind


class DeskError(ApplicationError):
    """The base of the support desk's own errors."""

    code = "refused"
    kind = ErrorKind.CONFLICT
    title = "Refused"


class TicketMissing(DeskError):
    """No ticket has this id."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "Not found"

    def __init__(self, ticket_id: str) -> None:
        self.ticket_id = ticket_id
        super().__init__(
            f"There is no ticket {ticket_id!r}; look at its id",
            detail="There is no such ticket. Check its id, or list what there is.",
        )


class AttachmentMissing(DeskError):
    """The ticket has no attachment of this name."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "Not found"

    def __init__(self, ticket_id: str, name: str) -> None:
        self.ticket_id = ticket_id
        self.name = name
        super().__init__(
            f"The ticket {ticket_id!r} has no attachment {name!r}; look at its name",
            detail="There is no such attachment. Check its id, or list what there is.",
        )


class AttachmentExists(DeskError):
    """Another file of the ticket has this name."""

    def __init__(self, ticket_id: str, name: str) -> None:
        self.ticket_id = ticket_id
        self.name = name
        super().__init__(
            f"The ticket {ticket_id!r} has a file {name!r} already; remove that first, or give this one another name"
        )


class AttachmentLimitReached(DeskError):
    """The ticket has the maximum number of attachments."""

    def __init__(self, ticket_id: str, most: int) -> None:
        self.ticket_id = ticket_id
        self.most = most
        super().__init__(f"The ticket {ticket_id!r} has {most} files, which is the most; remove one first")


class NotEscalated(DeskError):
    """An escalation cannot end because the ticket is not escalated."""

    code = "not-escalated"
    title = "Not escalated"

    def __init__(self, ticket_id: str, status: Status) -> None:
        self.ticket_id = ticket_id
        self.status = status
        super().__init__(
            f"The ticket {ticket_id!r} is {status}; there is no escalation to end",
            detail=f"The ticket is {status}; there is no escalation to end.",
        )


class TransitionRefused(DeskError):
    """The ticket cannot change from its current status to this one."""

    code = "transition-refused"
    title = "Status cannot follow"

    def __init__(self, ticket_id: str, before: Status, after: Status) -> None:
        self.ticket_id = ticket_id
        self.before = before
        self.after = after
        self.allowed = tuple(status for status in Status if status in TRANSITIONS[before])
        reason = f"is {before} and cannot become {after}; it can become {', '.join(self.allowed)}"
        escalation = " ESCALATED is reached by an escalation alone." if "ESCALATED" in self.allowed else ""
        super().__init__(
            f"The ticket {ticket_id!r} {reason}",
            detail=f"The ticket {reason}.{escalation}",
            present=before,
            allowed=list(self.allowed),
        )


class TicketChanged(DeskError):
    """The ticket has changed since the caller read it; nothing was written."""

    code = "precondition-failed"
    title = "Changed meanwhile"

    def __init__(self, ticket_id: str, expected: int, found: int) -> None:
        self.ticket_id = ticket_id
        self.expected = expected  # the version that the caller read
        self.found = found  # the current version
        super().__init__(
            f"The ticket {ticket_id!r} was changed by somebody else: version {expected} was read, and it is at {found}; "
            "read it again and repeat the change",
            detail=f"The ticket is at version {found}, and the change was meant for {expected}. Read it again and "
            "repeat the change on what it is now.",
            headers={"ETag": f'"{found}"'},
        )


class TicketBusy(DeskError):
    """Every attempt at a change lost the race against other writers; nothing was written."""

    code = "contended"
    title = "Changed by others all the time"

    def __init__(self, ticket_id: str, attempts: int) -> None:
        self.ticket_id = ticket_id
        self.attempts = attempts
        super().__init__(
            f"The ticket {ticket_id!r} was changed by others {attempts} times while this change was tried; send it again",
            detail="Others changed the ticket each time that this change was tried, and nothing of it was saved. Send it again.",
            headers={"Retry-After": "1"},
        )


class TextTooLong(DeskError):
    """A text exceeds its limit."""

    code = "too-large"
    kind = ErrorKind.TOO_LARGE
    title = "Too large"

    def __init__(self, what: str, characters: int, most: int) -> None:
        self.what = what
        self.characters = characters
        self.most = most
        super().__init__(
            f"The {what} has {characters:,} characters, and {most:,} are the most; attach it as a file"
        )


class EmbeddingRefused(DeskError):
    """The vector index cannot hold this embedding."""

    code = "invalid"
    kind = ErrorKind.INVALID
    title = "Invalid request"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"The embedding cannot be used: {problem}",
            errors=[{"in": "body", "pointer": "#/embedding", "detail": problem}],
        )


class SimilarUnavailable(DeskError):
    """The target has no vector indexes, so similar tickets cannot be searched."""

    code = "no-vectors"
    kind = ErrorKind.NOT_INSTALLED
    title = "No vector search"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Similar tickets cannot be searched here: {reason}; everything else works")


class EventLimitReached(DeskError):
    """The ticket has the maximum number of events."""

    def __init__(self, ticket_id: str, most: int) -> None:
        self.ticket_id = ticket_id
        self.most = most
        super().__init__(f"The ticket {ticket_id!r} has {most:,} events, which is the most; open another one")
