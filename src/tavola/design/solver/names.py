"""Words of keys, and names of tables, indexes, classes and attributes.

All names are valid in DynamoDB and in Python. Every key template begins with a word, and items that must not share a partition have
different words. The delimiter follows the word and is escaped in values, so keys with different words never collide.
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
})  # fmt: skip  # names that a generated module imports

_LENGTH_MAX = 80
_WORDS = re.compile(r"[A-Za-z0-9]+")
_TABLE_NAMES = frozenset({"settings", "indexes", "entities", "consumers"})  # attributes of every table class
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def key_word(name: str) -> str:
    """Return a name as the word of a key: `TicketVector` gives TICKET_VECTOR, `customer_id` CUSTOMER."""
    text = _HUMPS.sub("_", name).upper().strip("_")
    return text.removesuffix("_ID") or text


class KeyWords:
    """The words that the keys of a table or an index begin with; each is given out once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, *words: str) -> str:
        """Return the first free word, or the last one with a number."""
        for word in words:
            if word not in self.taken:
                self.taken.add(word)
                return word
        number = 2
        while f"{words[-1]}_{number}" in self.taken:
            number += 1
        return self.take(f"{words[-1]}_{number}")


def join_template(delimiter: str, word: str, fields: Sequence[str]) -> str:
    """Return the template of a word, unless it is empty, and the fields after it."""
    return delimiter.join([*([word] if word else []), *(f"{{{name}}}" for name in fields)])


def class_name(text: str, taken: Iterable[str]) -> str:
    """Return a valid class name for a text: `of a customer` gives OfACustomer."""
    plain = _to_ascii(text)
    if not (plain == text and plain.isidentifier() and plain[:1].isupper()):
        plain = "".join(word[:1].upper() + word[1:] for word in _WORDS.findall(plain))
    plain = plain[:_LENGTH_MAX]
    if not plain[:1].isalpha():
        plain = f"Query{plain}"
    reserved = {*taken, *CLASSES}
    return find_free_name(plain, {*reserved, plain} if iskeyword(plain) else reserved)


def index_label(text: str, taken: Iterable[str], *others: str) -> str:
    """Return an index label of at least 3 letters that is not a Python keyword, from the name of its first question."""
    label = snake(text)
    if len(label) < 3 or iskeyword(label) or issoftkeyword(label) or label in _TABLE_NAMES:
        label = f"{label}_index"
    return find_free_name(label, {*taken, *_TABLE_NAMES}, *others)


def table_label(entity: str, taken: Iterable[str]) -> str:
    """Return a table label for its first entity: `Ticket` gives Tickets, `Category` Categories."""
    plain = "".join(_WORDS.findall(_to_ascii(entity)))[:_LENGTH_MAX]
    if not plain[:1].isalpha():
        plain = f"Table{plain}"
    label = plural(plain)
    other = f"{plain}Table"
    return find_free_name(label if len(label) >= 3 else other, {*taken, *CLASSES}, other)


def plural(name: str) -> str:
    """Return the plural of a word by the usual English rules."""
    lower = name.lower()
    if lower.endswith("y") and lower[-2:-1] not in ("", *"aeiou"):
        return f"{name[:-1]}ies"
    return f"{name}es" if lower.endswith(("s", "x", "z", "ch", "sh")) else f"{name}s"


def _to_ascii(text: str) -> str:
    """Return a text without accents and other characters that DynamoDB does not allow in names."""
    return normalize("NFKD", text).encode("ascii", "ignore").decode()


def snake(name: str) -> str:
    """Return a class name in snake case: `ByCustomer` gives by_customer."""
    return _HUMPS.sub("_", name).lower()


def find_free_name(wish: str, taken: Iterable[str], *others: str) -> str:
    """Return a name that is not taken: `wish`, one of `others`, or `wish` with a number."""
    used = set(taken)
    for candidate in (wish, *others):
        if candidate not in used:
            return candidate
    number = 2
    while f"{wish}{number}" in used:
        number += 1
    return f"{wish}{number}"
