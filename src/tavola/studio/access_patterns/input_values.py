"""Convert between the text in a form and the values of keys and attributes.

The design's field decides what the text must be. Text that does not fit is rejected with the field's name and an example.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from tavola.errors import TavolaError
from tavola.keys import part_for
from tavola.model.document import FieldDesign
from tavola.studio.key_text import format_value
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue
from tavola.values import NumberRefused, canonical_number

InputKind = Literal["text", "int", "decimal", "datetime", "date", "bool", "uuid", "choice", "bytes"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BY_TYPE: dict[str, InputKind] = {
    "datetime": "datetime",
    "epoch-seconds": "datetime",
    "epoch-milliseconds": "datetime",
    "date": "date",
    "uuid": "uuid",
    "int": "int",
    "decimal": "decimal",
    "float": "decimal",
    "bool": "bool",
    "bytes": "bytes",
}
_BY_TAG: dict[str, InputKind] = {"N": "decimal", "BOOL": "bool", "B": "bytes"}
_EXAMPLES: dict[InputKind, str] = {
    "text": "text",
    "int": "a whole number such as 42",
    "decimal": "a number such as 0.25",
    "datetime": "a date and time such as 2026-08-01T12:00:00Z",
    "date": "a date such as 2026-08-01",
    "bool": "true or false",
    "uuid": "a UUID such as 1b4e28ba-2fa1-4d2b-883f-0016d3cca427",
    "choice": "one of the choices",
    "bytes": "base64",
}


def input_kind(field: FieldDesign) -> InputKind:
    """Return the kind of input for a field."""
    if field.choices and field.key_kind != "bool":
        return "choice"
    if field.key_kind in ("datetime", "date", "uuid", "int", "decimal", "bool"):
        return _BY_TYPE[field.key_kind]
    if field.type in _BY_TYPE:
        return _BY_TYPE[field.type]
    return _BY_TAG.get(field.tags[0], "text") if field.tags else "text"


def parse_value(field: FieldDesign, text: str) -> Any:
    """Return the value of a text as key templates accept it; refuse text that does not fit the field."""
    kind = input_kind(field)
    try:
        return _VALUES[kind](field, text.strip() if kind != "text" else text)
    except (ValueError, OverflowError, Base64Error, NumberRefused) as error:
        expected = (
            f"one of {', '.join(map(str, field.choices or ()))}" if kind == "choice" else _EXAMPLES[kind]
        )
        raise RequestRefused(
            "parameter-malformed",
            f"{field.name} is not {expected.partition(' such')[0]}",
            f"The value of {field.name} is “{text[:200]}”.",
            f"Enter {expected}.",
        ) from error


def to_attribute(field: FieldDesign, value: Any) -> AttributeValue:
    """Return a value as the field's attribute holds it."""
    tag = field.tags[0] if field.tags else "S"
    match value:
        case bool():
            return {"BOOL": value} if tag == "BOOL" else {"S": str(value).lower()}
        case datetime():
            return {"N": _epoch(field, value)} if tag == "N" else {"S": part_for("datetime").encode(value)}
        case date():
            return {"S": value.isoformat()}
        case int() | Decimal():
            return {"N" if tag == "N" else "S": canonical_number(str(value))}
        case bytes():
            return {"B": b64encode(value).decode()}
        case UUID():
            return {"S": str(value)}
        case _:
            return {"N": canonical_number(value)} if tag == "N" else {"S": str(value)}


def from_attribute(field: FieldDesign, stored: AttributeValue) -> Any:
    """Return the value in an attribute; None if it does not fit the field."""
    text = attribute_text(field, stored)
    if text is None:
        return None
    try:
        return parse_value(field, text)
    except TavolaError:
        return None


def attribute_text(field: FieldDesign, stored: AttributeValue) -> str | None:
    """Return an attribute's value as the text to enter for the field; None if it has no text form."""
    [(tag, content)] = stored.items()
    if tag == "N" and input_kind(field) == "datetime":
        try:
            since = (
                timedelta(milliseconds=float(content))
                if field.type == "epoch-milliseconds"
                else timedelta(seconds=float(content))
            )
            return (_EPOCH + since).isoformat().replace("+00:00", "Z")
        except (ValueError, OverflowError):
            return None
    if tag in ("S", "N"):
        return str(content)
    if tag == "BOOL":
        return "true" if content else "false"
    return str(content) if tag == "B" and isinstance(content, str) else None


def _epoch(field: FieldDesign, value: datetime) -> str:
    since = value - _EPOCH
    unit = timedelta(milliseconds=1) if field.type == "epoch-milliseconds" else timedelta(seconds=1)
    return str(since // unit)


def _text(field: FieldDesign, text: str) -> str:
    if not text:
        raise ValueError("a key cannot be empty")
    return text


def _datetime(field: FieldDesign, text: str) -> datetime:
    """Return a time in UTC; text without a zone is UTC already."""
    parsed = datetime.fromisoformat(text)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _boolean(field: FieldDesign, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _choice(field: FieldDesign, text: str) -> Any:
    for choice in field.choices or ():
        if format_value(choice) == text:
            return choice
    raise ValueError("not one of the choices")


_VALUES: dict[InputKind, Callable[[FieldDesign, str], Any]] = {
    "text": _text,
    "int": lambda field, text: int(canonical_number(text)),
    "decimal": lambda field, text: Decimal(canonical_number(text)),  # rejects unsupported exponents
    "datetime": _datetime,
    "date": lambda field, text: date.fromisoformat(text),
    "bool": _boolean,
    "uuid": lambda field, text: UUID(text),
    "choice": _choice,
    "bytes": lambda field, text: b64decode(text, validate=True),
}
