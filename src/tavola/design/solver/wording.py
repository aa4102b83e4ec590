"""Words of keys, and names of tables, indexes, classes and attributes.

All names are valid in DynamoDB and in Python. Every template begins with a word, and groups of items that must not meet have different
words: a word is followed by the delimiter and values are escaped, so keys with different words never collide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from keyword import iskeyword, issoftkeyword
from unicodedata import normalize

CLASSES = frozenset({
    "Annotated", "Any", "Config", "Decimal", "Field", "Literal", "UUID", "AccessPattern", "Attr", "Collection",
    "Consumer", "Entity", "EpochMilliseconds", "EpochSeconds", "Exact", "Gsi", "Lsi", "PrimaryKey", "Query", "Scaling",
    "Shards", "Sort", "Table", "WritePattern",
})  # fmt: skip  # what a module that declares a design uses itself

_LONG = 80  # letters of a name that people still read
_WORDS = re.compile(r"[A-Za-z0-9]+")
_TABLE_NAMES = frozenset({"settings", "indexes", "entities", "consumers"})  # what a table's class has already
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def key_word(name: str) -> str:
    """Return a name as a word of a key: `TicketVector` gives TICKET_VECTOR, `customer_id` CUSTOMER."""
    text = _HUMPS.sub("_", name).upper().strip("_")
    return text.removesuffix("_ID") or text


class KeyWords:
    """The words that a table's or an index's keys begin with, each given away once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, *wishes: str) -> str:
        """Return the first of some words that is free, or the last with a number."""
        for wish in wishes:
            if wish not in self.taken:
                self.taken.add(wish)
                return wish
        number = 2
        while f"{wishes[-1]}_{number}" in self.taken:
            number += 1
        return self.take(f"{wishes[-1]}_{number}")


def join_template(delimiter: str, word: str, fields: Sequence[str], *, literal_of: Iterable[str] = ()) -> str:
    """Return the template of a word and fields after it; words of `literal_of` come between."""
    return delimiter.join([part for part in (word, *literal_of) if part] + [f"{{{name}}}" for name in fields])


def class_name(text: str, taken: Iterable[str]) -> str:
    """Return a class's name for what people call something, in plain letters: `of a customer` gives OfACustomer."""
    plain = _plain(text)
    if not (plain == text and plain.isidentifier() and plain[:1].isupper()):
        plain = "".join(word[:1].upper() + word[1:] for word in _WORDS.findall(plain))
    plain = plain[:_LONG]
    if not plain[:1].isalpha():
        plain = f"Asked{plain}"
    held = {*taken, *CLASSES}
    return find_free_name(plain, {*held, plain} if iskeyword(plain) else held)


def index_label(text: str, taken: Iterable[str], *others: str) -> str:
    """Return an index's name for the class that asks it: 3 letters or more, and no word of Python's."""
    label = snake(text)
    if len(label) < 3 or iskeyword(label) or issoftkeyword(label) or label in _TABLE_NAMES:
        label = f"{label}_index"
    return find_free_name(label, {*taken, *_TABLE_NAMES}, *others)


def table_label(entity: str, taken: Iterable[str]) -> str:
    """Return the name of a table for its first entity: `Ticket` gives Tickets, `Category` Categories."""
    plain = "".join(_WORDS.findall(_plain(entity)))[:_LONG]
    if not plain[:1].isalpha():
        plain = f"Table{plain}"
    wish = plural(plain)
    other = f"{plain}Table"
    return find_free_name(wish if len(wish) >= 3 else other, {*taken, *CLASSES}, other)


def plural(name: str) -> str:
    """Return a word for several: as English mostly has it."""
    lower = name.lower()
    if lower.endswith("y") and lower[-2:-1] not in ("", *"aeiou"):
        return f"{name[:-1]}ies"
    return f"{name}es" if lower.endswith(("s", "x", "z", "ch", "sh")) else f"{name}s"


def _plain(text: str) -> str:
    """Return a text in the letters that DynamoDB's names have."""
    return normalize("NFKD", text).encode("ascii", "ignore").decode()


def snake(name: str) -> str:
    """Return a class's name as an index's or a module's: `ByCustomer` gives by_customer."""
    return _HUMPS.sub("_", name).lower()


def find_free_name(wish: str, taken: Iterable[str], *others: str) -> str:
    """Return a name that is not taken: the wish, one of the others, or the wish with a number."""
    held = set(taken)
    for each in (wish, *others):
        if each not in held:
            return each
    number = 2
    while f"{wish}{number}" in held:
        number += 1
    return f"{wish}{number}"
