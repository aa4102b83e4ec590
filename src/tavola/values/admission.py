"""Validate a value from outside, make it canonical and measure it, in one pass; sizes and the capacity units they cost.

One pass instead of three, because every written item goes through here. The value is modified in place (numbers are
rewritten), so callers pass what they have just decoded. The size functions below it measure what is made later: an updated
item, an index entry, a part of an item.

Reads are billed in steps of 4 KB and writes in steps of 1 KB, each rounded up and at least one. An eventually consistent read
counts half, so units are whole or half numbers, which a float holds exactly. A transaction counts twice on the table and once on
its indexes. The engine bills by these functions and the client estimates with them.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from itertools import zip_longest
from typing import Any

from tavola.limits import (
    ADMITTED_BYTES_MAX,
    ATTRIBUTE_NAME_BYTES_MAX,
    CONTAINER_OVERHEAD_BYTES,
    ELEMENT_OVERHEAD_BYTES,
    NESTING_LEVELS_MAX,
    READ_UNIT_BYTES,
    TRANSACTION_UNITS_FACTOR,
    WRITE_UNIT_BYTES,
)
from tavola.values.value import (
    TAGS,
    DuplicatesRefused,
    Item,
    Value,
    ValueMalformed,
    ValueRefused,
    admit_number,
)

_INVALID = "One or more parameter values were invalid: "
_EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
_SEVERAL = (
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
    "datatypes"
)
TOO_LARGE = "Item size has exceeded the maximum allowed size"
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond "
    "supported limit"
)


class AdmittedMap(dict[str, Any]):
    """Members of a large map that are admitted already, with the bytes they count for and their text; see `segments`."""

    __slots__ = ("data", "size")

    size: int
    data: bytes


class AdmittedList(list[Any]):
    """Elements of a large list or set that are admitted already, with the bytes they count for and their text."""

    __slots__ = ("data", "size")

    size: int
    data: bytes


def admit_item(raw: dict[str, Any]) -> int:
    """Admit a map of attributes in place and return the bytes it counts for."""
    return raw.size if type(raw) is AdmittedMap else admit_members(raw, 0)


def admit_value(raw: Any, depth: int = 0) -> int:
    """Admit one value in place, `depth` containers deep, and return the bytes it counts for."""
    if type(raw) is not dict:
        raise ValueMalformed("Unexpected value type in payload")
    if len(raw) != 1:
        _keep_single_member(raw)
    for tag, content in raw.items():
        if content is None:
            raise ValueRefused(_EMPTY, bare=True)
        if tag == "S":
            _expect(content, str)
            return len(content) if content.isascii() else len(content.encode())
        if tag == "N":
            _expect(content, str)
            raw["N"], size = admit_number(content)
            return size
        if type(content) is AdmittedList or type(content) is AdmittedMap:
            return admitted_size(tag, content)
        if tag == "M" or tag == "L":  # noqa: PLR1714 - faster than a tuple made for the question
            _expect(content, dict if tag == "M" else list)
            if depth >= NESTING_LEVELS_MAX:
                raise ValueRefused(TOO_DEEP, bare=True)
            admit = admit_members if tag == "M" else admit_elements
            return (
                CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content) + admit(content, depth + 1)
            )
        if tag == "BOOL":
            _expect(content, bool)
            return 1
        if tag == "NULL":
            _expect(content, bool)
            if not content:
                raise ValueRefused(f"{_INVALID}Null attribute value types must have the value of true")
            return 1
        if tag == "B":
            return _admit_binary(content)
        if tag in _SET_ADMISSIONS:
            _expect(content, list)
            return _SET_ADMISSIONS[tag](content)
    raise ValueRefused(_EMPTY, bare=True)


def admit_members(members: dict[str, Any], depth: int) -> int:
    """Admit named values in place and return the bytes of names and values.

    What most attributes are is admitted here and not one call further in; `admit_value` has the rest, and
    everything that is refused.
    """
    size = 0
    for name, value in members.items():
        length = len(name) if name.isascii() else len(name.encode())
        if not 0 < length <= ATTRIBUTE_NAME_BYTES_MAX:
            _refuse_name(name)
        size += length
        if type(value) is dict and len(value) == 1:
            ((tag, content),) = value.items()
            kind = type(content)
            if kind is str:
                if tag == "S":
                    size += len(content) if content.isascii() else len(content.encode())
                    continue
                if tag == "N":
                    value["N"], length = admit_number(content)
                    size += length
                    continue
            elif depth < NESTING_LEVELS_MAX:
                if kind is dict and tag == "M":
                    size += CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content)
                    size += admit_members(content, depth + 1)
                    continue
                if kind is list and tag == "L":
                    size += CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content)
                    size += admit_elements(content, depth + 1)
                    continue
        size += admit_value(value, depth)
        if size > ADMITTED_BYTES_MAX:
            raise ValueRefused(TOO_LARGE, bare=True)
    return size


def admit_elements(elements: list[Any], depth: int) -> int:
    """Admit the values of a list in place and return their bytes."""
    size = 0
    for value in elements:
        if type(value) is dict and len(value) == 1:
            content = value.get("M")
            if type(content) is dict and depth < NESTING_LEVELS_MAX:
                size += CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content)
                size += admit_members(content, depth + 1)
                continue
        size += admit_value(value, depth)
        if size > ADMITTED_BYTES_MAX:
            raise ValueRefused(TOO_LARGE, bare=True)
    return size


def admitted_size(tag: str, content: AdmittedList | AdmittedMap) -> int:
    """Return the bytes that a value with this tag and admitted content counts for."""
    if tag in ("L", "M"):
        return CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content) + content.size
    return content.size


def _expect(content: object, kind: type) -> None:
    if type(content) is not kind:
        raise ValueMalformed("Unexpected value type in payload")


def _keep_single_member(raw: dict[str, Any]) -> None:
    """Drop members that are absent (null) or unknown; refuse unless exactly one is left."""
    for tag in [tag for tag, content in raw.items() if content is None or tag not in TAGS]:
        del raw[tag]
    if len(raw) != 1:
        raise ValueRefused(_SEVERAL if raw else _EMPTY, bare=True)


def name_problem(name: str) -> str | None:
    """Return what is wrong with the length of an attribute name; None if it is valid."""
    if not name:
        return "Empty attribute name"
    if 4 * len(name) > ATTRIBUTE_NAME_BYTES_MAX and len(name.encode()) > ATTRIBUTE_NAME_BYTES_MAX:
        return f"Attribute name is too large, its length must be less than or equal to {ATTRIBUTE_NAME_BYTES_MAX}"
    return None


def _refuse_name(name: str) -> None:
    raise ValueRefused(f"{_INVALID}{name_problem(name)}")


def _admit_binary(content: object) -> int:
    if type(content) is not str:
        raise ValueMalformed("only base-64-encoded strings are convertible to bytes")
    if len(content) % 4:
        raise ValueMalformed(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(content)}"
        )
    try:
        data = a2b_base64(content, strict_mode=True)
    except (Base64Error, ValueError) as error:
        raise ValueMalformed("Invalid Base64 character") from error
    if b2a_base64(data, newline=False).decode() != content:
        # Bits that no byte has were set in the last character. The spelling is AWS's.
        raise ValueMalformed("Invalid last non-pad Base64 character dectected")
    return len(data)


def _admit_strings(members: list[Any]) -> int:
    if not members:
        raise ValueRefused(f"{_INVALID}An string set  may not be empty")
    size = 0
    for member in members:
        _expect(member, str)
        size += len(member) if member.isascii() else len(member.encode())
    if len(set(members)) != len(members):
        ordered = _repeat_first(members, sorted(members, key=str.encode))
        raise DuplicatesRefused(
            f"{_INVALID}Input collection [{', '.join(members)}] contains duplicates.",
            f"{_INVALID}Input collection [{', '.join(f'{chr(34)}{m}{chr(34)}' for m in ordered)}]"
            " contains duplicates.",
        )
    members.sort()  # by code points, which is the order of the UTF-8 bytes
    return size


def _admit_numbers(members: list[Any]) -> int:
    if not members:
        raise ValueRefused(f"{_INVALID}An number set  may not be empty")
    size = 0
    for place, member in enumerate(members):
        _expect(member, str)
        members[place], bytes_ = admit_number(member)
        size += bytes_
        if size > ADMITTED_BYTES_MAX:
            raise ValueRefused(TOO_LARGE, bare=True)
    if len(set(members)) != len(members):
        raise DuplicatesRefused(
            "Input collection contains duplicates", f"{_INVALID}Input collection contains duplicates."
        )
    return size


def _admit_binaries(members: list[Any]) -> int:
    if not members:
        raise ValueRefused(f"{_INVALID}Binary sets should not be empty")
    size = sum(map(_admit_binary, members))
    if len(set(members)) != len(members):
        ordered = _repeat_first(members, sorted(members, key=b64decode))
        quoted = ",".join(f'"{member}"' for member in ordered)
        raise DuplicatesRefused(
            f"{_INVALID}Input collection [{', '.join(members)}]of type BS contains duplicates.",
            f"{_INVALID}Input collection [{quoted}]of type BS contains duplicates.",
        )
    members.sort(key=b64decode)
    return size


def union(tag: str, first: list[str], second: list[str]) -> list[str]:
    """Return the members of two sets of one type, in the order in which they are stored and returned.

    AWS promises no order, but returns strings and binaries sorted by their bytes; numbers keep their order here.
    """
    members = list(dict.fromkeys(first + second))
    if tag == "SS":
        members.sort()
    elif tag == "BS":
        members.sort(key=b64decode)
    return members


def _repeat_first(members: list[str], ordered: list[str]) -> list[str]:
    """Return the members as the newer layer lists them: sorted up to the first repeat, then as sent."""
    seen: set[str] = set()
    for place, member in enumerate(members):
        if member in seen:
            return [m for m in dict.fromkeys(ordered) if m in seen] + members[place:]
        seen.add(member)
    return members


def admit_set(tag: str, members: list[Any]) -> int:
    """Admit the members of a set in place and return the bytes they count for."""
    return _SET_ADMISSIONS[tag](members)


_SET_ADMISSIONS = {"SS": _admit_strings, "NS": _admit_numbers, "BS": _admit_binaries}


# Sizes in bytes, nesting depth and capacity units


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
            case _ if type(content) is AdmittedList or type(content) is AdmittedMap:
                return admitted_size(tag, content)
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


def bounded_size(value: Value, most: int) -> int:
    """Return the bytes that a value counts for, or some number above `most`: of a larger value, only a part is measured."""
    for tag, content in value.items():
        size = CONTAINER_OVERHEAD_BYTES
        if tag == "L" and type(content) is list:
            for member in content:
                if "L" in member or "M" in member:
                    size += ELEMENT_OVERHEAD_BYTES + bounded_size(member, most - size)
                else:
                    size += ELEMENT_OVERHEAD_BYTES + value_size(member)
                if size > most:
                    break
            return size
        if tag == "M" and type(content) is dict:
            for name, member in content.items():
                size += text_size(name) + ELEMENT_OVERHEAD_BYTES
                size += bounded_size(member, most - size)
                if size > most:
                    break
            return size
    return value_size(value)


class ChangeMeasure:
    """By how many bytes values grew, and the deepest level of containers in what changed.

    What an old and a new value share is skipped, so an update of one element of a long list costs little. An update can
    put one large value into hundreds of places. So each is measured once, and measuring stops when the new parts alone are
    more than `most` bytes.
    """

    __slots__ = ("_added", "_measured", "_most", "growth", "levels")

    def __init__(self, most: int) -> None:
        self.growth = 0
        self.levels = 0
        self._added = 0
        self._most = most
        # Size and levels of new lists and maps by identity; the caller holds them all.
        self._measured: dict[int, tuple[int, int]] = {}

    @property
    def is_over(self) -> bool:
        """Whether the new parts are more than the most that was allowed; `growth` and `levels` are then not complete."""
        return self._added > self._most

    def add(self, old: Value | None, new: Value | None, level: int = 0) -> None:
        """Measure one changed value with `level` containers around it; None is no value."""
        if old is new or self._added > self._most:
            return
        if old is not None and new is not None:
            for tag, after in new.items():
                before = old.get(tag)
                if before is not None and tag == "M":
                    self._add_members(before, after, level + 1)
                    return
                if before is not None and tag == "L":
                    self._add_elements(before, after, level + 1)
                    return
        if old is not None:
            self.growth -= value_size(old)
        if new is None:
            return
        size, levels = self._measure(new)
        self.growth += size
        self._added += size
        self.levels = max(self.levels, level + levels)

    def _measure(self, value: Value) -> tuple[int, int]:
        if "L" not in value and "M" not in value:
            return value_size(value), 0
        measured = self._measured.get(id(value))
        if measured is None:
            left = self._most - self._added
            size = bounded_size(value, left)
            measured = self._measured[id(value)] = (size, nesting_levels(value) if size <= left else 0)
        return measured

    def _add_members(self, before: dict[str, Value], after: dict[str, Value], level: int) -> None:
        self.levels = max(self.levels, level)
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old is new:
                continue
            self.add(old, new, level)
            if old is None or new is None:
                self.growth += (text_size(name) + ELEMENT_OVERHEAD_BYTES) * (1 if old is None else -1)

    def _add_elements(self, before: list[Value], after: list[Value], level: int) -> None:
        self.levels = max(self.levels, level)
        shorter = min(len(before), len(after))
        head = _equal_elements(before, after, shorter)
        tail = _equal_elements(before[:head:-1], after[:head:-1], max(0, shorter - head - 1))
        old, new = before[head : len(before) - tail], after[head : len(after) - tail]
        self.growth += ELEMENT_OVERHEAD_BYTES * (len(after) - len(before))
        for one, other in zip_longest(old, new):
            self.add(one, other, level)


def _equal_elements(one: list[Value], other: list[Value], length_max: int) -> int:
    """Return how many elements at the start are equal, at most `length_max`, by binary search."""
    equal, different = 0, length_max + 1
    while different - equal > 1:
        middle = (equal + different) // 2
        if one[equal:middle] == other[equal:middle]:
            equal = middle
        else:
            different = middle
    return equal


def read_units(bytes_: int, *, consistent: bool) -> float:
    """Return the units of reading so many bytes at once; nothing there costs as much as the least."""
    units = max(1, -(-bytes_ // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def transact_read_units(bytes_: int) -> float:
    """Return the units of reading one item of so many bytes in a transaction."""
    return TRANSACTION_UNITS_FACTOR * read_units(bytes_, consistent=True)


def write_units(old_bytes: int, new_bytes: int) -> float:
    """Return the write units of replacing an item of one size with another; size 0 means no item."""
    return float(max(1, -(-max(old_bytes, new_bytes) // WRITE_UNIT_BYTES)))


def transact_write_units(old_bytes: int, new_bytes: int) -> float:
    """Return the units, on the table alone, of a write in a transaction, or of a check of one item."""
    return TRANSACTION_UNITS_FACTOR * write_units(old_bytes, new_bytes)


def index_units(before: int | None, after: int | None, *, moved: bool = False, same: bool = False) -> float:
    """Return the units of a write on one index, from the bytes of its entry before and after; None is no entry.

    An entry whose index key changes is `moved`: deleted at one place and put at the other, each paid. One
    that stays the `same` in all that is projected costs nothing.
    """
    removed = 0.0 if before is None else write_units(before, 0)
    added = 0.0 if after is None else write_units(0, after)
    if before is None or after is None or moved:
        return removed + added
    return 0.0 if same else max(removed, added)


def nesting_levels(value: Value) -> int:
    """Return how many containers are around a value's innermost scalar; a scalar has none."""
    members = value.get("M")
    if members is not None:
        return 1 + max(map(nesting_levels, members.values()), default=0)
    elements = value.get("L")
    if elements is not None:
        return 1 + max(map(nesting_levels, elements), default=0)
    return 0
