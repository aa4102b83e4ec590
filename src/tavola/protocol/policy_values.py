"""Parse values in policies: numbers, times, addresses, bytes and variables.

Conditions compare typed values that are written as text, and text may contain variables such as `${aws:username}`.
Validation and evaluation share these parsers.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

from msgspec import Struct

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_EPOCH = re.compile(r"-?[0-9]{5,}(\.[0-9]+)?")  # four digits are a year
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_WITH_DEFAULT = re.compile(r"\s*([^,\s]+)\s*,\s*'([^']*)'\s*")
_VARIABLE_NAME = re.compile(r"[A-Za-z0-9._~/-]+:[^\s,'{}$]+")

Network: TypeAlias = IPv4Network | IPv6Network


class Variable(Struct, frozen=True):
    """A variable in text: its condition key in lower case, and its default value."""

    key: str
    default: str | None = None


class Wildcard(Struct, frozen=True):
    """A wildcard: one character, or any number of them."""

    many: bool


Piece: TypeAlias = str | Variable | Wildcard
ONE, MANY = Wildcard(many=False), Wildcard(many=True)


def parse_number(text: str) -> Decimal | None:
    """Return text as a number; None if it is not one."""
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # pragma: no cover - the pattern excludes it
        return None


def parse_moment(text: str) -> float | None:
    """Return epoch seconds from an ISO 8601 date or time, or from epoch seconds; None if it is neither."""
    if _EPOCH.fullmatch(text):
        return float(text)
    try:
        date = _DATE.fullmatch(text)
        if date is not None:
            year, month, day = (int(part) if part else 1 for part in date.groups())
            return datetime(year, month, day, tzinfo=UTC).timestamp()
        if len(text) < len("2024-01-01T00:00"):
            return None
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def parse_network(text: str) -> Network | None:
    """Return the network of a CIDR block or a single address; None if it is neither."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def parse_flag(text: str) -> bool | None:
    """Return the boolean for `true` or `false` in any case; None otherwise."""
    return {"true": True, "false": False}.get(text.lower())


def parse_bytes(text: str) -> bytes | None:
    """Return the bytes that base64 text encodes; None if it is invalid."""
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return None


def parse_pieces(text: str, *, wildcards: bool, variables: bool) -> tuple[Piece, ...]:
    """Split text into literals, variables and wildcards; raise ValueError if a variable is malformed.

    `${*}`, `${?}` and `${$}` are literal characters. Without `variables`, as in policy version 2008-10-17, a dollar
    sign is literal.
    """
    if not variables or "${" not in text:
        return _split_wildcards(text) if wildcards else ((text,) if text else ())
    pieces: list[Piece] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        pieces += _between(text[at : match.start()], wildcards=wildcards)
        pieces.append(_variable(match[1]))
        at = match.end()
    pieces += _between(text[at:], wildcards=wildcards)
    return _merge_pieces(pieces)


def _between(text: str, *, wildcards: bool) -> tuple[Piece, ...]:
    if "${" in text:
        raise ValueError("`${` starts a variable and needs a closing `}`; write `${$}{` for a literal `${`")
    return _split_wildcards(text) if wildcards else ((text,) if text else ())


def _variable(inside: str) -> Piece:
    if inside in ("*", "?", "$"):
        return inside
    defaulted = _WITH_DEFAULT.fullmatch(inside)
    name, default = (inside.strip(), None) if defaulted is None else (defaulted[1], defaulted[2])
    if _VARIABLE_NAME.fullmatch(name) is None:
        raise ValueError(f"`${{{inside}}}` is not a variable; write one such as ${{aws:username}}")
    return Variable(name.lower(), default)


def _split_wildcards(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for part in re.split(r"([*?])", text):
        if part == "*":
            if not pieces or pieces[-1] != MANY:  # consecutive stars are one
                pieces.append(MANY)
        elif part == "?":
            pieces.append(ONE)
        elif part:
            pieces.append(part)
    return tuple(pieces)


def _merge_pieces(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with adjacent literals joined, and adjacent stars as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != MANY or not joined or joined[-1] != MANY:
            joined.append(piece)
    return tuple(joined)
