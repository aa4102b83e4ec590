"""Values: the ten DynamoDB types, canonical numbers, equality and order, sizes and capacity units.

Values are DynamoDB JSON in memory too: that is what arrives, what is stored and what is sent, so items are never
converted. Values from outside pass through `admission` once, which validates them, makes them canonical and measures them.
Depends on no key, expression or table.
"""

from tavola.values.admission import TOO_DEEP, TOO_LARGE, admit_item, admit_value
from tavola.values.comparison import compare, equal
from tavola.values.errors import DuplicatesRefused, NumberRefused, ValueMalformed, ValueRefused
from tavola.values.narrowing import AttributeFilter, attribute_filter
from tavola.values.nesting import nesting_levels
from tavola.values.number import (
    add_numbers,
    canonical_number,
    decimal_of,
    digits_of,
    number_size,
    subtract_numbers,
)
from tavola.values.size import binary_size, item_size, text_size, value_size
from tavola.values.units import (
    index_units,
    read_units,
    transact_read_units,
    transact_write_units,
    write_units,
)
from tavola.values.value import TAGS, Item, Value, decode_item, encode_item, tag_of

__all__ = [
    "TAGS",
    "TOO_DEEP",
    "TOO_LARGE",
    "AttributeFilter",
    "DuplicatesRefused",
    "Item",
    "NumberRefused",
    "Value",
    "ValueMalformed",
    "ValueRefused",
    "add_numbers",
    "admit_item",
    "admit_value",
    "attribute_filter",
    "binary_size",
    "canonical_number",
    "compare",
    "decimal_of",
    "decode_item",
    "digits_of",
    "encode_item",
    "equal",
    "index_units",
    "item_size",
    "nesting_levels",
    "number_size",
    "read_units",
    "subtract_numbers",
    "tag_of",
    "text_size",
    "transact_read_units",
    "transact_write_units",
    "value_size",
    "write_units",
]
