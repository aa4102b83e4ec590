"""Callers: a session ID, or a phone number, which is never stored in plain text.

A phone number is normalised to E.164 and stored as a keyed hash: there are so few numbers that an unkeyed hash could be reversed by
trying them all. Input that looks like a phone number but cannot be normalised is rejected, so that no number is stored in plain
text by mistake.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from hashlib import sha256
from uuid import UUID

from tavola.apps.service_desk.domain import CALLER_CHARACTERS_MAX
from tavola.apps.service_desk.errors import CallerRefused

HASH_PREFIX = "tel:"  # of a hashed phone number

_HASHED_NUMBER = re.compile(r"tel:[0-9a-f]{64}")
_NUMBERLIKE = re.compile(r"[0-9 ().\-/]+")
_UUID = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[0-9A-Za-z]{16,}")
_DIGIT_RUN = re.compile(r"[0-9](?:[\W_]*[0-9])*")  # digits with any characters except letters between them
_E164 = re.compile(r"[1-9][0-9]{6,14}")
_DIGITS_MIN, _DIGITS_MAX = 7, 15
_DIALLED_MAX = _DIGITS_MAX + 3  # with an international prefix such as 011
_DIGIT_GROUPS_MIN = 4  # in a long random ID, between its letters

_COUNTRY = "Enter a phone number with its country code, such as +1 202 555 0100, without an extension and without (0)."


class Callers:
    """Converts a session ID or phone number to the stored caller_id."""

    def __init__(self, secret: bytes) -> None:
        assert secret, "an unkeyed hash can be reversed"
        # A separate key for each purpose.
        self._phone_key = hmac.digest(secret, b"service-desk: telephone numbers", sha256)
        self._ticket_key = hmac.digest(secret, b"service-desk: idempotency keys", sha256)

    def caller_id(self, caller: str) -> str:
        """Return a session ID unchanged, or the keyed hash of a phone number."""
        number = phone_number(caller)
        if number is None:
            return caller
        return HASH_PREFIX + hmac.new(self._phone_key, number.encode(), sha256).hexdigest()

    def ticket_id(self, caller_id: str, key: str) -> str:
        """Return the ticket ID for a caller and an idempotency key: always the same, and not guessable."""
        identity = f"{len(caller_id)}:{caller_id}{key}".encode()
        return str(UUID(bytes=hmac.digest(self._ticket_key, identity, sha256)[:16], version=5))


def phone_number(caller: str) -> str | None:
    """Return a phone number in E.164 format, or None for a session ID; raise CallerRefused if it may be an invalid number."""
    if _HASHED_NUMBER.fullmatch(caller):
        return None
    text = _normalise(caller)
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
                f"{_COUNTRY} A session ID with {_DIGITS_MIN} to {_DIGITS_MAX} digits must contain a letter."
            )
    if _contains_number(text):
        raise CallerRefused(
            f"The caller seems to contain a phone number. {_COUNTRY} A session ID must not have {_DIGITS_MIN} to {_DIALLED_MAX} digits "
            "without a letter between them."
        )
    _check_session(caller)
    return None


def _contains_number(text: str) -> bool:
    """Return whether text contains as many adjacent digits as a phone number, outside random IDs."""
    rest = _TOKEN.sub(_mask_random_id, _UUID.sub("x", text))
    return any(_DIGITS_MIN <= sum(map(str.isdigit, run)) <= _DIALLED_MAX for run in _DIGIT_RUN.findall(rest))


def _mask_random_id(token: re.Match[str]) -> str:
    """Replace a token in which letters and digits alternate with a letter; keep other tokens."""
    return "x" if len(re.findall(r"[0-9]+", token[0])) >= _DIGIT_GROUPS_MIN else token[0]


def _international(number: str) -> str:
    """Return a number, given without its + or 00, in E.164 format."""
    digits = re.sub(r"[ ().\-/]", "", number)
    if "(0)" in number.replace(" ", "") or not _E164.fullmatch(digits):
        raise CallerRefused(_COUNTRY)
    return f"+{digits}"


def _normalise(text: str) -> str:
    """Return text with ASCII digits, dashes and spaces, and without invisible characters."""
    characters = []
    for character in unicodedata.normalize("NFKC", text):
        category = unicodedata.category(character)
        if category == "Cf":
            continue  # numbers copied from an address book often contain direction marks
        digit = unicodedata.digit(character, None)
        if digit is not None:
            character = str(digit)
        elif category == "Pd" or character == "\u2212":
            character = "-"
        elif character.isspace():
            character = " "
        characters.append(character)
    return "".join(characters).strip()


def _check_session(caller: str) -> None:
    if not caller:
        raise CallerRefused("Enter a session ID, or a phone number with its country code.")
    if len(caller) > CALLER_CHARACTERS_MAX:
        raise CallerRefused(
            f"The caller has more than {CALLER_CHARACTERS_MAX} characters. Use a session ID or a phone number."
        )
    if not caller.isprintable() or any(character.isspace() for character in caller):
        raise CallerRefused(
            "The caller contains spaces or unprintable characters. Use a session ID, not a name."
        )
