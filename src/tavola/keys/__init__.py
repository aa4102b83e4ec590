"""Keys: key schemas, key templates, and encodings of key values that sort as the values do.

Depends on `values` only: no table, request or file. Keys are encoded as bytes of our own because neither JSON nor pickle
keeps the order of the values.
"""

from tavola.keys.bounds import Bounds, KeySpan, SortCondition, bounds_around, partition_bounds, segment_bounds
from tavola.keys.errors import KeyPartMissing, KeyPartRefused, KeyRefused, TemplateRefused
from tavola.keys.part import Part
from tavola.keys.parts import part_for
from tavola.keys.position import POSITION_BYTES, hashed_form, position_of
from tavola.keys.schema import LENGTH_BYTES, KeyAttribute, KeySchema, successor, values_of
from tavola.keys.template import BoundTemplate, Placeholder, Template

__all__ = [
    "LENGTH_BYTES",
    "POSITION_BYTES",
    "BoundTemplate",
    "Bounds",
    "KeyAttribute",
    "KeyPartMissing",
    "KeyPartRefused",
    "KeyRefused",
    "KeySchema",
    "KeySpan",
    "Part",
    "Placeholder",
    "SortCondition",
    "Template",
    "TemplateRefused",
    "bounds_around",
    "hashed_form",
    "part_for",
    "partition_bounds",
    "position_of",
    "segment_bounds",
    "successor",
    "values_of",
]
