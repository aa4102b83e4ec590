"""Records: converters of values with named fields, which are stored as maps.

Pydantic models, dataclasses, TypedDicts and NamedTuples. A field is stored under its own name, not its alias.
None is stored as NULL, to distinguish it from an absent field with a default. Computed fields are not stored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

from msgspec import Struct
from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from typing_extensions import ReadOnly, is_typeddict

from tavola.model.converters.converter import (
    VALUE,
    Converter,
    Decode,
    Encode,
    show_value,
    storage_error,
    with_place,
    wrong_type_error,
)
from tavola.model.converters.plain import decode_plain, encode_plain
from tavola.model.errors import ValueNotStorable
from tavola.values import Item, Value

_QUALIFIERS = (Required, NotRequired, ReadOnly)


class RecordField(Struct, frozen=True):
    """A field: its name, the name pydantic reads it by, and its annotation."""

    name: str
    key: str
    annotation: Any
    required: bool = True  # it has no default
    may_lack: bool = False  # a key of a TypedDict that need not be there


class Record(Struct, frozen=True):
    """A class with named fields, without converters yet."""

    cls: type
    fields: tuple[RecordField, ...]
    extra: Literal["allow", "ignore", "forbid"] = "ignore"

    @property
    def names(self) -> frozenset[str]:
        """The names that every stored record has."""
        return frozenset(field.name for field in self.fields)

    @property
    def has_fixed_names(self) -> bool:
        """Whether every stored record has the same names."""
        return self.extra != "allow" and not any(field.may_lack for field in self.fields)

    def literals(self) -> dict[str, tuple[Any, ...]]:
        """Return the literal fields with their values, which may distinguish this record from others in a union."""
        return {
            field.name: get_args(bare)
            for field in self.fields
            if get_origin(bare := _strip_markers(field.annotation)) is Literal
        }


def _strip_markers(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def annotation_of(info: FieldInfo) -> Any:
    """Return a pydantic field's annotation with its metadata."""
    return Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation


def record_of(cls: Any) -> Record | None:
    """Return a class with named fields as a record, None if it is something else."""
    if not isinstance(cls, type):
        return None
    if issubclass(cls, BaseModel):
        return _of_model(cls)
    if dataclasses.is_dataclass(cls):
        return _of_dataclass(cls)
    if is_typeddict(cls):
        return _of_typed_dict(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        hints = get_type_hints(cls, include_extras=True)
        return Record(cls, tuple(RecordField(name, name, hints.get(name, Any)) for name in cls._fields))
    return None


def _of_model(cls: type[BaseModel]) -> Record:
    if not cls.__pydantic_complete__ and not cls.model_rebuild(raise_errors=False):
        raise ValueNotStorable(
            cls.__name__,
            "it refers to a type that is not defined yet; define that type first, or call model_rebuild()",
        )
    by_name = cls.model_config.get("validate_by_name") or cls.model_config.get("populate_by_name")
    fields = tuple(
        RecordField(
            name, name if by_name else _input_name(name, info), annotation_of(info), info.is_required()
        )
        for name, info in cls.model_fields.items()
    )
    return Record(cls, fields, cls.model_config.get("extra") or "ignore")


def _input_name(name: str, info: FieldInfo) -> str:
    """Return the name under which pydantic looks for a field."""
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return next((choice for choice in alias.choices if isinstance(choice, str)), name)
    return alias if isinstance(alias, str) else name


def _of_dataclass(cls: type) -> Record:
    hints = get_type_hints(cls, include_extras=True)
    for name, hint in hints.items():
        if isinstance(hint, dataclasses.InitVar):
            raise ValueNotStorable(
                f"{cls.__name__}.{name}",
                f"{name} of {cls.__name__} is an InitVar, which is not kept and cannot be stored; make it a field",
            )
    missing = dataclasses.MISSING
    fields = tuple(
        RecordField(
            field.name,
            field.name,
            hints[field.name],
            required=field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(cls)
        if field.init
    )
    return Record(cls, fields)


def _of_typed_dict(cls: Any) -> Record:
    fields = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        # Annotations that are text when the class is made hide their qualifiers from the class.
        may_lack = name not in cls.__required_keys__
        while get_origin(hint) in _QUALIFIERS:
            may_lack = {Required: False, NotRequired: True}.get(get_origin(hint), may_lack)
            (hint,) = get_args(hint)
        fields.append(RecordField(name, name, hint, may_lack=may_lack))
    return Record(cls, tuple(fields))


def of_record(record: Record, members: Mapping[str, Converter]) -> Converter:
    """Return the converter of a record, from those of its fields."""
    cls = record.cls
    encode = (
        _typed_dict_encoder(record, members)
        if is_typeddict(cls)
        else _model_encoder(record, members)
        if issubclass(cls, BaseModel)
        else _attribute_encoder(record, members)
    )
    types = (dict,) if is_typeddict(cls) else (cls,)
    decode = _decoder(record, members)
    return Converter(
        encode, decode, frozenset({"M"}), types,
        detail=record, kind="record", word=cls.__name__, inside=lambda step: members.get(str(step)),
    )  # fmt: skip


def _encoders(members: Mapping[str, Converter]) -> tuple[tuple[str, Encode], ...]:
    return tuple((name, member.encode_inside) for name, member in members.items())


def _model_encoder(record: Record, members: Mapping[str, Converter]) -> Encode:
    cls, encoders = record.cls, _encoders(members)
    extra = record.extra == "allow"

    def encode_model(value: Any) -> Value:
        if type(value) is not cls:
            _check_kin(value, record)
        fields = value.__dict__
        try:
            written = {name: encode(fields[name]) for name, encode in encoders}
        except ValueNotStorable as error:
            raise _in_field(encoders, fields) from error
        except KeyError as error:
            raise storage_error(f"{cls.__name__} was made without its field {error.args[0]}") from error
        if extra and value.__pydantic_extra__:
            for name, member in value.__pydantic_extra__.items():
                try:
                    written[name] = encode_plain(member)
                except ValueNotStorable as error:
                    raise with_place(error, f"{VALUE}.{name}") from error
        return {"M": written}

    return encode_model


def _attribute_encoder(record: Record, members: Mapping[str, Converter]) -> Encode:
    cls, encoders = record.cls, _encoders(members)
    getters: tuple[tuple[str, Callable[[Any], Any], Encode], ...] = tuple(
        (name, attrgetter(name), encode) for name, encode in encoders
    )

    def encode_attributes(value: Any) -> Value:
        if type(value) is not cls:
            _check_kin(value, record)
        try:
            return {"M": {name: encode(get(value)) for name, get, encode in getters}}
        except ValueNotStorable as error:
            raise _in_field(encoders, {name: get(value) for name, get, _ in getters}) from error

    return encode_attributes


def _typed_dict_encoder(record: Record, members: Mapping[str, Converter]) -> Encode:
    encoders = dict(_encoders(members))
    needed = [field.name for field in record.fields if not field.may_lack]
    word = record.cls.__name__

    def encode_typed_dict(value: Any) -> Value:
        if not isinstance(value, dict):
            raise wrong_type_error(value, f"a dict with the keys of {word}")
        unknown = [name for name in value if name not in encoders]
        absent = [name for name in needed if name not in value]
        if unknown or absent:
            problem = (
                f"has no {absent[0]}" if absent else f"has {unknown[0]!r}, which {word} does not declare"
            )
            raise storage_error(f"{show_value(value)} {problem}; use the keys of {word}")
        try:
            return {"M": {name: encoders[name](member) for name, member in value.items()}}
        except ValueNotStorable as error:
            raise _in_field(tuple((name, encoders[name]) for name in value), value) from error

    return encode_typed_dict


def _check_kin(value: Any, record: Record) -> None:
    """Refuse a value of another class, and a subclass whose additional fields would be lost."""
    cls = record.cls
    if not isinstance(value, cls):
        raise wrong_type_error(value, f"a {cls.__name__}")
    value_record = record_of(type(value))
    lost = sorted(value_record.names - record.names) if value_record is not None else []
    if lost:
        raise storage_error(
            f"it is a {type(value).__name__}, so {', '.join(lost)} would be lost where {cls.__name__} "
            f"is declared; declare {cls.__name__} | {type(value).__name__}"
        )


def _in_field(encoders: tuple[tuple[str, Encode], ...], fields: Mapping[str, Any]) -> ValueNotStorable:
    """Return the error for the first field that cannot be encoded, with its name."""
    for name, encode in encoders:
        try:
            encode(fields[name])
        except ValueNotStorable as error:
            return with_place(error, f"{VALUE}.{name}")
    raise AssertionError("a field was refused a moment ago")


def _decoder(record: Record, members: Mapping[str, Converter]) -> Decode:
    fields = tuple((field.name, field.key, members[field.name].decode_inside) for field in record.fields)
    known = record.names
    keeps_extra = record.extra != "ignore"
    fillings = _absent_defaults(record, members)

    def decode_record(value: Value) -> Any:
        try:
            content: Item = value["M"]
        except KeyError:
            return decode_plain(value)
        values = {key: decode(content[name]) for name, key, decode in fields if name in content}
        if len(values) != len(fields):
            for key, fill in fillings:
                if key not in values:
                    values[key] = fill()
        if keeps_extra:
            values |= {name: decode_plain(member) for name, member in content.items() if name not in known}
        return values

    return decode_record


def _absent_defaults(
    record: Record, members: Mapping[str, Converter]
) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """Return the values of absent fields: an empty set, or None if the field is required."""
    fillings: list[tuple[str, Callable[[], Any]]] = []
    for field in record.fields:
        member = members[field.name]
        if member.absent is not None and not field.may_lack:
            fillings.append((field.key, member.absent))
        elif member.nullable and field.required and not field.may_lack:
            fillings.append((field.key, lambda: None))
    return tuple(fillings)


def instance_decoder(converter: Converter) -> Decode:
    """Return a decoder that creates the record's instance, so that a union cannot choose another class for it.

    Invalid values are returned as they were read; pydantic then reports the error.
    """
    decode = converter.decode
    adapters: list[TypeAdapter[Any]] = []

    def decode_instance(value: Value) -> Any:
        if not adapters:  # made late: the class may be under construction still
            adapters.append(TypeAdapter(converter.detail.cls))
        values = decode(value)
        try:
            return adapters[0].validate_python(values, strict=False)
        except ValidationError:
            return values

    return decode_instance
