"""Errors: what the desk cannot do, in sentences for the person who asked."""

from __future__ import annotations

from tavola import TavolaError
from tavola.apps.support_desk.domain import TRANSITIONS, Status


class DeskError(TavolaError):
    """What goes wrong at the desk and nowhere else."""


class TicketMissing(DeskError):
    """A ticket that is not there."""

    def __init__(self, ticket_id: str) -> None:
        self.ticket_id = ticket_id
        super().__init__(f"There is no ticket {ticket_id!r}; look at its id")


class AttachmentMissing(DeskError):
    """An attachment that its ticket does not have."""

    def __init__(self, ticket_id: str, name: str) -> None:
        self.ticket_id = ticket_id
        self.name = name
        super().__init__(f"The ticket {ticket_id!r} has no attachment {name!r}; look at its name")


class AttachmentExists(DeskError):
    """A file under a name that another file of the ticket has."""

    def __init__(self, ticket_id: str, name: str) -> None:
        self.ticket_id = ticket_id
        self.name = name
        super().__init__(
            f"The ticket {ticket_id!r} has a file {name!r} already; remove that first, or give this one another name"
        )


class TicketLaden(DeskError):
    """A ticket with as many files as one may have."""

    def __init__(self, ticket_id: str, most: int) -> None:
        self.ticket_id = ticket_id
        self.most = most
        super().__init__(f"The ticket {ticket_id!r} has {most} files, which is the most; remove one first")


class NotEscalated(DeskError):
    """The end of an escalation that there is not."""

    def __init__(self, ticket_id: str, status: Status) -> None:
        self.ticket_id = ticket_id
        self.status = status
        super().__init__(f"The ticket {ticket_id!r} is {status}; there is no escalation to end")


class TransitionRefused(DeskError):
    """A status that may not follow the one that a ticket has."""

    def __init__(self, ticket_id: str, before: Status, after: Status) -> None:
        self.ticket_id = ticket_id
        self.before = before
        self.after = after
        self.allowed = tuple(status for status in Status if status in TRANSITIONS[before])
        super().__init__(
            f"The ticket {ticket_id!r} is {before} and cannot become {after}; it can become {', '.join(self.allowed)}"
        )


class TicketChanged(DeskError):
    """A change of a ticket that somebody else has changed since it was read; nothing was written."""

    def __init__(self, ticket_id: str, expected: int, found: int) -> None:
        self.ticket_id = ticket_id
        self.expected = expected  # the version that was read
        self.found = found  # the version that stands there
        super().__init__(
            f"The ticket {ticket_id!r} was changed by somebody else: version {expected} was read, and it is at {found}; "
            "read it again and repeat the change"
        )


class TicketBusy(DeskError):
    """A ticket that others changed each time that a change was tried; nothing was written."""

    def __init__(self, ticket_id: str, attempts: int) -> None:
        self.ticket_id = ticket_id
        self.attempts = attempts
        super().__init__(
            f"The ticket {ticket_id!r} was changed by others {attempts} times while this change was tried; send it again"
        )


class TextTooLong(DeskError):
    """A text that is longer than the desk takes."""

    def __init__(self, what: str, characters: int, most: int) -> None:
        self.what = what
        self.characters = characters
        self.most = most
        super().__init__(
            f"The {what} has {characters:,} characters, and {most:,} are the most; attach it as a file"
        )


class EmbeddingRefused(DeskError):
    """An embedding that the desk's vector index cannot hold."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"The embedding cannot be used: {problem}")


class SimilarUnavailable(DeskError):
    """A search for similar tickets where the target has no vector indexes."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Similar tickets cannot be searched here: {reason}; everything else works")


class TicketFull(DeskError):
    """A ticket with as many events as its sequence has numbers."""

    def __init__(self, ticket_id: str, most: int) -> None:
        self.ticket_id = ticket_id
        self.most = most
        super().__init__(f"The ticket {ticket_id!r} has {most:,} events, which is the most; open another one")
