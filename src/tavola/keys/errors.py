"""Errors of the keys package: values, keys and templates that do not fit."""

from __future__ import annotations

from typing import Literal

from tavola.errors import TavolaError
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX

Reason = Literal["missing", "type", "empty", "hash-size", "range-size"]

_INVALID = "One or more parameter values were invalid: "


class KeyRefused(TavolaError):
    """Attributes that do not form a valid key. The message is DynamoDB's for the `Key` of a request.

    Operations for which DynamoDB has other messages (puts, indexes) build them from `reason`, `name` and the types.
    """

    remedy = "Fix the value or expression above; nothing was changed."

    def __init__(self, reason: Reason, name: str, expected: str, actual: str = "") -> None:
        self.reason = reason
        self.name = name
        self.expected = expected  # the type that the schema gives the attribute
        self.actual = actual
        super().__init__(self._sentence())

    @property
    def type_word(self) -> str:
        """Return what DynamoDB calls a value of the expected type."""
        return "binary" if self.expected == "B" else "string"

    def _sentence(self) -> str:
        match self.reason:
            case "empty":
                return (
                    "One or more parameter values are not valid. The AttributeValue for a key attribute "
                    f"cannot contain an empty {self.type_word} value. Key: {self.name}"
                )
            case "hash-size":
                # The missing space is DynamoDB's.
                return f"{_INVALID}Size of hashkey has exceeded the maximum size limit of{HASH_KEY_BYTES_MAX} bytes"
            case "range-size":
                return (
                    f"{_INVALID}Aggregated size of all range keys has exceeded the size limit of "
                    f"{RANGE_KEY_BYTES_MAX} bytes"
                )
            case "missing" | "type":
                return "The provided key element does not match the schema"


class TemplateRefused(TavolaError):
    """A key template that cannot be declared: the template, the position of the error in it, and what to do."""

    remedy: str

    def __init__(self, reason: str, remedy: str, template: str = "", place: int | None = None) -> None:
        self.reason = reason
        self.remedy = remedy
        self.template = template
        self.place = place  # offset in characters; None: the whole template
        where = "" if not template else f"key template {template!r}"
        if template and place is not None:
            where += f", character {place + 1}"
        super().__init__(f"{where}: {reason}; {remedy}" if where else f"{reason}; {remedy}")

    def within(self, template: str, place: int) -> TemplateRefused:
        """Return the same error with the template and the position in it."""
        return TemplateRefused(self.reason, self.remedy, template, place)


class KeyPartMissing(TavolaError):
    """A key that cannot be made, because a field of its template has no value."""

    code = "not-storable"

    def __init__(self, field: str, template: str) -> None:
        self.field = field
        self.template = template
        super().__init__(f"the key {template!r} needs {field}, which is absent or None; give {field} a value")


class KeyPartRefused(TavolaError):
    """A value that a key template cannot hold, with its field and template."""

    code = "not-storable"

    def __init__(self, reason: str, value: object, field: str = "", template: str = "") -> None:
        self.reason = reason
        self.value = value
        self.field = field
        self.template = template
        where = (
            f"{field} in the key {template!r}: " if field else f"the key {template!r}: " if template else ""
        )
        super().__init__(f"{where}{reason}")

    def within(self, field: str, template: str) -> KeyPartRefused:
        """Return the same error with the field and the template."""
        return KeyPartRefused(self.reason, self.value, field, template)
