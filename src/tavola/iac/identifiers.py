"""Identifiers of tables, indexes and functions in generated files.

DynamoDB names may contain dots and dashes and begin with a digit; identifiers may not. An identifier depends on the name alone, so that
renaming a Python class does not replace a resource and its data. Two names that would get the same identifier are distinguished by a digest
of the second.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Callable

_WORD = re.compile(r"[A-Za-z0-9]+")
_DIGEST_DIGITS = 6


def snake(text: str) -> str:
    """Return a text as `prod_tickets_unified`, for Terraform and Python."""
    parts = _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text))
    return _start_with_letter("_".join(part.lower() for part in parts), "t_")


def pascal(text: str) -> str:
    """Return a text as `ProdTicketsUnified`, for CloudFormation and classes."""
    return _start_with_letter("".join(part[0].upper() + part[1:] for part in _WORD.findall(text)), "T")


def python_name(text: str) -> str:
    """Return a text as a valid Python name."""
    name = snake(text)
    return f"{name}_" if keyword.iskeyword(name) else name


def shorten(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a longer one ends with a digest of itself, so different texts stay different."""
    if len(text) <= most:
        return text
    return f"{text[: most - _DIGEST_DIGITS - 1]}-{digest(text)}"


class Identifiers:
    """The identifiers of one file: the same words always give the same identifier, different words different ones."""

    def __init__(self, spelling: Callable[[str], str], taken: tuple[str, ...] = ()) -> None:
        self._spelling = spelling
        self._known: dict[tuple[str, ...], str] = {}
        self._taken = set(taken)

    def of(self, *words: str) -> str:
        """Return the identifier for some words."""
        identifier = self._known.get(words)
        if identifier is None:
            identifier = self._spelling(" ".join(words))
            digits = _DIGEST_DIGITS
            while identifier in self._taken:
                identifier = self._spelling(" ".join((*words, digest("\0".join(words), digits))))
                digits += 1
            self._known[words] = identifier
            self._taken.add(identifier)
        return identifier


def _start_with_letter(text: str, prefix: str) -> str:
    return text if text and text[0].isalpha() else prefix + text


def digest(text: str, digits: int = _DIGEST_DIGITS) -> str:
    """Return the first digits of a text's hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
