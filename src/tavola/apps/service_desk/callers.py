"""Callers: who reports an issue, as a session's id or as a telephone number that is never kept in clear.

A number is normalised to E.164 and kept as a hash with the service's secret as its key: there are few enough numbers
that a hash without a key could be turned back by trying them all. What looks like a number and is none that can be
normalised is refused rather than kept: where there is doubt, nothing is stored.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from hashlib import sha256
from uuid import UUID

from tavola.apps.service_desk.domain import CALLER_CHARACTERS_MAX
from tavola.apps.service_desk.errors import CallerRefused

HASHED = "tel:"  # what stands before the hash of a number

_HASHED = re.compile(r"tel:[0-9a-f]{64}")
_NUMBERLIKE = re.compile(r"[0-9 ().\-/]+")
_UUID = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[0-9A-Za-z]{16,}")
_RUN = re.compile(r"[0-9](?:[\W_]*[0-9])*")  # digits, whatever signs stand between them; letters end it
_E164 = re.compile(r"[1-9][0-9]{6,14}")
_DIGITS_MIN, _DIGITS_MAX = 7, 15
_DIALLED_MAX = _DIGITS_MAX + 3  # with what is dialled before it to leave a country, such as 011
_MADE_MIN = 4  # of a long id made by chance, groups of digits between its letters

_COUNTRY = (
    "A telephone number is given with + and its country, such as +1 202 555 0100, without an extension and "
    "without (0)."
)


class Callers:
    """Turns what a caller is given as into the caller_id that is stored."""

    def __init__(self, secret: bytes) -> None:
        assert secret, "a hash without a key can be turned back"
        # One secret, and a key for each use of it.
        self._telephones = hmac.digest(secret, b"service-desk: telephone numbers", sha256)
        self._requests = hmac.digest(secret, b"service-desk: idempotency keys", sha256)

    def caller_id(self, given: str) -> str:
        """Return the id of a caller: a session's id as it is, a telephone number as its keyed hash."""
        number = telephone(given)
        if number is None:
            return given
        return HASHED + hmac.new(self._telephones, number.encode(), sha256).hexdigest()

    def ticket_id(self, caller_id: str, key: str) -> str:
        """Return the id of the ticket that a caller makes with an idempotency key: always the same, and not to be guessed."""
        told = f"{len(caller_id)}:{caller_id}{key}".encode()
        return str(UUID(bytes=hmac.digest(self._requests, told, sha256)[:16], version=5))


def telephone(given: str) -> str | None:
    """Return a telephone number in E.164, None for a session's id; refuse what may be a number and is none."""
    if _HASHED.fullmatch(given):
        return None
    text = _plain(given)
    if text.lower().startswith("tel:"):
        text = "+" + text[4:].lstrip(" +")
    if text.startswith("+"):
        return _international(text[1:])
    if _NUMBERLIKE.fullmatch(text):
        digits = re.sub(r"[^0-9]", "", text)
        if digits.startswith("00") and len(digits) - 2 <= _DIGITS_MAX:
            return _international(text.replace("0", "", 1).replace("0", "", 1))
        if _DIGITS_MIN <= len(digits) <= _DIGITS_MAX:
            raise CallerRefused(
                f"{_COUNTRY} A session's id of {_DIGITS_MIN} to {_DIGITS_MAX} digits needs a letter."
            )
    if _hides_a_number(text):
        raise CallerRefused(
            f"The caller holds what may be a telephone number, among other signs. {_COUNTRY} A session's id has no "
            f"{_DIGITS_MIN} to {_DIALLED_MAX} digits with no letter between them."
        )
    _check_session(given)
    return None


def _hides_a_number(text: str) -> bool:
    """Return whether as many digits stand together as a number has, apart from ids that a program has made up."""
    rest = _TOKEN.sub(_without_made, _UUID.sub("x", text))
    return any(_DIGITS_MIN <= sum(map(str.isdigit, run)) <= _DIALLED_MAX for run in _RUN.findall(rest))


def _without_made(token: re.Match[str]) -> str:
    """Return a long word as it is, or a letter for one in which letters and digits take turns."""
    return "x" if len(re.findall(r"[0-9]+", token[0])) >= _MADE_MIN else token[0]


def _international(written: str) -> str:
    """Return what stands after + or 00 as E.164."""
    digits = re.sub(r"[ ().\-/]", "", written)
    if "(0)" in written.replace(" ", "") or not _E164.fullmatch(digits):
        raise CallerRefused(_COUNTRY)
    return f"+{digits}"


def _plain(given: str) -> str:
    """Return a text with the digits, dashes and spaces of one script, and without invisible signs."""
    plain = []
    for sign in unicodedata.normalize("NFKC", given):
        category = unicodedata.category(sign)
        if category == "Cf":
            continue  # a number that was copied from an address book often brings marks of direction
        digit = unicodedata.digit(sign, None)
        if digit is not None:
            sign = str(digit)
        elif category == "Pd" or sign == "\u2212":
            sign = "-"
        elif sign.isspace():
            sign = " "
        plain.append(sign)
    return "".join(plain).strip()


def _check_session(given: str) -> None:
    if not given:
        raise CallerRefused(
            "The caller is empty. Give a session's id, or a telephone number with + and its country."
        )
    if len(given) > CALLER_CHARACTERS_MAX:
        raise CallerRefused(
            f"The caller has more than {CALLER_CHARACTERS_MAX} characters. Give a session's id."
        )
    if not given.isprintable() or any(sign.isspace() for sign in given):
        raise CallerRefused(
            "The caller has spaces or signs that cannot be printed. Give a session's id, and no name."
        )
