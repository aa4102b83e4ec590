"""Errors of the prices package: a region, a date or a price that no price book has."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


class PriceError(TavolaError):
    """A price is not available."""


class UnknownPriceBook(PriceError):
    """No price book has this region, date or label; `known` lists the available ones."""

    code = "book-unknown"
    kind = ErrorKind.USAGE
    remedy = (
        "Choose an available book with --region or --date, or pass your own prices with --prices FILE.toml."
    )

    def __init__(self, message: str, *, wanted: str, known: tuple[str, ...]) -> None:
        self.wanted = wanted
        self.known = known
        super().__init__(message)


class UnknownPrice(PriceError):
    """The book has no such price, or not in US dollars; `known` lists the names it has."""

    code = "price-unknown"

    def __init__(self, message: str, *, name: str, book: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.book = book
        self.known = known
        super().__init__(message)


class InvalidPriceBook(PriceError):
    """A file is not a valid price book; the message names the file, the entry and the problem."""

    code = "book-unreadable"

    def __init__(self, message: str, *, place: str) -> None:
        self.place = place
        super().__init__(message)
