"""Naive: DynamoDB's rules of size, order and membership, written a second time and in the plainest way.

Nothing here knows the engine's rooms: what both say alike was thought twice.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Sequence
from decimal import Decimal
from hashlib import md5
from typing import Any

Value = dict[str, Any]
Item = dict[str, Value]


def number_bytes_counted(text: str) -> int:
    """Return the size of a number by the captured rule: sign, digits before and after the point, by two."""
    sign, digits, power = Decimal(text).as_tuple()
    assert isinstance(power, int)
    exponent: int = power
    shown = "".join(map(str, digits))
    padded = shown + "0" * max(0, exponent)
    exponent = min(exponent, 0)
    cut = len(padded) + exponent
    whole, fraction = (padded[:cut], padded[cut:]) if cut > 0 else ("", "0" * -cut + padded)
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if not whole:
        fraction = fraction.lstrip("0")
    if not fraction:
        whole = whole.rstrip("0")
    if not whole and not fraction:
        return 1
    return 1 + (len(whole) + 1) // 2 + (len(fraction) + 1) // 2 + sign


def position(values: Iterable[Any]) -> bytes:
    """Return the hash by which AWS orders the partition, or the equal index key, with these key values."""
    hashed = b"Outliers"
    for value in values:
        ((tag, content),) = value.items()
        if tag == "N":
            hashed += _hashed_number(Decimal(content))
        else:
            hashed += (
                content.encode()
                if tag == "S"
                else content
                if isinstance(content, bytes)
                else b64decode(content)
            )
    return md5(hashed).digest()


def _hashed_number(number: Decimal) -> bytes:
    """Return a number as the captured rule spells it: 0.d1d2… times ten to e, in pairs, first a byte for e."""
    if number == 0:
        return bytes([0x80])
    sign, places, power = number.as_tuple()
    assert isinstance(power, int)
    written = "".join(str(place) for place in places).lstrip("0")
    e = len(written) + power
    written = written.rstrip("0")
    prefix = e % 2
    written = "0" * prefix + written
    written += "0" * (len(written) % 2)
    first = ((e + prefix) // 2 - 64) % 256
    pairs = [int(written[at] + written[at + 1]) for at in range(0, len(written), 2)]
    if not sign:
        return bytes([first] + [pair + 1 for pair in pairs])
    return bytes([~first & 0xFF] + [101 - pair for pair in pairs] + [102] * (len(pairs) < 20))


def value_bytes(value: Value) -> int:
    """Return the size of a value."""
    ((tag, content),) = value.items()
    if tag == "S":
        return len(content.encode())
    if tag == "N":
        return number_bytes_counted(content)
    if tag == "B":
        return len(b64decode(content))
    if tag in ("BOOL", "NULL"):
        return 1
    if tag in ("SS", "NS", "BS"):
        return sum(value_bytes({tag[0]: member}) for member in content)
    if tag == "L":
        return 3 + sum(1 + value_bytes(member) for member in content)
    return 3 + sum(len(name.encode()) + 1 + value_bytes(member) for name, member in content.items())


def item_bytes(item: Item) -> int:
    """Return the size of an item."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def sort_key(value: Value) -> Any:
    """Return something of Python's that sorts as a key value sorts."""
    ((tag, content),) = value.items()
    if tag == "S":
        return content.encode()
    return Decimal(content) if tag == "N" else b64decode(content)


def identity(item: Item, names: Iterable[str]) -> tuple[Any, ...]:
    """Return the values of some attributes as something hashable."""
    return tuple((name, next(iter(item[name])), sort_key(item[name])) for name in names)


def plain(value: Any) -> Any:
    """Return a value with its sets made unordered, so that == is DynamoDB's equality."""
    if isinstance(value, dict):
        return {
            tag: frozenset(content)
            if tag in ("SS", "NS", "BS") and isinstance(content, list)
            else plain(content)
            for tag, content in value.items()
        }
    return [plain(member) for member in value] if isinstance(value, list) else value


def satisfies(value: Value, operator: str, operands: Sequence[Value]) -> bool:
    """Tell whether a key value meets a key condition."""
    mine, given = sort_key(value), [sort_key(operand) for operand in operands]
    match operator:
        case "=":
            return bool(mine == given[0])
        case "<":
            return bool(mine < given[0])
        case "<=":
            return bool(mine <= given[0])
        case ">":
            return bool(mine > given[0])
        case ">=":
            return bool(mine >= given[0])
        case "BETWEEN":
            return bool(given[0] <= mine <= given[1])
        case "begins_with":
            return bool(mine.startswith(given[0]))
        case _:
            raise AssertionError(operator)


def read_units(size: int, *, consistent: bool) -> float:
    """Return what a read of so many bytes costs."""
    units = max(1, (size + 4095) // 4096)
    return units if consistent else units / 2


def write_units(before: int, after: int) -> float:
    """Return what a write costs on the table."""
    return max(1, (max(before, after) + 1023) // 1024)
