"""Messages of invalid input: pydantic's errors, in the words of the person or program that sent it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PYDANTIC_SUBJECT = re.compile(r"^(?:Input|String|List|Tuple|Dictionary|Data|Value|Decimal input) should ")
_TYPE_MESSAGES = {  # by pydantic's error type
    **dict.fromkeys(("string_type", "string_unicode"), "Must be a string."),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "Must be a whole number."),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "Must be a number."),
    **dict.fromkeys(("bool_type", "bool_parsing"), "Must be true or false."),
    **dict.fromkeys(("list_type", "tuple_type"), "Must be an array."),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type"), "Must be an object."
    ),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        "Must be a date such as 2026-11-18.",
    ),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "timezone_aware"),
        "Must be a time with a time zone, such as 2026-11-18T10:00:00Z.",
    ),
}
_CHOICE = re.compile(r"'([^']*)'")


def validation_message(error: Mapping[str, Any]) -> str:
    """Return the message of a pydantic error, reworded for the client."""
    message = str(error.get("msg", "not valid"))
    if message.startswith("Value error, "):  # a message of our own
        return message.removeprefix("Value error, ")
    match error.get("type"):
        case "missing":
            return "This field is required."
        case "extra_forbidden":
            return "Unknown field. Remove it, or correct its name."
        case "literal_error" | "enum":
            choices = _CHOICE.findall(message)
            return f"Must be one of {', '.join(choices)}." if choices else message
        case str() as kind if kind in _TYPE_MESSAGES:
            return _TYPE_MESSAGES[kind]
        case _:
            return _PYDANTIC_SUBJECT.sub("Must ", message)
