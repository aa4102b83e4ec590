"""The errors of expressions, in DynamoDB's words."""

from __future__ import annotations

from tavola.errors import TavolaError


class ExpressionError(TavolaError):
    """A text does not parse or check; `str(error)` is DynamoDB's whole message.

    `span` is the start and end of a syntax error in the text; None if the error has no single location.
    """

    remedy = "Fix the value or expression named above; nothing was changed."

    def __init__(self, sentence: str, span: tuple[int, int] | None = None) -> None:
        self.span = span
        super().__init__(sentence)


class UpdateRefused(ExpressionError):
    """A valid update that the current item does not allow."""
