"""Keys: what a key is, and how it sorts.

Holds key schemas, key templates and the byte order of key values. Knows values and nothing above
them: no table, no request, no file. Why bytes of our own: neither JSON nor pickle sorts.
"""

from tavola.keys.bounds import Bounds, SortCondition, bounds_around, partition_bounds, segment_bounds
from tavola.keys.errors import KeyPartMissing, KeyPartRefused, KeyRefused, TemplateRefused
from tavola.keys.order import successor
from tavola.keys.part import Part
from tavola.keys.parts import part_for
from tavola.keys.reading import values_of
from tavola.keys.schema import KeyAttribute, KeySchema
from tavola.keys.spans import KeySpan
from tavola.keys.template import BoundTemplate, Placeholder, Template

__all__ = [
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
    "part_for",
    "partition_bounds",
    "segment_bounds",
    "successor",
    "values_of",
]
