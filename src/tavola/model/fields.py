"""Fields: an entity's fields as shapes, each with how its values are written; refuses what no field can be.

The field that is the table's time to live is written as whole epoch seconds, which is all that DynamoDB looks at. A
datetime there is cut to the second where the entity is validated, so that what is put is what is read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from tavola.model.attributes import AttrOptions
from tavola.model.base import EntityBase
from tavola.model.converters import EPOCH_SECONDS, Converter, field_converter, with_place
from tavola.model.errors import ModelError, ValueNotStorable
from tavola.model.shapes import FieldShape
from tavola.model.tables import Table
from tavola.values import Value

EXPIRY = "expiry"  # the kind of a converter that cuts moments to seconds


def field_shapes(cls: type[EntityBase], table: type[Table] | None) -> dict[str, FieldShape]:
    """Return an entity's fields; the one that is the table's time to live is written as epoch seconds."""
    if cls.model_config.get("extra") == "allow":
        raise ModelError(
            cls.__name__,
            'extra="allow" keeps values that no field says how to store, so they would be lost; leave it out, and '
            "declare a field for them, such as more: Attr[dict[str, Any]]",
        )
    ttl = None if table is None else table.settings.ttl
    shapes: dict[str, FieldShape] = {}
    for name, info in cls.__dict__["__pydantic_fields__"].items():
        shape = _field_shape(f"{cls.__name__}.{name}", name, info, ttl)
        if shape.lock and (other := next((o.name for o in shapes.values() if o.lock), None)):
            raise ModelError(f"{cls.__name__}.{name}", f"{other} is the lock already; an item has one")
        shapes[name] = shape
    attributes: dict[str, str] = {}
    for shape in shapes.values():
        if shape.attribute in attributes:
            other = attributes[shape.attribute]
            raise ModelError(
                f"{cls.__name__}.{shape.name}",
                f"{other} is stored as {shape.attribute!r} as well; give one of them another attr(name=…)",
            )
        attributes[shape.attribute] = shape.name
    return shapes


def _field_shape(place: str, name: str, info: FieldInfo, ttl: str | None) -> FieldShape:
    options = next((m for m in info.metadata if isinstance(m, AttrOptions)), AttrOptions())
    attribute = options.name or name
    try:
        converter = field_converter(info)
    except ValueNotStorable as error:
        raise with_place(error, place) from None
    if attribute == ttl:
        converter = _expiry_converter(place, converter)
    if converter.nullable and not info.is_required() and (info.default_factory or info.default is not None):
        raise ModelError(
            place,
            "it may be None, which is stored as absence, and absence would read as its default; let the default "
            "be None, or leave None out of the type",
        )
    if options.lock:
        _check_lock(place, info, converter)
    return FieldShape(
        name,
        attribute,
        info.annotation,
        converter,
        required=info.is_required(),
        lock=options.lock,
        unique=options.unique,
        within=options.within,
        default=None if info.is_required() or info.default_factory is not None else info.default,
    )


def _check_lock(place: str, info: FieldInfo, converter: Converter) -> None:
    if converter.key_kind != "int":
        raise ModelError(place, "lock=True is for an int, which counts the item's writes")
    if converter.nullable:
        raise ModelError(place, "lock=True counts the item's writes, and cannot be None; make it an int")
    if info.is_required():
        raise ModelError(place, "lock=True needs default=0: an item that was never written")


def _expiry_converter(place: str, converter: Converter) -> Converter:
    """Return how a time to live is written; refuse what would not be whole epoch seconds."""
    if converter.kind == "int" or converter.word == EPOCH_SECONDS.word:
        return converter
    if converter.kind != "datetime":
        raise ModelError(
            place, "it is the table's time to live; its type is datetime, or int for epoch seconds"
        )

    def encode(value: datetime) -> Value:
        return EPOCH_SECONDS.encode(_whole_second(value))

    return replace(
        EPOCH_SECONDS, encode=encode, nullable=converter.nullable, key_kind=None, kind=EXPIRY, word="datetime"
    )


def _whole_second(value: datetime | None) -> datetime | None:
    """Return a moment without its fraction of a second; anything else as it is, for others to refuse."""
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


_CUT = AfterValidator(_whole_second)


def truncate_ttl(cls: type[EntityBase], fields: dict[str, FieldShape]) -> bool:
    """Make pydantic cut the entity's time to live as storing does; return whether it must build the model anew."""
    anew = False
    infos: dict[str, Any] = cls.__dict__["__pydantic_fields__"]
    for name, shape in fields.items():
        if shape.converter.kind == EXPIRY and _CUT not in infos[name].metadata:
            infos[name].metadata.append(_CUT)
            anew = True
    return anew
