"""Signature line of generated files: it shows whether Tavola wrote a file and whether it was changed since.

The line names the command, the tables and the other contents, and holds a checksum of the rest of the file. So no list of generated files
is needed, a template edited by hand is not overwritten silently, files of different designs are kept apart, and what the next run would
drop is known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_EMPTY = "0" * 16
_MARK = re.compile(
    r"([Ww]ritten by tavola iac [a-z]+ for ([A-Za-z0-9_. -]+)(?:, with ([A-Za-z0-9_.: -]+))?, sum )([0-9a-f]{16})"
)


def signature_line(vendor: str, tables: Iterable[str], contents: Iterable[str] = ()) -> str:
    """Return the line that a writer puts into a file; `sign` fills in the checksum. `contents` are words for contents besides tables."""
    extra = " ".join(contents)
    return f"written by tavola iac {vendor} for {' '.join(tables)}{f', with {extra}' if extra else ''}, sum {_EMPTY}"


def sign(text: str) -> str:
    """Return a text with the checksum in its signature line."""
    assert _EMPTY in text, "a text to be signed has a mark"
    return _MARK.sub(lambda signature: signature[1] + _checksum(text), text, count=1)


def is_generated(text: str) -> bool:
    """Return whether Tavola wrote this text, in any version."""
    return _MARK.search(text) is not None


def signed_tables(text: str) -> frozenset[str]:
    """Return the tables that a text was written for; none for a text without a signature."""
    signature = _MARK.search(text)
    return frozenset() if signature is None else frozenset(signature[2].split())


def signed_contents(text: str) -> frozenset[str]:
    """Return the words for the other contents that a text was written with."""
    signature = _MARK.search(text)
    return frozenset() if signature is None else frozenset((signature[3] or "").split())


def is_unchanged(text: str) -> bool:
    """Return whether a generated text has not been changed."""
    signature = _MARK.search(text)
    if signature is None:
        return False
    return signature[4] == _checksum(_MARK.sub(lambda match: match[1] + _EMPTY, text, count=1))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: len(_EMPTY)]
