"""Validate a value from outside, make it canonical and measure it, in one pass.

One pass instead of three, because every written item goes through here. The value is modified in place (numbers are
rewritten), so callers pass what they have just decoded.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from typing import Any

from tavola.limits import (
    ADMITTED_BYTES_MAX,
    ATTRIBUTE_NAME_BYTES_MAX,
    CONTAINER_OVERHEAD_BYTES,
    ELEMENT_OVERHEAD_BYTES,
    NESTING_LEVELS_MAX,
)
from tavola.values.errors import DuplicatesRefused, ValueMalformed, ValueRefused
from tavola.values.number import admit_number
from tavola.values.value import TAGS

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


def admit_item(raw: dict[str, Any]) -> int:
    """Admit a map of attributes in place and return the bytes it counts for."""
    return _admit_members(raw, 0)


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
        if tag == "M" or tag == "L":  # noqa: PLR1714 - faster than a tuple made for the question
            _expect(content, dict if tag == "M" else list)
            if depth >= NESTING_LEVELS_MAX:
                raise ValueRefused(TOO_DEEP, bare=True)
            admit = _admit_members if tag == "M" else _admit_elements
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


def _admit_members(members: dict[str, Any], depth: int) -> int:
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
                    size += _admit_members(content, depth + 1)
                    continue
                if kind is list and tag == "L":
                    size += CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content)
                    size += _admit_elements(content, depth + 1)
                    continue
        size += admit_value(value, depth)
        if size > ADMITTED_BYTES_MAX:
            raise ValueRefused(TOO_LARGE, bare=True)
    return size


def _admit_elements(elements: list[Any], depth: int) -> int:
    """Admit the values of a list in place and return their bytes."""
    size = 0
    for value in elements:
        if type(value) is dict and len(value) == 1:
            content = value.get("M")
            if type(content) is dict and depth < NESTING_LEVELS_MAX:
                size += CONTAINER_OVERHEAD_BYTES + ELEMENT_OVERHEAD_BYTES * len(content)
                size += _admit_members(content, depth + 1)
                continue
        size += admit_value(value, depth)
        if size > ADMITTED_BYTES_MAX:
            raise ValueRefused(TOO_LARGE, bare=True)
    return size


def _expect(content: object, kind: type) -> None:
    if type(content) is not kind:
        raise ValueMalformed("Unexpected value type in payload")


def _keep_single_member(raw: dict[str, Any]) -> None:
    """Drop members that are absent (null) or unknown; refuse unless exactly one is left."""
    for tag in [tag for tag, content in raw.items() if content is None or tag not in TAGS]:
        del raw[tag]
    if len(raw) != 1:
        raise ValueRefused(_SEVERAL if raw else _EMPTY, bare=True)


def _refuse_name(name: str) -> None:
    if not name:
        raise ValueRefused(f"{_INVALID}Empty attribute name")
    raise ValueRefused(
        f"{_INVALID}Attribute name is too large, must be less than {ATTRIBUTE_NAME_BYTES_MAX + 1} bytes"
    )


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
    return size


def _repeat_first(members: list[str], ordered: list[str]) -> list[str]:
    """Return the members as the newer layer lists them: sorted up to the first repeat, then as sent."""
    seen: set[str] = set()
    for place, member in enumerate(members):
        if member in seen:
            return [m for m in dict.fromkeys(ordered) if m in seen] + members[place:]
        seen.add(member)
    return members


_SET_ADMISSIONS = {"SS": _admit_strings, "NS": _admit_numbers, "BS": _admit_binaries}
