"""Strategies: values, items, keys and key schemas as Hypothesis draws them.

Key values are drawn to collide: short, from few letters, with NULs and 0xFF, and with prefixes of each other.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from tavola.keys import KeyAttribute, KeySchema

Value = dict[str, Any]
Item = dict[str, Value]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# Where encodings go wrong: NUL and its neighbours, the last of one, two, three and four UTF-8 bytes.
EDGE_TEXT = st.text(st.sampled_from("\x00\x01a\x7f\x80\u07ff\u0800\uffff\U0010ffff"), max_size=5)
EDGE_BYTES = st.lists(st.sampled_from([0, 1, 0x61, 0x7F, 0x80, 0xFE, 0xFF]), max_size=5).map(bytes)


def base64_text(data: bytes) -> str:
    """Return bytes as DynamoDB JSON has them."""
    return b64encode(data).decode()


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Draw a canonical number's text from the whole range, 1E-130 to 9.99E+125, both signs."""
    digits = draw(st.integers(1, 10 ** draw(st.integers(1, 38)) - 1))
    text = str(digits).rstrip("0") or "0"
    leading = draw(st.integers(-130, 125))  # the exponent of the first digit
    return plain_number(draw(st.booleans()), text, leading - len(text) + 1)


def plain_number(negative: bool, digits: str, exponent: int) -> str:
    """Return digits times ten to an exponent, spelled without one."""
    if digits == "0":
        return "0"
    if exponent >= 0:
        text = digits + "0" * exponent
    else:
        padded = digits.rjust(1 - exponent, "0")
        text = f"{padded[:exponent]}.{padded[exponent:]}".rstrip("0").rstrip(".")
    return f"-{text}" if negative else text


SMALL_NUMBERS = st.sampled_from(
    ["0", "1", "-1", "10", "-10", "1.5", "-1.5", "1.05", "-1.05", "99", "100", "0.01", "-0.01", "101", "-101"]
)
NUMBERS = st.one_of(SMALL_NUMBERS, numbers())


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a number as somebody may write it, and its canonical text."""
    negative = draw(st.booleans())
    digits = str(draw(st.integers(0, 10**38 - 1)))
    first = draw(st.integers(-130, 125))
    exponent = first - len(digits.rstrip("0") or "0") + 1
    trimmed = digits.rstrip("0") or "0"
    canonical = plain_number(negative, trimmed, exponent)
    shift = draw(st.integers(-10, 10))
    zeros = "0" * draw(st.integers(0, 4))
    sign = "-" if negative else draw(st.sampled_from(["", "+"]))
    mark = draw(st.sampled_from("eE"))
    if draw(st.booleans()):
        point = draw(st.integers(0, len(trimmed)))
        body = f"{zeros}{trimmed[:point]}.{trimmed[point:]}{zeros}"
        power = exponent + len(trimmed) - point
    else:
        body = f"{zeros}{trimmed}{'0' * max(0, shift)}"
        power = exponent - max(0, shift)
    if body.strip(".") == "":
        body = "0"
    return f"{sign}{body}{mark}{power:+d}" if power else f"{sign}{body}", canonical


def values(leaves: int = 8) -> st.SearchStrategy[Value]:
    """Draw an attribute value of any of the ten types, nested some levels deep."""
    binary = st.binary(max_size=12).map(base64_text)
    scalars = st.one_of(
        TEXT.map(lambda text: {"S": text}),
        NUMBERS.map(lambda number: {"N": number}),
        binary.map(lambda text: {"B": text}),
        st.booleans().map(lambda truth: {"BOOL": truth}),
        st.just({"NULL": True}),
        st.lists(TEXT, min_size=1, max_size=4, unique=True).map(lambda members: {"SS": members}),
        st.lists(NUMBERS, min_size=1, max_size=4, unique=True).map(lambda members: {"NS": members}),
        st.lists(binary, min_size=1, max_size=4, unique=True).map(lambda members: {"BS": members}),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4).map(lambda members: {"L": members}),
            st.dictionaries(NAMES, inner, max_size=4).map(lambda members: {"M": members}),
        ),
        max_leaves=leaves,
    )


NAMES = TEXT.filter(bool)
ITEMS: st.SearchStrategy[Item] = st.dictionaries(NAMES, values(), max_size=6)


def key_values(type_: str) -> st.SearchStrategy[Value]:
    """Draw a value that a key attribute of this type can have."""
    if type_ == "S":
        return st.one_of(EDGE_TEXT, TEXT).filter(bool).map(lambda text: {"S": text})
    if type_ == "N":
        return NUMBERS.map(lambda number: {"N": number})
    return (
        st.one_of(EDGE_BYTES, st.binary(max_size=6)).filter(bool).map(lambda data: {"B": base64_text(data)})
    )


TYPES = st.sampled_from(["S", "N", "B"])


@st.composite
def schemas(draw: st.DrawFn, ranges_min: int = 0) -> KeySchema:
    """Draw a key schema of one to four hash and up to four range attributes, of an index or of a table."""
    hashes = draw(st.lists(TYPES, min_size=1, max_size=4))
    ranges = draw(st.lists(TYPES, min_size=ranges_min, max_size=4))
    return KeySchema(
        tuple(KeyAttribute(f"h{place}", type_) for place, type_ in enumerate(hashes)),
        tuple(KeyAttribute(f"r{place}", type_) for place, type_ in enumerate(ranges)),
        tuple(
            KeyAttribute(f"t{place}", type_) for place, type_ in enumerate(draw(st.lists(TYPES, max_size=2)))
        ),
    )


def keys(schema: KeySchema) -> st.SearchStrategy[Item]:
    """Draw the key attributes of an item under a schema, and those that order equal keys."""
    return st.fixed_dictionaries(
        {each.name: key_values(each.type) for each in (*schema.attributes, *schema.ties)}
    )


@st.composite
def key_sets(draw: st.DrawFn, ranges_min: int = 0) -> tuple[KeySchema, list[Item]]:
    """Draw a schema and keys under it, many of which share what comes first."""
    schema = draw(schemas(ranges_min))
    drawn = draw(st.lists(keys(schema), min_size=2, max_size=8))
    mixed = [
        {name: draw(st.sampled_from(drawn))[name] for name in drawn[0]}
        for _ in range(draw(st.integers(0, 6)))
    ]
    return schema, drawn + mixed
