"""Identifiers: what a table, index or function is called in a vendor's file.

A name of DynamoDB may have dots, dashes and a digit first; an identifier may not. It is made of the name alone, so that a class
that is renamed in Python renames no resource (which would be replaced, with its data). Two names that would be one identifier are told apart by a
digest of the second one.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Callable

_WORD = re.compile(r"[A-Za-z0-9]+")
_DIGEST_DIGITS = 6


def snake(text: str) -> str:
    """Return a text as `prod_tickets_unified`: for Terraform and Python."""
    parts = _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text))
    return _start_with_letter("_".join(part.lower() for part in parts), "t_")


def pascal(text: str) -> str:
    """Return a text as `ProdTicketsUnified`: for CloudFormation and classes."""
    return _start_with_letter("".join(part[0].upper() + part[1:] for part in _WORD.findall(text)), "T")


def python_name(text: str) -> str:
    """Return a text as a name that Python takes."""
    name = snake(text)
    return f"{name}_" if keyword.iskeyword(name) else name


def shorten(text: str, most: int) -> str:
    """Return a text of so many characters at most; a longer one ends with a digest of itself, so two stay two."""
    if len(text) <= most:
        return text
    return f"{text[: most - _DIGEST_DIGITS - 1]}-{digest(text)}"


class Identifiers:
    """The identifiers of one file: the same for the same thing, another for another."""

    def __init__(self, spelling: Callable[[str], str], taken: tuple[str, ...] = ()) -> None:
        self._spelling = spelling
        self._known: dict[tuple[str, ...], str] = {}
        self._taken = set(taken)

    def of(self, *words: str) -> str:
        """Return the identifier of a thing that these words name."""
        found = self._known.get(words)
        if found is None:
            found = self._spelling(" ".join(words))
            digits = _DIGEST_DIGITS
            while found in self._taken:
                found = self._spelling(" ".join((*words, digest("\0".join(words), digits))))
                digits += 1
            self._known[words] = found
            self._taken.add(found)
        return found


def _start_with_letter(text: str, prefix: str) -> str:
    return text if text and text[0].isalpha() else prefix + text


def digest(text: str, digits: int = _DIGEST_DIGITS) -> str:
    """Return a few digits that stand for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
