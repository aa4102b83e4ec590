"""Prices: what AWS asks for DynamoDB, in dated books.

Holds one book for each region and date, as data files beside the code, each line with its currency, its
unit, its source and how sure we are of it. Knows no table, no request and no traffic: what a unit costs,
never how many there will be. Why dated: prices fall (in November 2024 by half), and a sum of money that
does not say its date and region cannot be checked.
"""

from tavola.prices.errors import BookUnknown, BookUnreadable, PriceError, PriceUnknown
from tavola.prices.price_book import CONFIDENCES, Discount, Price, PriceBook
from tavola.prices.shelf import books, labelled_book, load_book, read_book, unknown_prices

__all__ = [
    "CONFIDENCES",
    "BookUnknown",
    "BookUnreadable",
    "Discount",
    "Price",
    "PriceBook",
    "PriceError",
    "PriceUnknown",
    "books",
    "labelled_book",
    "load_book",
    "read_book",
    "unknown_prices",
]
