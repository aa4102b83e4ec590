"""What the expressions room refuses, in DynamoDB's words."""

from __future__ import annotations

from tavola.errors import TavolaError


class ExpressionError(TavolaError):
    """A text that does not parse or check; `str(error)` is DynamoDB's whole sentence.

    `span` is where in the text a syntax error lies, start and end; None where the sentence is about more
    than one place.
    """

    remedy = "Mend the value or expression that is named; nothing was changed."

    def __init__(self, sentence: str, span: tuple[int, int] | None = None) -> None:
        self.span = span
        super().__init__(sentence)


class UpdateRefused(ExpressionError):
    """An update that checks, but that the item it meets does not allow."""
