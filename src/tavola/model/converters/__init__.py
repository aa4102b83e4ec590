"""Converters: Python types ⇄ attribute values, made once for each annotation.

What is written can be read back as the same value: what DynamoDB cannot hold exactly is refused, the type where
it is declared and the value where it is written. Nothing is rounded, no zone is guessed, no field is dropped.
"""

from tavola.model.converters.annotations import converter_for, field_converter
from tavola.model.converters.converter import (
    Converter,
    EpochMilliseconds,
    EpochSeconds,
    Exact,
    with_place,
)
from tavola.model.converters.plain import decode_plain, encode_plain
from tavola.model.converters.times import EPOCH_SECONDS

__all__ = [
    "EPOCH_SECONDS",
    "Converter",
    "EpochMilliseconds",
    "EpochSeconds",
    "Exact",
    "converter_for",
    "decode_plain",
    "encode_plain",
    "field_converter",
    "with_place",
]
