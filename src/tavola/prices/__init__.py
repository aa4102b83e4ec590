"""Prices: what AWS charges for DynamoDB, in dated price books.

One book per region and date, as data files next to the code. Each price has its currency, unit, source and confidence. The
package knows prices per unit only: tables, requests and traffic belong to `tavola.design.cost`. Books are dated because prices
change (in November 2024 they fell by half), and an amount without date and region cannot be verified.
"""

from tavola.prices.book_files import books, labelled_book, load_book, read_book, unknown_prices
from tavola.prices.errors import InvalidPriceBook, PriceError, UnknownPrice, UnknownPriceBook
from tavola.prices.price_book import CONFIDENCES, Discount, Price, PriceBook

__all__ = [
    "CONFIDENCES",
    "Discount",
    "InvalidPriceBook",
    "Price",
    "PriceBook",
    "PriceError",
    "UnknownPrice",
    "UnknownPriceBook",
    "books",
    "labelled_book",
    "load_book",
    "read_book",
    "unknown_prices",
]
