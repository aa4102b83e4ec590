"""Signing: how Tavola knows a file that it wrote, and that nobody has changed since.

A line in the file says which command wrote it, for which tables and with what beside them, and holds a sum of all the rest: so there is
no list of files to keep, a template that somebody mended by hand is not written over without a word, one design's files are not
another's, and what the next run would leave out is known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_EMPTY = "0" * 16
_MARK = re.compile(
    r"([Ww]ritten by tavola iac [a-z]+ for ([A-Za-z0-9_. -]+)(?:, with ([A-Za-z0-9_.: -]+))?, sum )([0-9a-f]{16})"
)


def signature_line(vendor: str, tables: Iterable[str], holds: Iterable[str] = ()) -> str:
    """Return what a writer puts where the sum is to be; `sign` fills it in. `holds` are words for what there is beside the tables."""
    beside = " ".join(holds)
    return f"written by tavola iac {vendor} for {' '.join(tables)}{f', with {beside}' if beside else ''}, sum {_EMPTY}"


def sign(text: str) -> str:
    """Return a text with its sum in its mark."""
    assert _EMPTY in text, "a text to be signed has a mark"
    return _MARK.sub(lambda found: found[1] + _checksum(text), text, count=1)


def is_generated(text: str) -> bool:
    """Return whether a text was written here, by whatever version."""
    return _MARK.search(text) is not None


def signed_tables(text: str) -> frozenset[str]:
    """Return the tables that a text was written for; none of a text that was not written here."""
    found = _MARK.search(text)
    return frozenset() if found is None else frozenset(found[2].split())


def signed_contents(text: str) -> frozenset[str]:
    """Return the words for what a text was written with beside its tables."""
    found = _MARK.search(text)
    return frozenset() if found is None else frozenset((found[3] or "").split())


def is_unchanged(text: str) -> bool:
    """Return whether a text is as it was written here."""
    found = _MARK.search(text)
    if found is None:
        return False
    return found[4] == _checksum(_MARK.sub(lambda told: told[1] + _EMPTY, text, count=1))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: len(_EMPTY)]
