"""The design document: a whole design as JSON, written by `write_document` and read back to an equal `Design`.

The members of the document are the fields of the dataclasses in `design`: a msgspec Struct is derived for each of them, so that
a field is declared once. `_LAYOUTS` holds the differences: another order or name, another default, members that are written
even if they have their default value. msgspec checks types and unknown members and generates the JSON Schema; this module
turns its errors into sentences with the JSON path, the rejected value and what to write instead.

Members are written in one order and defaults are left out, so that two documents can be compared line by line. A document is
not trusted: after its types, `check_references` checks everything that it refers to.

Import this module by name: programs that only read and write items do not load it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from dataclasses import field as dataclass_field
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from tavola.errors import TavolaError
from tavola.keys import Template, TemplateRefused
from tavola.model.access import AccessPattern, WritePattern
from tavola.model.consumers import REPORT_BATCH_ITEM_FAILURES, Consumer, consumer_limit_errors
from tavola.model.design import (
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    Ignore,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Membership,
    PatternDesign,
    Policy,
    SourceDesign,
    TableDesign,
    needs_of,
)
from tavola.model.errors import DocumentRefused, ModelError
from tavola.model.handlers import handler_modules, returns_item_failures, with_handlers
from tavola.model.ignores import declarations_in, ignores_in, with_ignores
from tavola.model.needs import Given, Need, Route
from tavola.model.references import check_references, member_path
from tavola.model.survey import Declaration, design_of
from tavola.model.tables import Scaling, Shards, TableSettings
from tavola.values import TAGS, Value, admit_value

__all__ = [
    "FORMAT",
    "REPORT_BATCH_ITEM_FAILURES",
    "VERSION",
    "AccessPattern",
    "CollectionDesign",
    "Consumer",
    "Declaration",
    "Design",
    "DocumentRefused",
    "EntityDesign",
    "FieldDesign",
    "Given",
    "Ignore",
    "IndexDesign",
    "KeyDesign",
    "MemberDesign",
    "Membership",
    "Need",
    "PatternDesign",
    "Policy",
    "Route",
    "Scaling",
    "Shards",
    "SourceDesign",
    "TableDesign",
    "TableSettings",
    "WritePattern",
    "check_references",
    "consumer_limit_errors",
    "declarations_in",
    "design_document",
    "design_of",
    "document_schema",
    "handler_modules",
    "ignores_in",
    "needs_of",
    "read_document",
    "returns_item_failures",
    "with_handlers",
    "with_ignores",
    "write_document",
]

FORMAT = "tavola-design"
VERSION = 1

_DELIMITER = "#"  # of a template that names no other
_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")
_TYPE_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "int | float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the document writes a dataclass where it differs from the declaration."""

    order: tuple[str, ...] = ()  # of the first members; the others follow as declared
    names: Mapping[str, str] = dataclass_field(default_factory=dict)  # by field
    types: Mapping[str, Any] = dataclass_field(default_factory=dict)
    required: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = dataclass_field(default_factory=dict)
    always: tuple[str, ...] = ()  # written even if they have their default value


_LAYOUTS: Mapping[type, _Layout] = {
    FieldDesign: _Layout(types={"tags": tuple[Literal[TAGS], ...]}),  # type: ignore[valid-type]  # a tuple of words
    SourceDesign: _Layout(names={"tag": "type"}),
    KeyDesign: _Layout(defaults={"index": None}),
    PatternDesign: _Layout(defaults={"index": None}, required=("result",)),
    EntityDesign: _Layout(
        order=("name", "tag", "description", "version", "stale", "immutable", "items"),
    ),
    IndexDesign: _Layout(defaults={"local": False, "range": (), "projection": "ALL"}, always=("projection",)),
    CollectionDesign: _Layout(
        order=("name", "description"), defaults={"index": None, "prefix": "", "parts": ()}
    ),
    TableSettings: _Layout(
        defaults={
            "range": None,
            "ttl": None,
            "tag": None,
            "delimiter": _DELIMITER,
            "stream": None,
            "recovery": False,
            "recovery_days": 35,
            "encryption": None,
            "table_class": "STANDARD",
            "deletion_protection": False,
            "read_units": None,
            "write_units": None,
        },
        always=(
            "range",
            "ttl",
            "tag",
            "delimiter",
            "stream",
            "recovery",
            "recovery_days",
            "encryption",
            "table_class",
            "deletion_protection",
            "read_units",
            "write_units",
            "tags",
        ),
    ),
    TableDesign: _Layout(order=("label", "description"), always=("indexes", "entities")),
    Design: _Layout(required=("tables",)),
}


class _SegmentDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A field of a template."""

    field: str
    spec: str | msgspec.UnsetType = msgspec.UNSET


class _TemplateDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A key template as text, and as segments for readers that do not parse it."""

    text: str
    delimiter: str | msgspec.UnsetType = msgspec.UNSET
    segments: list[str | _SegmentDocument] | None = None


class _StoredValue(dict[str, Any]):
    """An attribute value, as DynamoDB JSON."""


def design_document(*declarations: Declaration) -> dict[str, Any]:
    """Return the design of tables, or of modules that declare them, as a JSON document."""
    return write_document(design_of(*declarations))


def write_document(design: Design) -> dict[str, Any]:
    """Return a design as a JSON document, made of dicts, lists, text, numbers, booleans and None only."""
    members: dict[str, Any] = msgspec.to_builtins(_to_struct(design))
    return {"format": FORMAT, "version": VERSION, **members}


def read_document(document: Mapping[str, Any]) -> Design:
    """Return the design that a JSON document describes; raise DocumentRefused with the path of what is wrong."""
    if not isinstance(document, dict):
        raise DocumentRefused("$", f"{_show(document)} is not a design document, which is a JSON object")
    version = document.get("version")
    if document.get("format") == FORMAT and type(version) is int and version > VERSION:
        raise DocumentRefused(
            "$.version",
            f"{version} is newer than this Tavola, which reads {VERSION}; update Tavola to read it",
        )
    document_type = _document_type()
    try:
        read = msgspec.convert(deepcopy(document), document_type, dec_hook=_read_value)
    except msgspec.ValidationError as error:
        raise _refusal(document, document_type, str(error)) from error
    if version != VERSION:
        raise DocumentRefused("$.version", f"{version} is not a version; the first is 1")
    design: Design = _from_struct(read, "$")
    check_references(design)
    return design


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document, for editors and for tools in other languages."""
    schema = msgspec.json.schema(_document_type(), schema_hook=_schema_of)
    definitions = schema["$defs"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions.pop("DesignDocument"),
        "title": "A Tavola design",
        "$defs": definitions,
    }


# Derived Structs.


@cache
def _document_type() -> type[msgspec.Struct]:
    return _struct("DesignDocument", Design, (("format", Literal["tavola-design"]), ("version", int)))


@cache
def _struct_of(model: Any) -> type[msgspec.Struct]:
    return _struct(model.__name__, model)


def _struct(name: str, model: Any, first: tuple[tuple[str, Any], ...] = ()) -> type[msgspec.Struct]:
    layout = _LAYOUTS.get(model, _Layout())
    hints = get_type_hints(model)
    members: list[Any] = list(first)
    for member, default in _defaults(model).items():
        member_type = layout.types.get(member) or _member_type(hints[member])
        if default is MISSING:
            members.append((member, member_type))
        elif member in layout.always:
            # msgspec omits a default that is a value, and never one that a function makes.
            members.append((member, member_type, msgspec.field(default_factory=partial(deepcopy, default))))
        else:
            members.append((member, member_type, default))
    return msgspec.defstruct(
        name,
        members,
        namespace={"model": model},
        rename=dict(layout.names),
        kw_only=True,
        omit_defaults=True,
        forbid_unknown_fields=True,
    )


@cache
def _defaults(model: Any) -> dict[str, Any]:
    """Return the default of each field in the order of the document; MISSING where there is none."""
    layout = _LAYOUTS.get(model, _Layout())
    declared: dict[str, Any] = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(model)
    }
    declared |= {**layout.defaults, **dict.fromkeys(layout.required, MISSING)}
    return {name: declared[name] for name in (*layout.order, *(n for n in declared if n not in layout.order))}


def _member_type(hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Template:
        return _TemplateDocument
    if hint == Value:  # an attribute value; any other object is declared as a Mapping
        return _StoredValue
    if hint is float:
        return int | float  # 5 is written as 5, not as 5.0
    if origin in (Union, UnionType):
        return Union[tuple(_member_type(argument) for argument in arguments)]  # noqa: UP007 - made of a tuple
    if origin is tuple:
        return tuple[_member_type(arguments[0]), ...]  # type: ignore[misc]
    if origin is not None and origin is not Literal:
        return dict[str, _member_type(arguments[1])]  # type: ignore[misc]
    return _struct_of(hint) if _is_model(hint) else hint


def _is_model(value: object) -> bool:
    return is_dataclass(value)


# Between Structs and the design.


def _to_struct(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_struct(element) for element in value]
    if isinstance(value, Template):
        return _TemplateDocument(
            value.source,
            msgspec.UNSET if value.delimiter == _DELIMITER else value.delimiter,
            _segments(value),
        )
    if not _is_model(value):
        return value
    model: Any = type(value)
    members = {}
    for name, default in _defaults(model).items():
        held = getattr(value, name)
        # msgspec omits a default by identity.
        members[name] = default if default is not MISSING and held == default else _to_struct(held)
    return _struct_of(model)(**members)


def _segments(template: Template) -> list[str | _SegmentDocument]:
    return [
        segment
        if isinstance(segment, str)
        else _SegmentDocument(segment.field, segment.spec or msgspec.UNSET)
        for segment in template.segments
    ]


def _from_struct(value: Any, path: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_from_struct(element, f"{path}[{place}]") for place, element in enumerate(value))
    if isinstance(value, _StoredValue):
        return dict(value)
    if isinstance(value, _TemplateDocument):
        return _read_template(value, path)
    model = getattr(value, "model", None)
    if model is None:
        return value
    names = _LAYOUTS.get(model, _Layout()).names
    members = {
        default: _from_struct(getattr(value, default), member_path(path, names.get(default, default)))
        for default in _defaults(model)
    }
    try:
        return model(**members)
    except ModelError as error:
        raise DocumentRefused(path, error.problem) from error


def _read_template(document: _TemplateDocument, path: str) -> Template:
    delimiter = _DELIMITER if document.delimiter is msgspec.UNSET else document.delimiter
    try:
        template = Template.parse(document.text, delimiter)
    except TemplateRefused as error:
        raise DocumentRefused(member_path(path, "text"), str(error)) from error
    if document.segments is not None and document.segments != _segments(template):
        raise DocumentRefused(
            member_path(path, "segments"),
            f"they do not match the template {document.text!r}; correct them, or leave them out",
        )
    return template


def _read_value(expected: type, value: Any) -> Any:
    """Return an attribute value in canonical form; msgspec adds the path to a ValueError."""
    assert expected is _StoredValue, "the only type that msgspec does not know"
    try:
        admit_value(value)
    except TavolaError as error:
        raise ValueError(f"{_show(value)} is not an attribute value: {error}") from error
    return _StoredValue(value)


def _schema_of(unknown: type) -> dict[str, Any]:
    assert unknown is _StoredValue, "the only type that msgspec does not know"
    return {"type": "object", "minProperties": 1, "maxProperties": 1}


# Errors.


def _refusal(document: Any, document_type: Any, message: str) -> DocumentRefused:
    """Return msgspec's error with the rejected value and the accepted alternatives.

    msgspec gives the path of the surrounding object for a missing or unknown member, and no key inside a mapping.
    """
    match = _MESSAGE.fullmatch(message)
    assert match is not None
    problem, path = match["problem"], match["path"] or "$"
    value, expected, path = _at(document, document_type, path)
    if member := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return DocumentRefused(member_path(path, member[1]), "it is required")
    if member := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        known = ", ".join(
            sorted(name for struct in _structs(expected) for name in struct.__struct_encode_fields__)
        )
        return DocumentRefused(member_path(path, member[1]), f"unknown member; valid members are {known}")
    # Sorted, because typing caches unions and two Literals of the same words are equal in any order.
    choices = sorted(
        {
            word
            for alternative in _alternatives(expected)
            if get_origin(alternative) is Literal
            for word in get_args(alternative)
        }
    )
    if choices and not isinstance(value, list):
        return DocumentRefused(path, f"{_show(value)} is not one of {', '.join(choices)}")
    if mismatch := re.fullmatch(r"Expected `(.*)`, got `.*`", problem):
        words = [word for word in mismatch[1].split(" | ") if word != "null"]
        known = " or ".join(
            _TYPE_WORDS.get(word, word) for word in words if (word, "float" in words) != ("int", True)
        )
        return DocumentRefused(path, f"expected {known}, got {_show(value)}")
    return DocumentRefused(path, problem)


def _at(value: Any, expected: Any, path: str) -> tuple[Any, Any, str]:
    """Return the value and the type at one of msgspec's paths, and the path with the key of a mapping in it."""
    exact = "$"
    for name, place, anything in _STEP.findall(path):
        if name:
            value = value[name]
            expected = next(
                hint
                for struct in _structs(expected)
                for hint in [_encoded_hints(struct).get(name)]
                if hint is not None
            )
            exact = member_path(exact, name)
        elif place:
            value = value[int(place)]
            expected = next(
                get_args(alternative)[0]
                for alternative in _alternatives(expected)
                if get_origin(alternative) in (tuple, list)
            )
            exact = f"{exact}[{place}]"
        elif anything:
            expected = next(
                get_args(alternative)[1]
                for alternative in _alternatives(expected)
                if get_origin(alternative) is dict
            )
            name = next(key for key, member in value.items() if not _fits(member, expected))
            value = value[name]
            exact = member_path(exact, name)
    return value, expected, exact


def _encoded_hints(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {
        encoded: hints[name]
        for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    }


def _alternatives(hint: Any) -> Iterator[Any]:
    """Yield the alternatives of a type."""
    if get_origin(hint) in (Union, UnionType):
        for alternative in get_args(hint):
            yield from _alternatives(alternative)
    elif hint is not NoneType:
        yield hint


def _structs(hint: Any) -> list[type[msgspec.Struct]]:
    return [
        alternative
        for alternative in _alternatives(hint)
        if isinstance(alternative, type) and issubclass(alternative, msgspec.Struct)
    ]


def _fits(value: Any, expected: Any) -> bool:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        return False
    return True


def _show(value: Any) -> str:
    """Return a JSON value for an error message, at most 60 characters of it."""
    text = (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else repr(value)
    )
    return text if len(text) <= 60 else f"{text[:59]}…"
