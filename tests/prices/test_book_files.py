"""The shelf: which book is found, and what makes a file no book."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tavola.prices import InvalidPriceBook, UnknownPriceBook, books, labelled_book, load_book, read_book
from tavola.prices.book_files import parse_book

_PLACE = "us-east-1.2026-01-02.toml"
_BOOK = """
region = "us-east-1"
date = 2026-01-02
currency = "USD"
source = "a price list"

[prices.read_request_unit]
price = 0.1
per = 1_000_000
unit = "read request unit"
confidence = "high"
"""


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((2024, 10, 31), (2024, 10, 31)),
        ((2024, 11, 1), (2024, 11, 1)),
        ((2025, 6, 1), (2024, 11, 1)),
        ((2026, 8, 1), (2026, 8, 1)),
        ((2040, 1, 1), (2026, 8, 1)),
    ],
)
def test_the_newest_book_at_or_before_a_date_is_found(
    asked: tuple[int, int, int], found: tuple[int, int, int]
) -> None:
    """A sum of last year is made with last year's prices, and the book says so."""
    book = load_book("us-east-1", datetime.date(*asked))

    assert book.date == datetime.date(*found)


def test_without_a_date_the_newest_book_is_found() -> None:
    """Today's prices are the newest that we have, whatever the clock says."""
    own = [book for book in books() if book.region == "us-east-1" and book.label is None]

    assert load_book("us-east-1") is own[-1]
    assert load_book("us-east-1").title == "us-east-1, 2026-08-01"


def test_an_unknown_region_is_refused_with_those_that_there_are() -> None:
    """Whoever mistypes a region sees the regions."""
    with pytest.raises(
        UnknownPriceBook, match=r"no price book for region 'us-esat-1'; .*us-east-1"
    ) as raised:
        load_book("us-esat-1")

    assert raised.value.wanted == "us-esat-1"
    assert raised.value.known == ("ap-northeast-2", "us-east-1", "us-west-2")


def test_a_date_before_the_first_book_is_refused_with_the_dates() -> None:
    """Older prices than we know are not guessed."""
    with pytest.raises(UnknownPriceBook, match="at or before 2001-01-01; available: 2024-10-31") as raised:
        load_book("us-east-1", datetime.date(2001, 1, 1))

    assert raised.value.known == ("2024-10-31", "2024-11-01", "2026-08-01")


def test_the_price_cut_of_2024_is_in_the_books() -> None:
    """On-demand requests cost half from 1 November 2024, and provisioned ones the same as before."""
    before, after = (load_book("us-east-1", datetime.date(*day)) for day in ((2024, 10, 31), (2024, 11, 1)))

    for name in ("read_request_unit", "write_request_unit"):
        assert before.price(name).amount == 2 * after.price(name).amount
    assert before.price("write_capacity_unit_hour") == after.price("write_capacity_unit_hour")


@pytest.mark.parametrize(
    ("label", "reads", "writes"),
    [("support-desk", "1.25", "1.25"), ("patterns", "0.125", "0.625"), ("service-desk", "0.25", "1.25")],
)
def test_each_document_keeps_its_own_prices(label: str, reads: str, writes: str) -> None:
    """Pitfall 11: the documents disagree; each has its own book, and none of them passes for AWS's price."""
    book = labelled_book(label)

    assert book.price("read_request_unit").amount == Decimal(reads)
    assert book.price("write_request_unit").amount == Decimal(writes)
    assert label in book.title
    assert load_book(book.region, book.date).label is None
    assert {price.confidence for price in book.prices.values()} == {"low"}


def test_an_unknown_label_is_refused_with_those_that_there_are() -> None:
    """Whoever mistypes a document's label sees the labels."""
    with pytest.raises(UnknownPriceBook, match="no price book labelled 'desk'; available: support-desk"):
        labelled_book("desk")


def test_every_line_of_every_book_says_where_it_is_from() -> None:
    """No price without a unit, a currency and a source."""
    lines = [price for book in books() for price in book.prices.values()]

    assert len(lines) > 50
    assert all(price.unit and price.source and len(price.currency) == 3 for price in lines)
    assert all(book.price(name) for book in books() for name in ("read_request_unit", "write_request_unit"))


def test_a_number_passes_through_no_float() -> None:
    """0.1 is a tenth."""
    assert parse_book(_PLACE, _BOOK).price("read_request_unit").amount == Decimal("0.1")


def test_a_book_cannot_be_written_in() -> None:
    """One caller's change would be every caller's."""
    with pytest.raises(TypeError):
        load_book("us-east-1").prices["read_request_unit"] = None  # type: ignore[index]


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ('region = "us-east-1"', "region = ", "is not valid TOML"),
        ('region = "us-east-1"', 'region = ""', "region must be a non-empty string"),
        ("date = 2026-01-02", 'date = "2026-01-02"', "date must be a date"),
        ("date = 2026-01-02", "date = 2026-01-02T00:00:00", "date must be a date"),
        ("date = 2026-01-02", "date = 2026-01-03", r"contains the book of us-east-1\.2026-01-03\.toml"),
        ("date = 2026-01-02", 'date = 2026-01-02\nlabel = "x"', r"contains the book of us-east-1\.x\.2026"),
        ("price = 0.1", 'price = "0.1"', "read_request_unit: price must be a number"),
        ("price = 0.1", "price = -0.1", "price must be a number of 0 or more"),
        ("price = 0.1", "price = nan", "price must be a number"),
        ("price = 0.1", "price = true", "price must be a number"),
        ("price = 0.1", "price = 0.1\nfree = -1", "free must be a number"),
        ("per = 1_000_000", "per = 0", "per must be a whole number"),
        ("per = 1_000_000", "per = 0.5", "per must be a whole number"),
        ('unit = "read request unit"', "", "unit must be a non-empty string"),
        ('confidence = "high"', 'confidence = "sure"', "confidence must be one of high, medium, low"),
    ],
)
def test_a_file_that_is_no_book_is_refused(line: str, instead: str, told: str) -> None:
    """The file, the line's name and what is wrong with it are told."""
    with pytest.raises(InvalidPriceBook, match=told) as raised:
        parse_book(_PLACE, _BOOK.replace(line, instead))

    assert raised.value.place.startswith(_PLACE)


def test_a_book_without_prices_is_refused() -> None:
    """An empty book would fail far from its file."""
    with pytest.raises(InvalidPriceBook, match="has no prices"):
        parse_book(_PLACE, _BOOK.partition("[prices")[0])


def test_a_book_of_ones_own_may_have_any_name(tmp_path: Path) -> None:
    """A file of the books' form is read whatever it is called; one that is none is refused with its place."""
    own = tmp_path / "mine.toml"
    head = 'region = "moon-1"\ndate = 2026-01-01\ncurrency = "USD"\nsource = "a letter"\n'
    own.write_text(f'{head}[prices.restore_gb]\nprice = 0.5\nunit = "GB"\nconfidence = "low"\n')

    assert read_book(own).price("restore_gb").amount == Decimal("0.5")
    for wrong, sentence in (
        (f"{head}prices = 3\n", "must be tables"),
        (f"{head}prices = {{x = 1}}\n", "must be tables"),
        ("{", "not valid TOML"),
    ):
        own.write_text(wrong)
        with pytest.raises(InvalidPriceBook, match=sentence):
            read_book(own)
    own.write_bytes(b"\xff\xfe")
    for path in (own, tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidPriceBook, match="cannot be read"):
            read_book(path)
