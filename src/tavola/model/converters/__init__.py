"""Converters between Python types and attribute values, built once for each annotation.

A stored value reads back as an equal value. What DynamoDB cannot hold exactly is refused: a type when it is declared, a
value when it is written. Nothing is rounded, no zone is guessed, no field is dropped.
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
from tavola.model.converters.scalars import EPOCH_SECONDS, EXPIRY, whole_second

__all__ = [
    "EPOCH_SECONDS",
    "EXPIRY",
    "Converter",
    "EpochMilliseconds",
    "EpochSeconds",
    "Exact",
    "converter_for",
    "decode_plain",
    "encode_plain",
    "field_converter",
    "whole_second",
    "with_place",
]
