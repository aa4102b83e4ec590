"""Annotations: find or build the converter of a field's type annotation.

Wrappers are removed (Annotated, aliases, NewType), containers and records are built from the converters of their
members, and other types that pydantic knows go through pydantic's own serialisation. An annotation that cannot be stored
is refused when it is declared, not when a value is written.
"""

from __future__ import annotations

import sys
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections import abc as collections_abc
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, NewType, TypeVar, Union, get_args, get_origin
from uuid import UUID

import typing_extensions
from pydantic import (
    BaseModel,
    EncodedBytes,
    EncodedStr,
    Json,
    JsonValue,
    Secret,
    SecretBytes,
    SecretStr,
    TypeAdapter,
)
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from tavola.model.converters.containers import of_list, of_map, of_set, of_tuple
from tavola.model.converters.converter import (
    MARKERS,
    Converter,
    EpochMilliseconds,
    EpochSeconds,
    Exact,
    optional,
    show_value,
    storage_error,
)
from tavola.model.converters.plain import ANY, EXACT_ANY, FLOAT_REMEDY, decode_plain, encode_plain
from tavola.model.converters.records import annotation_of, of_record, record_of
from tavola.model.converters.scalars import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    EPOCH_MILLISECONDS,
    EPOCH_SECONDS,
    FLOAT,
    IDENTIFIER,
    INT,
    NULL,
    TEXT,
    TIME,
    of_enum,
    of_literal,
)
from tavola.model.converters.unions import of_union
from tavola.model.errors import ValueNotStorable
from tavola.values import TAGS, Value

_KNOWN_MAX = 4096
_known: dict[Any, Converter] = {}

_SCALARS: dict[Any, Converter] = {
    str: TEXT,
    int: INT,
    Decimal: DECIMAL,
    bool: BOOL,
    bytes: BYTES,
    datetime: DATETIME,
    date: DATE,
    time: TIME,
    timedelta: DURATION,
    UUID: IDENTIFIER,
    NoneType: NULL,
    None: NULL,
}
_CORE = {
    "str": TEXT,
    "int": INT,
    "decimal": DECIMAL,
    "bool": BOOL,
    "bytes": BYTES,
    "datetime": DATETIME,
    "date": DATE,
    "time": TIME,
    "timedelta": DURATION,
    "uuid": IDENTIFIER,
}
_LISTS = {
    list: list,
    tuple: tuple,
    deque: deque,
    Sequence: list,
    collections_abc.MutableSequence: list,
    collections_abc.Collection: list,
}
_SETS: dict[Any, type[set[Any]] | type[frozenset[Any]]] = {
    set: set,
    frozenset: frozenset,
    collections_abc.Set: set,
    collections_abc.MutableSet: set,
}
_MAPS = {
    dict: dict,
    Mapping: dict,
    collections_abc.MutableMapping: dict,
    defaultdict: defaultdict,
    OrderedDict: OrderedDict,
    Counter: Counter,
}
_ALIAS = typing_extensions.TypeAliasType
_ALIASES: tuple[Any, ...] = (_ALIAS, getattr(typing, "TypeAliasType", _ALIAS))  # Python 3.12 has its own
_QUALIFIERS = (
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
    typing.Final,
)
_RECODED = (Json, EncodedBytes, EncodedStr)  # what pydantic reads is not what it gives
# What pydantic validates and nothing can store.
_UNSTORABLE = frozenset({"callable", "is-instance", "is-subclass", "generator"})
_WRAPPERS = frozenset(
    {"function-after", "function-before", "function-wrap", "lax-or-strict", "json-or-python"}
)

Marks = frozenset[type]
_NO_MARKS: Marks = frozenset()


def converter_for(annotation: Any) -> Converter:
    """Return the converter of a type; refuse a type that cannot be stored, and say what to use instead."""
    build = _Build()
    converter = build.convert(annotation, _NO_MARKS)
    if len(_known) + len(build.made) > _KNOWN_MAX:
        _known.clear()
    _known.update(build.made)
    return converter


def field_converter(info: FieldInfo) -> Converter:
    """Return the converter of a pydantic field, markers included."""
    return converter_for(annotation_of(info))


_PLAIN = frozenset(TAGS) - {"NULL"}


class _Build:
    """One declaration under construction: what is made so far, and which records are begun.

    A record that contains itself is met again before it is whole; it is given a converter that looks the whole
    one up when it is used. What was made is known to others only when all of it succeeded.
    """

    def __init__(self) -> None:
        self.made: dict[Any, Converter] = {}
        self.begun: dict[Any, dict[str, Converter]] = {}

    def convert(self, annotation: Any, marks: Marks, metadata: tuple[Any, ...] = ()) -> Converter:
        if metadata:  # what was said beside the type may change how a foreign one is written
            return self._build(annotation, marks, metadata)
        key = (annotation, marks)
        try:
            converter = _known.get(key) or self.made.get(key)
        except TypeError:  # an annotation with something in it that does not hash
            return self._build(annotation, marks, metadata)
        if converter is None:
            self.made[key] = converter = self._build(annotation, marks, metadata)
        return converter

    def _build(self, annotation: Any, marks: Marks, metadata: tuple[Any, ...]) -> Converter:
        origin = get_origin(annotation)
        if origin is Annotated:
            return self._convert_annotated(annotation, marks, metadata)
        if annotation is JsonValue:
            return EXACT_ANY
        if isinstance(annotation, _ALIASES) or isinstance(origin, _ALIASES):
            return self._alias(annotation, origin, marks, metadata)
        if isinstance(annotation, NewType):
            return self.convert(annotation.__supertype__, marks, metadata)
        if origin in _QUALIFIERS:
            return self.convert(get_args(annotation)[0], marks, metadata)
        if any(isinstance(metadatum, _RECODED) for metadatum in metadata):
            return self._foreign(annotation, metadata)
        if annotation is Any or annotation is object:
            return EXACT_ANY if Exact in marks else ANY
        if annotation is float:
            return self._float(marks)
        if annotation is datetime and marks & {EpochSeconds, EpochMilliseconds}:
            return EPOCH_SECONDS if EpochSeconds in marks else EPOCH_MILLISECONDS
        scalar = _SCALARS.get(annotation) if isinstance(annotation, type | None) else None
        if scalar is not None:
            return scalar
        if origin is Literal:
            return of_literal(get_args(annotation))
        if origin is Union or origin is UnionType:
            return self._union(get_args(annotation), marks)
        container = self._container(annotation, origin, marks)
        return container or self._class(annotation, origin, marks, metadata)

    def _convert_annotated(self, annotation: Any, marks: Marks, metadata: tuple[Any, ...]) -> Converter:
        inner, *marks_given = get_args(annotation)
        markers = frozenset(
            marker if isinstance(marker, type) else type(marker)
            for marker in marks_given
            if (marker if isinstance(marker, type) else type(marker)) in MARKERS
        )
        for marker, expected in (
            (Exact, (float, Any, object)),
            (EpochSeconds, (datetime,)),
            (EpochMilliseconds, (datetime,)),
        ):
            if marker in markers and not any(_mentions(inner, target) for target in expected):
                raise ValueNotStorable(
                    _show_annotation(annotation),
                    f"{marker.__name__} applies to {expected[0].__name__}; remove it here",
                )
        return self.convert(inner, marks | markers, (*marks_given, *metadata))

    def _alias(self, annotation: Any, origin: Any, marks: Marks, metadata: tuple[Any, ...]) -> Converter:
        """Return the converter of a named type alias, with its type parameters filled in."""
        key = (annotation, marks)
        if key in self.begun:
            return _deferred_converter(self.begun[key], _show_annotation(annotation), frozenset())
        self.begun[key] = whole = {}
        if origin is None:
            value = annotation.__value__
        else:
            type_arguments = dict(zip(origin.__type_params__, get_args(annotation), strict=True))
            value = origin.__value__
            value = value[tuple(type_arguments[name] for name in value.__parameters__)]
        whole["whole"] = converter = self.convert(value, marks, metadata)
        del self.begun[key]
        return converter

    def _float(self, marks: Marks) -> Converter:
        if Exact not in marks:
            raise ValueNotStorable("float", FLOAT_REMEDY)
        return FLOAT

    def _union(self, arguments: tuple[Any, ...], marks: Marks) -> Converter:
        members = tuple(self.convert(argument, marks) for argument in arguments if argument is not NoneType)
        converter = members[0] if len(members) == 1 else of_union(members)
        return optional(converter) if NoneType in arguments else converter

    def _container(self, annotation: Any, origin: Any, marks: Marks) -> Converter | None:
        cls = origin or annotation
        if not isinstance(cls, type):
            return None
        arguments = tuple(argument for argument in get_args(annotation) if argument is not Ellipsis)
        if cls is tuple and arguments and len(arguments) == len(get_args(annotation)):
            return of_tuple(tuple(self.convert(argument, marks) for argument in arguments))
        if annotation == tuple[()]:
            return of_tuple(())
        if cls in _LISTS:
            return of_list(self.convert(arguments[0] if arguments else Any, marks), _LISTS[cls])
        if cls in _SETS:
            if not arguments:
                raise ValueNotStorable(
                    _show_annotation(annotation),
                    "a set needs a member type: set[str], set[int] or set[bytes]",
                )
            return of_set(self.convert(arguments[0], marks), _SETS[cls])
        if cls in _MAPS:
            name, *members = arguments or (str, Any)
            member = members[0] if members else int  # a Counter names its keys only
            return of_map(self.convert(name, marks), self.convert(member, marks), _MAPS[cls])
        return None

    def _class(self, annotation: Any, origin: Any, marks: Marks, metadata: tuple[Any, ...]) -> Converter:
        if isinstance(annotation, TypeVar):
            raise ValueNotStorable(
                _show_annotation(annotation),
                f"{annotation} is a type variable, so its storage is unknown; give the class its argument",
            )
        if isinstance(annotation, str | ForwardRef):
            raise ValueNotStorable(
                _show_annotation(annotation),
                f"{_show_annotation(annotation)} is not defined yet; define it before the class",
            )
        if origin is Secret:
            return _of_secret(self.convert(get_args(annotation)[0], marks), Secret)
        if isinstance(annotation, type):
            if issubclass(annotation, SecretStr | SecretBytes):
                return _of_secret(TEXT if issubclass(annotation, SecretStr) else BYTES, annotation)
            if issubclass(annotation, Enum):
                return of_enum(annotation)
            if issubclass(annotation, BaseModel) and annotation.__pydantic_root_model__:
                return self._root(annotation, marks)  # importing RootModel would load pydantic's plugins
            if issubclass(annotation, BaseModel) or record_of(annotation) is not None:
                return self._record(annotation)
        return self._foreign(annotation, metadata)

    def _root(self, cls: type[Any], marks: Marks) -> Converter:
        """Return the converter of a model that is one value: it is stored as that value."""
        inner = self.convert(annotation_of(cls.model_fields["root"]), marks)
        encode = inner.encode_inside

        def encode_root(value: Any) -> Value:
            return encode(value.root if isinstance(value, cls) else value)

        return Converter(
            encode_root, inner.decode_inside, inner.tags, (cls,),
            kind=inner.kind, word=cls.__name__, inside=inner.inside,
        )  # fmt: skip

    def _record(self, cls: type) -> Converter:
        begun = self.begun.get(cls)
        record = record_of(cls)
        assert record is not None
        if begun is not None:
            return _deferred_converter(begun, cls.__name__, frozenset({"M"}), record)
        self.begun[cls] = whole = {}
        members = {}
        for field in record.fields:
            try:
                members[field.name] = self.convert(field.annotation, _NO_MARKS)
            except ValueNotStorable as error:
                raise ValueNotStorable(
                    cls.__name__, f"in {cls.__name__}.{field.name}, {error.problem}"
                ) from error
        whole["whole"] = converter = of_record(record, members)
        del self.begun[cls]
        return converter

    def _foreign(self, annotation: Any, metadata: tuple[Any, ...]) -> Converter:
        """Return the converter of a type that pydantic knows: by the built-in type it wraps, or by pydantic's dump."""
        full: Any = Annotated[(annotation, *metadata)] if metadata else annotation
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(full)
            core: Mapping[str, Any] = adapter.core_schema
        except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError) as error:
            raise ValueNotStorable(
                _show_annotation(annotation),
                f"neither Tavola nor pydantic can store {_show_annotation(annotation)}; use a pydantic "
                "model, a dataclass or a plain type, or define __get_pydantic_core_schema__",
            ) from error
        recoded = any(isinstance(metadatum, _RECODED) for metadatum in metadata)
        if not recoded and core["type"] in _CORE:
            return _CORE[core["type"]]
        if not recoded and isinstance(annotation, type):
            for kind, converter in _SCALARS.items():
                if isinstance(kind, type) and kind is not NoneType and issubclass(annotation, kind):
                    return converter
            if issubclass(annotation, float):
                return self._float(frozenset())
        heart = core
        while heart["type"] in _WRAPPERS and "schema" in heart:
            heart = heart["schema"]
        if heart["type"] in _UNSTORABLE:
            raise ValueNotStorable(
                _show_annotation(annotation),
                f"pydantic validates {_show_annotation(annotation)}, but does not define how it is "
                "stored; use a pydantic model, a dataclass or a plain type, or add PlainSerializer and "
                "PlainValidator",
            )
        return _of_foreign(adapter, _show_annotation(annotation), annotation)


def _deferred_converter(
    whole: dict[str, Converter], word: str, tags: frozenset[str], detail: Any = None
) -> Converter:
    """Return a converter that looks up the real one when it is used."""

    def encode(value: Any) -> Value:
        return whole["whole"].encode_inside(value)

    def decode(value: Value) -> Any:
        return whole["whole"].decode_inside(value)

    def inside(step: str | int | None) -> Converter | None:
        inner = whole["whole"].inside
        return None if inner is None else inner(step)

    types = () if detail is None else (detail.cls,)
    kind = "record" if detail else "other"
    return Converter(encode, decode, tags, types, detail=detail, kind=kind, word=word, inside=inside)


def _mentions(annotation: Any, searched: Any) -> bool:
    """Return whether a type is somewhere in an annotation, aliases included."""
    if annotation is searched:
        return True
    if isinstance(annotation, _ALIASES):
        return _mentions(annotation.__value__, searched)
    if isinstance(annotation, NewType):
        return _mentions(annotation.__supertype__, searched)
    return any(_mentions(argument, searched) for argument in get_args(annotation))


def _show_annotation(annotation: Any) -> str:
    """Return an annotation as text for error messages."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return str(annotation).replace("typing.", "")


def _of_foreign(adapter: TypeAdapter[Any], word: str, annotation: Any) -> Converter:
    """Return the converter of a type that pydantic dumps to plain values, or else to JSON."""
    dump = adapter.dump_python

    def encode_foreign(value: Any) -> Value:
        try:
            try:
                return encode_plain(dump(value, round_trip=True, warnings="error"))
            except ValueNotStorable:
                return encode_plain(dump(value, mode="json", round_trip=True))
        except PydanticSerializationError as error:
            raise storage_error(
                f"{show_value(value)} cannot be written as {word}: pydantic does not know how"
            ) from error

    networks = sys.modules.get("pydantic.networks")  # not imported here: it loads importlib.metadata
    if networks is not None and annotation is networks.EmailStr:
        return Converter(
            encode_foreign, decode_plain, frozenset({"S"}), (str,), "text", kind="text", word="text"
        )
    types = (annotation,) if isinstance(annotation, type) else ()
    return Converter(encode_foreign, decode_plain, _PLAIN, types, kind="other", word=word)


def _of_secret(inner: Converter, cls: type) -> Converter:
    """Return the converter of a secret, which is stored as the hidden value."""
    encode = inner.encode_inside

    def encode_secret(value: Any) -> Value:
        hidden = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        try:
            return encode(hidden)
        except ValueNotStorable:
            raise storage_error(f"the secret is no {inner.word}") from None  # what was hidden stays so

    return Converter(
        encode_secret, inner.decode_inside, inner.tags, (cls,), kind="secret", word=f"secret {inner.word}"
    )
