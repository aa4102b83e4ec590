"""Price book files: the books that come with Tavola, and files in the same format.

A file is named `<region>.<date>.toml`, or `<region>.<label>.<date>.toml` if it has the prices of a document. All files are read
once, on first use.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tavola.prices.errors import InvalidPriceBook, UnknownPriceBook
from tavola.prices.price_book import CONFIDENCES, Discount, Price, PriceBook

_FOLDER = Path(__file__).parent / "books"


def load_book(region: str, date: datetime.date | None = None) -> PriceBook:
    """Return the newest book of a region, or the newest at or before a date.

    Labelled books are excluded; see `labelled_book`.
    """
    unlabelled = [book for book in books() if book.label is None]
    of_region = [book for book in unlabelled if book.region == region]
    if not of_region:
        known = tuple(dict.fromkeys(book.region for book in unlabelled))
        raise UnknownPriceBook(
            f"no price book for region {region!r}; available: {', '.join(known)}", wanted=region, known=known
        )
    in_time = [book for book in of_region if date is None or book.date <= date]
    if not in_time:
        dates = tuple(book.date.isoformat() for book in of_region)
        raise UnknownPriceBook(
            f"no price book of {region} at or before {date}; available: {', '.join(dates)}",
            wanted=f"{region} {date}",
            known=dates,
        )
    return in_time[-1]


def labelled_book(label: str) -> PriceBook:
    """Return the book with the prices that a document states."""
    books_by_label = {book.label: book for book in books() if book.label is not None}
    if label not in books_by_label:
        known = tuple(books_by_label)
        raise UnknownPriceBook(
            f"no price book labelled {label!r}; available: {', '.join(known)}", wanted=label, known=known
        )
    return books_by_label[label]


def read_book(path: Path) -> PriceBook:
    """Return the book in a user's file, which may have any name."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidPriceBook(f"{path} cannot be read: {why}", place=str(path)) from error
    return parse_book(str(path), text, named=False)


def unknown_prices(book: PriceBook) -> tuple[str, ...]:
    """Return the price names of a book that no built-in book has, such as misspelled ones."""
    known = {name for book in books() for name in book.prices}
    return tuple(name for name in book.prices if name not in known)


@cache
def books() -> tuple[PriceBook, ...]:
    """Return all built-in books by region and date; labelled ones come last."""
    read = [parse_book(file.name, file.read_text("utf-8")) for file in _FOLDER.iterdir()]
    return tuple(sorted(read, key=lambda book: (book.label is not None, book.region, book.date)))


def parse_book(place: str, text: str, *, named: bool = True) -> PriceBook:
    """Return the book in a file's text. Raises `InvalidPriceBook`.

    With `named`, the file name must match region, label and date. Numbers become decimals without passing through a float.
    """
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPriceBook(f"{place} is not valid TOML: {error}", place=place) from error
    region, date = _text(place, document, "region"), document.get("date")
    if type(date) is not datetime.date:
        raise InvalidPriceBook(f"{place}: date must be a date, such as 2026-08-01", place=place)
    label = _text(place, document, "label") if "label" in document else None
    name = ".".join(filter(None, (region, label, date.isoformat(), "toml")))
    if named and name != place:
        raise InvalidPriceBook(f"{place} contains the book of {name}; rename the file", place=place)
    currency = _text(place, document, "currency")
    source = _text(place, document, "source")
    prices = [
        _price(f"{place}: {key}", key, line, currency, source)
        for key, line in _lines(place, document, "prices")
    ]
    discounts = [
        _discount(f"{place}: {key}", key, line) for key, line in _lines(place, document, "discounts")
    ]
    return PriceBook(
        region=region,
        date=date,
        source=source,
        prices=MappingProxyType({price.name: price for price in prices}),
        label=label,
        discounts=MappingProxyType({discount.name: discount for discount in discounts}),
    )


def _lines(place: str, document: dict[str, Any], member: str) -> Iterable[tuple[str, dict[str, Any]]]:
    lines = document.get(member, {})
    if not isinstance(lines, dict) or not all(isinstance(line, dict) for line in lines.values()):
        raise InvalidPriceBook(f"{place}: {member} must be tables, such as [{member}.name]", place=place)
    if member == "prices" and not lines:
        raise InvalidPriceBook(f"{place} has no prices", place=place)
    return lines.items()


def _price(place: str, name: str, line: dict[str, Any], currency: str, source: str) -> Price:
    per = line.get("per", 1)
    if type(per) is not int or per < 1:
        raise InvalidPriceBook(f"{place}: per must be a whole number of units", place=place)
    return Price(
        name=name,
        amount=_number(place, line, "price"),
        per=per,
        unit=_text(place, line, "unit"),
        currency=_text(place, line, "currency") if "currency" in line else currency,
        source=_text(place, line, "source") if "source" in line else source,
        confidence=_confidence(place, line),
        free=_number(place, line, "free") if "free" in line else None,
    )


def _discount(place: str, name: str, line: dict[str, Any]) -> Discount:
    return Discount(
        name=name,
        percent_max=_percent(place, line, "percent_max"),
        terms=_text(place, line, "terms"),
        source=_text(place, line, "source"),
        confidence=_confidence(place, line),
    )


def _confidence(place: str, line: dict[str, Any]) -> str:
    confidence = _text(place, line, "confidence")
    if confidence not in CONFIDENCES:
        raise InvalidPriceBook(f"{place}: confidence must be one of {', '.join(CONFIDENCES)}", place=place)
    return confidence


def _number(place: str, line: dict[str, Any], member: str) -> Decimal:
    number = line.get(member)
    if type(number) is int:
        number = Decimal(number)
    if not isinstance(number, Decimal) or not number.is_finite() or number < 0:
        raise InvalidPriceBook(f"{place}: {member} must be a number of 0 or more", place=place)
    return number


def _percent(place: str, line: dict[str, Any], member: str) -> Decimal:
    number = _number(place, line, member)
    if number > 100:
        raise InvalidPriceBook(f"{place}: {member} must be 0 to 100", place=place)
    return number


def _text(place: str, line: dict[str, Any], member: str) -> str:
    text = line.get(member)
    if not isinstance(text, str) or not text:
        raise InvalidPriceBook(f"{place}: {member} must be a non-empty string", place=place)
    return text
