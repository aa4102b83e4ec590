"""ApplicationError: the base of the errors that the applications define themselves, and the kind that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tavola import TavolaError
from tavola.errors import ErrorKind


class ApplicationError(TavolaError):
    """An error of one application, with what its HTTP response shows besides `code` and `kind`.

    A subclass is raised with a message, or declares its data as a dataclass:

        @dataclass(eq=False)
        class TicketMissing(SupportDeskError):
            ticket_id: str
            message = "Ticket {ticket_id!r} does not exist."
            public_message = "This ticket does not exist."

    Both messages are templates over the fields. `public_message` goes into the HTTP response instead of `message` where that
    quotes the request, because responses end up in logs. `title` is the same for every instance of a class.
    """

    title = "Invalid request"
    message: ClassVar[str] = ""
    public_message: ClassVar[str | None] = None

    def __init__(self, message: str | None = None) -> None:
        text = self.message.format_map(vars(self)) if message is None else message
        public = text if self.public_message is None else self.public_message.format_map(vars(self))
        self.detail = _sentence(public)
        super().__init__(text)

    def __post_init__(self) -> None:
        """Initialise an error that is declared as a dataclass."""
        ApplicationError.__init__(self)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the HTTP response."""
        return {}

    @property
    def extensions(self) -> Mapping[str, Any]:
        """Further members of the problem document."""
        return {}


class RecordMissing(ApplicationError):
    """A record that a request names does not exist."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "Not found"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
