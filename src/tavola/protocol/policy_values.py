"""Policy values: what a text in a policy stands for.

A condition compares numbers, moments, addresses and bytes, all of them written as text; and a text may hold
variables, `${aws:username}`. Both who refuses a policy and who evaluates it read them with these.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_EPOCH = re.compile(r"-?[0-9]{5,}(\.[0-9]+)?")  # four digits are a year
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_DEFAULTED = re.compile(r"\s*([^,\s]+)\s*,\s*'([^']*)'\s*")
_VARIABLE_NAME = re.compile(r"[A-Za-z0-9.-]+:[^\s,'{}$]+")

Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Variable:
    """A place in a text that the request fills: the condition key, in small letters, and what stands in."""

    key: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Wild:
    """A wildcard: any one sign, or any number of them."""

    many: bool


Piece: TypeAlias = str | Variable | Wild
ONE, MANY = Wild(many=False), Wild(many=True)


def parse_number(text: str) -> Decimal | None:
    """Return the number that a text is, None if it is none."""
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # pragma: no cover - the pattern lets no such text through
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
    """Return the addresses that a CIDR block, or one address, stands for; None if it is neither."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def parse_flag(text: str) -> bool | None:
    """Return what `true` or `false` say, in any case; None for another word."""
    return {"true": True, "false": False}.get(text.lower())


def parse_bytes(text: str) -> bytes | None:
    """Return the bytes that a base64 text holds, None if it holds none."""
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return None


def parse_pieces(text: str, *, wildcards: bool, variables: bool) -> tuple[Piece, ...]:
    """Return a text in its pieces; raise ValueError with a sentence where a variable is malformed.

    `${*}`, `${?}` and `${$}` are the signs themselves. Without `variables`, as in a policy of the version
    2008-10-17, a dollar sign is one.
    """
    if not variables or "${" not in text:
        return _wild(text) if wildcards else ((text,) if text else ())
    pieces: list[Piece] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        pieces += _between(text[at : found.start()], wildcards=wildcards)
        pieces.append(_variable(found[1]))
        at = found.end()
    pieces += _between(text[at:], wildcards=wildcards)
    return _joined(pieces)


def _between(text: str, *, wildcards: bool) -> tuple[Piece, ...]:
    if "${" in text:
        raise ValueError(
            "`${` begins a variable and needs a `}` after it; write `${$}{` for the signs themselves"
        )
    return _wild(text) if wildcards else ((text,) if text else ())


def _variable(inside: str) -> Piece:
    if inside in ("*", "?", "$"):
        return inside
    defaulted = _DEFAULTED.fullmatch(inside)
    name, default = (inside.strip(), None) if defaulted is None else (defaulted[1], defaulted[2])
    if _VARIABLE_NAME.fullmatch(name) is None:
        raise ValueError(f"`${{{inside}}}` names no condition key; write one such as ${{aws:username}}")
    return Variable(name.lower(), default)


def _wild(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for part in re.split(r"([*?])", text):
        if part == "*":
            if not pieces or pieces[-1] != MANY:  # two stars are one
                pieces.append(MANY)
        elif part == "?":
            pieces.append(ONE)
        elif part:
            pieces.append(part)
    return tuple(pieces)


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with neighbouring texts made one."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != MANY or not joined or joined[-1] != MANY:
            joined.append(piece)
    return tuple(joined)
