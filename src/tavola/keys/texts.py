"""Encodings of strings inside a key: escaped if another field follows.

Let D be the delimiter and E the next character (`#` and `$`). In a string that another field follows, every character up to
and including E becomes E and two hexadecimal digits; all other characters are above E and stay as they are. Two consequences:

- No encoded string contains D, so the end of a field is unambiguous.
- Joined strings sort as tuples. If one string continues where another ends, it continues with a character above D, so `a` + D sorts below
  `ab` + D, as `a` sorts below `ab`. An escape starts with the lowest character in use, and escapes sort as what they encode.

    values   ("a", "x")   ("a#b", "x")   ("ab", "x")
    keys      a#x          a$23b#x        ab#x

The last string of a key ends with the key and is written unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tavola.keys.errors import KeyPartRefused
from tavola.keys.part import ANY, LAST, Mode, Shape, character_set, show_value

_HEX = "0123456789ABCDEF"


def escape_sign(delimiter: str) -> str:
    """Return the character that escapes begin with: the one after the delimiter."""
    return chr(ord(delimiter) + 1)


def text_encoder(mode: Mode, delimiter: str, final: bool) -> Callable[[object], str]:
    """Return the function that writes a string into its place of a key."""
    if final or mode == "raw":
        return _verbatim
    sign = escape_sign(delimiter)
    low = re.compile(f"[\\x00-\\x{ord(sign):02x}]")
    search = low.search
    if mode == "refuse":

        def refusing(value: object) -> str:
            text = _verbatim(value)
            found = search(text)
            if found is not None:
                raise KeyPartRefused(
                    f"{show_value(text)} holds {found[0]!r}, and characters up to {sign!r} have no place before "
                    f"the delimiter {delimiter!r}; leave it out, or let the template encode it without `refuse`",
                    value,
                )
            return text

        return refusing
    escapes = {code: f"{sign}{code:02X}" for code in range(ord(sign) + 1)}

    def encoding(value: object) -> str:
        text = value if type(value) is str and value.isascii() else _verbatim(value)
        return text if search(text) is None else text.translate(escapes)

    return encoding


def text_decoder(mode: Mode, delimiter: str, final: bool) -> Callable[[str], str]:
    """Return the function that reads what `text_encoder` wrote."""
    if final or mode != "encode":
        return str
    sign = escape_sign(delimiter)
    escape = re.compile(re.escape(sign) + "([0-9A-F]{2})")

    def decoding(text: str) -> str:
        return escape.sub(lambda found: chr(int(found[1], 16)), text) if sign in text else text

    return decoding


def text_pattern(mode: Mode, delimiter: str, final: bool) -> str:
    """Return the regular expression of a string in its place."""
    if final:
        return ".*"
    if mode == "raw":
        return ".*?"
    sign = escape_sign(delimiter)
    above = f"[^\\x00-\\x{ord(sign):02x}]"
    return f"{above}*" if mode == "refuse" else f"(?:{above}|{re.escape(sign)}[0-9A-F]{{2}})*"


def text_shape(mode: Mode, delimiter: str, final: bool) -> Shape:
    """Return what a string in its place may hold."""
    if final or mode == "raw":
        return ((ANY, "any"),)
    sign = escape_sign(delimiter)
    above = ANY & ~((1 << ord(sign) + 1) - 1)
    return ((above | character_set(sign + _HEX), "any"),) if mode == "encode" else ((above, "any"),)


def predecessor(text: str) -> str:
    """Return the greatest text below `text`: no text without LAST lies between the two."""
    code = ord(text[-1])
    if code == 0:
        return text[:-1]
    return text[:-1] + chr(0xD7FF if code == 0xE000 else code - 1) + LAST


def _verbatim(value: object) -> str:
    if not isinstance(value, str):
        raise KeyPartRefused(f"{show_value(value)} is no text; give a str", value)
    # A string that is also a member of an Enum would otherwise print its name.
    text = value if type(value) is str else str.__str__(value)
    if text.isascii():
        return text
    if LAST in text:
        raise KeyPartRefused(
            "a key cannot hold U+10FFFF, which ends the ranges over keys; leave it out", value
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise KeyPartRefused(
            f"{show_value(text)} is half of a surrogate pair; give whole characters", value
        ) from None
    return text
