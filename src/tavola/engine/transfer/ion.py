"""Ion text: the part that DynamoDB writes and reads, to items and back.

Strings, maps and lists map to their Ion types, numbers to decimals, binaries to blobs, and sets to annotated lists. The
reader also accepts what other writers produce for the same values: integers, long strings, comments, quoted names, typed
nulls. Types that no item can have (floats, symbols, timestamps, clobs, s-expressions) are refused with their position.

Written by hand because imports resume at a position in the text and report errors with one, and exports must write numbers
as DynamoDB does (`103.`, `6d2`); the amazon.ion library does neither.
"""

from __future__ import annotations

import re
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any, NoReturn

from tavola.engine.transfer.errors import TextMalformed
from tavola.values import Item, Value

MARKER = "$ion_1_0"

_SETS = {"SS": "S", "NS": "N", "BS": "B"}
_SET_ANNOTATIONS = {f"$dynamodb_{tag}": tag for tag in _SETS}
_KEYWORDS = frozenset({"null", "true", "false", "nan"})
_DEPTH_MAX = 100  # deeper than any item, within Python's stack limit
_PLAIN_EXPONENT_MIN = -6  # smaller numbers are written with an exponent, as Java's Ion does

_plain_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\$[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)
_to_escape = re.compile('["\\\\\x00-\x1f\x7f]')
_name_to_escape = re.compile("['\\\\\x00-\x1f\x7f]")
_ESCAPES = {'"': '\\"', "'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def encode_ion(members: Mapping[str, Item]) -> str:
    """Return one line of an export: the version marker and a struct of items, `{Item:{…}}`."""
    parts = [f"{_name(name)}:{_struct(item)}" for name, item in members.items()]
    return f"{MARKER} {{{','.join(parts)}}}"


def _struct(item: Mapping[str, Value]) -> str:
    return "{" + ",".join([f"{_name(name)}:{_value(value)}" for name, value in item.items()]) + "}"


def _value(value: Value) -> str:
    ((tag, content),) = value.items()
    if tag == "S":
        return _string(content)
    if tag == "N":
        return _decimal(content)
    if tag == "M":
        return _struct(content)
    if tag == "L":
        return "[" + ",".join(map(_value, content)) + "]"
    if tag == "BOOL":
        return "true" if content else "false"
    if tag == "NULL":
        return "null"
    if tag == "B":
        return f"{{{{{content}}}}}"
    scalar = _SETS[tag]
    return f"$dynamodb_{tag}::[" + ",".join([_value({scalar: member}) for member in content]) + "]"


def _name(name: str) -> str:
    if _plain_name.fullmatch(name) and name not in _KEYWORDS:
        return name
    return f"'{_name_to_escape.sub(_escape, name)}'"


def _string(text: str) -> str:
    return f'"{_to_escape.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    return _ESCAPES.get(sign) or f"\\x{ord(sign):02x}"


def _decimal(number: str) -> str:
    """Return a canonical number as an Ion decimal: `103.` and `6d2`, since `103` would be an integer."""
    integer_part, point, fraction = number.partition(".")
    if not point:
        digits = integer_part.rstrip("0")
        zeros = len(integer_part) - len(digits)
        if digits in ("", "-"):
            return "0."
        return f"{digits}d{zeros}" if zeros else f"{integer_part}."
    digits = (integer_part + fraction).lstrip("-").lstrip("0")
    exponent = len(digits) - 1 - len(fraction)
    if exponent >= _PLAIN_EXPONENT_MIN:
        return number
    sign = "-" if number.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:]}d{exponent}" if digits[1:] else f"{sign}{digits}d{exponent}"


class TextCut(TextMalformed):
    """The text ends inside a value; more input may complete it."""


_blank = re.compile(r"(?:[ \t\r\n\f\v]+|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_string_token = re.compile(r'"((?:[^"\\\n\r]|\\.)*)"', re.DOTALL)
_long_token = re.compile(r"'''((?:[^'\\]|\\.|'(?!''))*)'''", re.DOTALL)
_name_token = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)
_quoted_token = re.compile(r"'((?:[^'\\\n\r]|\\.)*)'", re.DOTALL)
_number_token = re.compile(
    r"(-?(?:0|[1-9](?:_?[0-9])*))(\.(?:[0-9](?:_?[0-9])*)?)?(?:([dDeE])([+-]?[0-9]+))?", re.ASCII
)
_number_so_far = re.compile(r"-?[0-9_.]*(?:[dDeE][+-]?[0-9]*)?\Z", re.ASCII)
_after_number = re.compile(r"[\s,\]})\"'\[{/]|\Z")
_blob_token = re.compile(r"\{\{([A-Za-z0-9+/=\s]*)\}\}", re.ASCII)
_null_token = re.compile(r"null(?:\.[a-z]+)?", re.ASCII)
_escape_token = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(\r\n|.))", re.DOTALL)
_UNESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    "v": "\v",
    '"': '"',
    "'": "'",
    "?": "?",
    "\\": "\\",
    "/": "/",
    "\n": "",
    "\r": "",
    "\r\n": "",
}


def decode_ion(text: str, start: int = 0) -> tuple[Item | None, int]:
    """Return the members of the next struct and where it ends; None after the last.

    Structs may follow one another or be in a list. Raises `TextCut` if the text ends too early.
    """
    reader = _IonReader(text, start)
    while True:
        reader.skip()
        if reader.at >= len(text):
            return None, reader.at
        sign = text[reader.at]
        if sign in "[],":
            reader.at += 1
            continue
        if sign == "{" and not text.startswith("{{", reader.at):
            return reader.struct(0), reader.at
        name = _name_token.match(text, reader.at)
        if name is not None and name[0] == MARKER:
            reader.at = name.end()
            continue
        if name is not None and name.end() == len(text):
            raise TextCut(f"the text ends at {reader.at}, where a struct is expected")
        reader.refuse("expected a struct")


class _IonReader:
    """A text and the current position in it."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def skip(self) -> None:
        match = _blank.match(self.text, self.at)
        assert match is not None, "the pattern also matches nothing"
        self.at = match.end()

    def struct(self, depth: int) -> dict[str, Value]:
        """Read the struct whose opening brace is next."""
        if depth > _DEPTH_MAX:
            self.refuse(f"more than {_DEPTH_MAX} values are nested here")
        self.at += 1
        members: dict[str, Value] = {}
        while True:
            self.skip()
            if self._is("}"):
                self.at += 1
                return members
            start = self.at
            name = self._field()
            if name in members:
                self.at = start
                self.refuse(f"the name {name!r} occurs twice")
            self.skip()
            if not self._is(":"):
                self.refuse("expected a colon after the name")
            self.at += 1
            members[name] = self.value(depth + 1)
            self._separate("}")

    def value(self, depth: int) -> Value:
        """Read a value as a DynamoDB value."""
        self.skip()
        text, at = self.text, self.at
        sign = text[at : at + 1]
        if sign == '"':
            return {"S": self._string(_string_token)}
        if sign == "{":
            if text.startswith("{{", at):
                return {"B": self._blob()}
            return {"M": self.struct(depth)}
        if sign == "[":
            return {"L": self._list(depth)}
        if sign == "-" or sign.isdigit():
            return {"N": self._number()}
        if text.startswith("'''", at):
            return {"S": self._long()}
        match = _name_token.match(text, at)
        if match is None:
            return self._refuse_value(sign)
        word = match[0]
        if word in ("true", "false"):
            self.at = match.end()
            return {"BOOL": word == "true"}
        if word == "null":
            null = _null_token.match(text, at)
            assert null is not None, "the word is `null`"
            if text[null.end() :] == ".":
                self.cut()
            self.at = null.end()
            return {"NULL": True}
        if word in _SET_ANNOTATIONS:
            self.at = match.end()
            return self._set(_SET_ANNOTATIONS[word])
        if match.end() == len(text):
            self.cut()
        self.refuse(f"{word} is a symbol, which no attribute can hold")

    def cut(self) -> NoReturn:
        raise TextCut(f"the text ends at {len(self.text)} inside a value")

    def refuse(self, why: str) -> NoReturn:
        raise TextMalformed(f"at {self.at}: {why}")

    def _is(self, sign: str) -> bool:
        if self.at >= len(self.text):
            self.cut()
        return self.text[self.at] == sign

    def _separate(self, end: str) -> None:
        self.skip()
        if self._is(","):
            self.at += 1
        elif not self._is(end):
            self.refuse(f"expected a comma or {end} after the value")

    def _field(self) -> str:
        text, at = self.text, self.at
        if text.startswith("'''", at):
            return self._long()
        if text[at] == '"':
            return self._string(_string_token)
        if text[at] == "'":
            return self._string(_quoted_token)
        match = _name_token.match(text, at)
        if match is None:
            self.refuse("expected a name")
        self.at = match.end()
        if match.end() == len(text):
            self.cut()
        return match[0]

    def _list(self, depth: int) -> list[Value]:
        if depth > _DEPTH_MAX:
            self.refuse(f"more than {_DEPTH_MAX} values are nested here")
        self.at += 1
        elements: list[Value] = []
        while True:
            self.skip()
            if self._is("]"):
                self.at += 1
                return elements
            elements.append(self.value(depth + 1))
            self._separate("]")

    def _set(self, tag: str) -> Value:
        self.skip()
        if not self.text.startswith("::", self.at):
            if len(self.text) - self.at < 2:
                self.cut()
            self.refuse("expected two colons after the annotation")
        self.at += 2
        self.skip()
        if not self._is("["):
            self.refuse("expected a list of the set's members")
        scalar = _SETS[tag]
        members: list[Any] = []
        for element in self._list(1):
            if scalar not in element:
                self.refuse(f"a set of {tag} can only contain values of {scalar}")
            members.append(element[scalar])
        return {tag: members}

    def _string(self, token: re.Pattern[str]) -> str:
        match = token.match(self.text, self.at)
        if match is None:
            if "\n" not in self.text[self.at :]:
                self.cut()
            self.refuse("the string does not end")
        content = match[1] if "\\" not in match[1] else self._unescape(match[1])
        self.at = match.end()
        return content

    def _long(self) -> str:
        parts: list[str] = []
        while self.text.startswith("'''", self.at):
            match = _long_token.match(self.text, self.at)
            if match is None:
                self.cut()
            content = match[1].replace("\r\n", "\n")
            parts.append(content if "\\" not in content else self._unescape(content))
            self.at = match.end()
            self.skip()
        if self.text[self.at :] in ("", "'", "''"):
            self.cut()  # another segment may follow
        return "".join(parts)

    def _unescape(self, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            code = match[1] or match[2] or match[3]
            if code is not None:
                number = int(code, 16)
                if number > 0x10FFFF:
                    self.refuse(f"\\U{code} is not a character")
                return chr(number)
            sign = _UNESCAPES.get(match[4])
            if sign is None:
                self.refuse(f"\\{match[4]} is not an escape")
            return sign

        content = _escape_token.sub(one, text)
        if content.isascii():
            return content
        try:
            # Two escapes may be the surrogates of one character.
            return content.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.refuse("a surrogate is escaped without the other half of its pair")

    def _number(self) -> str:
        if _number_so_far.match(self.text, self.at):
            self.cut()  # more digits may follow
        match = _number_token.match(self.text, self.at)
        if match is None or not _after_number.match(self.text, match.end()):
            self.refuse("this is not a decimal")
        integer_part, fraction, letter, exponent = match.groups()
        if letter in ("e", "E"):
            self.refuse("this is a float, which no attribute can hold; write it as a decimal, with a d")
        self.at = match.end()
        text = (integer_part + (fraction or "").rstrip(".")).replace("_", "")
        return text if exponent is None else f"{text}E{exponent}"

    def _blob(self) -> str:
        match = _blob_token.match(self.text, self.at)
        if match is None:
            if "}}" not in self.text[self.at :]:
                self.cut()
            self.refuse("this is not a blob (base64 between double braces)")
        content = "".join(match[1].split())
        try:
            data = a2b_base64(content, strict_mode=True) if content else b""
        except NotBase64:
            self.refuse("the blob is not base64")
        self.at = match.end()
        return b2a_base64(data, newline=False).decode()

    def _refuse_value(self, sign: str) -> NoReturn:
        if not sign:
            self.cut()
        if sign == "(":
            self.refuse("this is an s-expression, which no attribute can hold")
        if sign == "'":
            symbol = _quoted_token.match(self.text, self.at)
            rest = self.text[self.at :]
            if (symbol is None and "\n" not in rest) or rest == "''":
                self.cut()
            self.refuse("this is a symbol, which no attribute can hold")
        self.refuse("expected a value")
