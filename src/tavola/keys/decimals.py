"""Encodings of decimal numbers inside a key, so that the text sorts as the number does.

A number that DynamoDB can hold is written as `1`, three digits of exponent, its significant digits and a `.`, which sorts
below every digit. Zero is `0`. A negative number is `-` and the nines' complement of the same digits, ended by `~`. No encoded
number is a prefix of another, and equal numbers have the same text. Fixed point is a padded numeral with a decimal point.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tavola.keys.errors import KeyPartRefused
from tavola.keys.numerals import complement, whole_decoder, whole_encoder
from tavola.keys.part import show_value
from tavola.values import NumberRefused, canonical_number, digits_of

_BIAS = 500  # in the middle of three digits; the exponents of 0.DIGITS go from -129 to 126

FLOATING = r"0|1[0-9]{3}[0-9]+\.|-[0-9]{3}[0-9]+~"


def floating_encoder(descending: bool) -> Callable[[object], str]:
    """Return the function that writes any number."""

    def encode(value: object) -> str:
        negative, digits, exponent = _digits(value)
        if not digits:
            return "0"
        body = f"{exponent + _BIAS:03d}{digits}"
        # A descending number is its negative, ascending.
        return f"-{complement(body)}~" if negative != descending else f"1{body}."

    return encode


def floating_decoder(descending: bool) -> Callable[[str], Decimal]:
    """Return the function that reads what `floating_encoder` wrote."""

    def decode(text: str) -> Decimal:
        if text == "0":
            return Decimal(0)
        body = text[1:-1]
        negative = text[0] == "-"
        if negative:
            body = complement(body)
        sign = "-" if negative != descending else ""
        try:
            return Decimal(canonical_number(f"{sign}0.{body[3:]}e{int(body[:3]) - _BIAS}"))
        except NumberRefused as refused:
            raise ValueError(str(refused)) from None

    return decode


def fixed_encoder(whole: int, fraction: int, descending: bool) -> Callable[[object], str]:
    """Return the function that writes a number in so many digits before and after its point."""
    padded = whole_encoder(whole + fraction, descending)

    def encode(value: object) -> str:
        negative, digits, exponent = _digits(value)
        shift = exponent - len(digits) + fraction
        if shift < 0 or exponent > whole:
            raise KeyPartRefused(
                f"{show_value(value)} does not fit {whole} digits before the point and {fraction} after; "
                "round it first, or declare a wider place for all keys of this template",
                value,
            )
        scaled = int(digits or "0") * 10**shift if digits else 0
        text = padded(-scaled if negative else scaled)
        return f"{text[:-fraction]}.{text[-fraction:]}" if fraction else text

    return encode


def fixed_decoder(whole: int, fraction: int, descending: bool) -> Callable[[str], Decimal]:
    """Return the function that reads what `fixed_encoder` wrote."""
    padded = whole_decoder(whole + fraction, descending)

    def decode(text: str) -> Decimal:
        # As text, since a product of decimals is rounded to the precision of the context.
        return Decimal(canonical_number(f"{padded(text.replace('.', ''))}e-{fraction}"))

    return decode


def _digits(value: object) -> tuple[bool, str, int]:
    if isinstance(value, float):
        raise KeyPartRefused(
            f"{show_value(value)} is a float, which holds no exact decimal; give a Decimal", value
        )
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise KeyPartRefused(f"{show_value(value)} is no decimal number; give a Decimal", value)
    try:
        return digits_of(canonical_number(str(value)))
    except (NumberRefused, ValueError) as refused:
        raise KeyPartRefused(f"{show_value(value)} is no number of DynamoDB: {refused}", value) from None
