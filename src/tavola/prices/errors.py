"""Errors of the prices package: a region, a date or a price that no price book has."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


class PriceError(TavolaError):
    """A price that cannot be told; each kind says what can be."""


class BookUnknown(PriceError):
    """There is no book for this region, date or label; the ones that there are, are in `known`."""

    kind = ErrorKind.USAGE
    remedy = (
        "Choose one that there is with --region or --date; or give prices of your own, --prices FILE.toml."
    )

    def __init__(self, message: str, *, wanted: str, known: tuple[str, ...]) -> None:
        self.wanted = wanted
        self.known = known
        super().__init__(message)


class PriceUnknown(PriceError):
    """The book has no such price, or not in US dollars; the names that it has are in `known`."""

    def __init__(self, message: str, *, name: str, book: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.book = book
        self.known = known
        super().__init__(message)


class BookUnreadable(PriceError):
    """A file of prices that is no price book: the file, the line's name and what is wrong with it."""

    def __init__(self, message: str, *, place: str) -> None:
        self.place = place
        super().__init__(message)
