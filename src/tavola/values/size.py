"""Sizes in bytes of admitted values and items, as AWS counts them.

For requests, admission computes the size in its own pass; this module is for what is made later: an updated item, an index
entry, a part of an item.
"""

from __future__ import annotations

from tavola.limits import CONTAINER_OVERHEAD_BYTES, ELEMENT_OVERHEAD_BYTES
from tavola.values.number import admit_number
from tavola.values.value import Item, Value


def text_size(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def binary_size(text: str) -> int:
    """Return the bytes that a base64 text stands for."""
    return len(text) // 4 * 3 - (text[-2:].count("=") if text else 0)


def value_size(value: Value) -> int:
    """Return the bytes that one admitted value counts for."""
    for tag, content in value.items():
        match tag:
            case "S":
                return text_size(content)
            case "N":
                return admit_number(content)[1]
            case "M":
                return CONTAINER_OVERHEAD_BYTES + sum(
                    text_size(name) + ELEMENT_OVERHEAD_BYTES + value_size(member)
                    for name, member in content.items()
                )
            case "L":
                return CONTAINER_OVERHEAD_BYTES + sum(
                    ELEMENT_OVERHEAD_BYTES + value_size(member) for member in content
                )
            case "B":
                return binary_size(content)
            case "SS":
                return sum(map(text_size, content))
            case "NS":
                return sum(admit_number(member)[1] for member in content)
            case "BS":
                return sum(map(binary_size, content))
            case _:
                return 1
    raise AssertionError("an admitted value has exactly one tag")


def item_size(item: Item) -> int:
    """Return the bytes that an item counts for."""
    return sum(text_size(name) + value_size(value) for name, value in item.items())
