"""ApplicationError: the base of the errors that the applications define themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola import TavolaError


class ApplicationError(TavolaError):
    """An error of one application, with what its HTTP response shows besides `code` and `kind`.

    `title` is the same for every instance of a class. `detail` is the message as a sentence, or a text of its own where the
    message repeats what the request contained: responses end up in logs. `extensions` become members of the problem document.
    """

    title = "Invalid request"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extensions: Any,
    ) -> None:
        self.detail = _sentence(message if detail is None else detail)
        self.headers = dict(headers or {})
        self.extensions = extensions
        super().__init__(message)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
