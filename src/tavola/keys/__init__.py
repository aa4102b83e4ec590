"""Keys: what a key is, and how it sorts.

Holds key schemas and the byte order of key values. Knows values and nothing above them: no table, no
request, no file. Why bytes of our own: neither JSON nor pickle sorts.
"""

from tavola.keys.bounds import Bounds, SortCondition, bounds_around, partition_bounds, segment_bounds
from tavola.keys.errors import KeyRefused
from tavola.keys.order import successor
from tavola.keys.reading import values_of
from tavola.keys.schema import KeyAttribute, KeySchema

__all__ = [
    "Bounds",
    "KeyAttribute",
    "KeyRefused",
    "KeySchema",
    "SortCondition",
    "bounds_around",
    "partition_bounds",
    "segment_bounds",
    "successor",
    "values_of",
]
