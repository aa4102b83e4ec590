"""Forms: how a design's data stands in JSON, declared once for reading, writing and describing it.

A form says of each member of an object its name, what it holds and what is meant where it is left out. What is
read is checked on the way, and every refusal names its place as a JSON path: `$.tables[0].indexes[1].name`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from tavola.errors import TavolaError
from tavola.keys import Template, TemplateRefused
from tavola.model.errors import DocumentRefused, ModelError
from tavola.values import Value, admit_value

DELIMITER = "#"  # of templates that say nothing else


class Kind(Protocol):
    """What a member of an object holds."""

    def read(self, raw: Any, path: str) -> Any:
        """Return the value that JSON stands for; refuse JSON that stands for none."""
        ...

    def write(self, value: Any) -> Any:
        """Return a value as JSON."""
        ...

    def schema(self) -> dict[str, Any]:
        """Return what JSON Schema says of it."""
        ...


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, a number, or true and false, as JSON has them."""

    word: str
    types: tuple[type, ...]
    told: str

    def read(self, raw: Any, path: str) -> Any:
        """Return it as it is."""
        wanted = isinstance(raw, self.types) and (bool in self.types or not isinstance(raw, bool))
        if wanted and (
            not isinstance(raw, float) or isfinite(raw)
        ):  # Python's JSON has NaN, and JSON has not
            return raw
        raise DocumentRefused(path, f"{shown(raw)} stands where {self.told} is wanted")

    def write(self, value: Any) -> Any:
        """Return it as it is."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return its type."""
        return {"type": self.word}


TEXT = Scalar("string", (str,), "text")
FLAG = Scalar("boolean", (bool,), "true or false")
WHOLE = Scalar("integer", (int,), "a whole number")
NUMBER = Scalar("number", (int, float), "a number")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, raw: Any, path: str) -> Any:
        """Return the word."""
        if isinstance(raw, str) and raw in self.words:
            return raw
        raise DocumentRefused(path, f"{shown(raw)} is none of {', '.join(self.words)}")

    def write(self, value: Any) -> Any:
        """Return the word."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return the words."""
        return {"enum": list(self.words)}


class Choices:
    """A value that a field may have: text, a whole number, true or false."""

    def read(self, raw: Any, path: str) -> Any:
        """Return it as it is."""
        if isinstance(raw, str | int):
            return raw
        raise DocumentRefused(path, f"{shown(raw)} is no choice; give text, a whole number, true or false")

    def write(self, value: Any) -> Any:
        """Return it as it is."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return its types."""
        return {"type": ["string", "integer", "boolean"]}


@dataclass(frozen=True, slots=True)
class Maybe:
    """Something, or null."""

    kind: Kind

    def read(self, raw: Any, path: str) -> Any:
        """Return None for null."""
        return None if raw is None else self.kind.read(raw, path)

    def write(self, value: Any) -> Any:
        """Return null for None."""
        return None if value is None else self.kind.write(value)

    def schema(self) -> dict[str, Any]:
        """Return both."""
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class Many:
    """An array of things alike, which order matters to."""

    kind: Kind

    def read(self, raw: Any, path: str) -> Any:
        """Return them as a tuple."""
        if not isinstance(raw, list):
            raise DocumentRefused(path, f"{shown(raw)} stands where an array is wanted")
        return tuple(self.kind.read(member, f"{path}[{place}]") for place, member in enumerate(raw))

    def write(self, value: Any) -> Any:
        """Return them as an array."""
        return [self.kind.write(member) for member in value]

    def schema(self) -> dict[str, Any]:
        """Return what its members are."""
        return {"type": "array", "items": self.kind.schema()}


@dataclass(frozen=True, slots=True)
class Named:
    """An object whose names are anybody's, and whose members are alike."""

    kind: Kind

    def read(self, raw: Any, path: str) -> Any:
        """Return a dict in the order of the document."""
        if not isinstance(raw, dict):
            raise DocumentRefused(path, f"{shown(raw)} stands where an object is wanted")
        return {name: self.kind.read(member, below(path, name)) for name, member in raw.items()}

    def write(self, value: Any) -> Any:
        """Return it as an object."""
        return {name: self.kind.write(member) for name, member in value.items()}

    def schema(self) -> dict[str, Any]:
        """Return what its members are."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


class Projected:
    """What an index holds besides keys: a word, or the attributes."""

    _words = OneOf(("ALL", "KEYS_ONLY"))
    _names = Many(TEXT)

    def read(self, raw: Any, path: str) -> Any:
        """Return the word, or the names as a tuple."""
        return self._names.read(raw, path) if isinstance(raw, list) else self._words.read(raw, path)

    def write(self, value: Any) -> Any:
        """Return the word, or the names as an array."""
        return list(value) if isinstance(value, tuple) else value

    def schema(self) -> dict[str, Any]:
        """Return both."""
        return {"anyOf": [self._words.schema(), self._names.schema()]}


class Anything:
    """An object of somebody else's making, kept as it stands."""

    def read(self, raw: Any, path: str) -> dict[str, Any]:
        """Return a copy."""
        if not isinstance(raw, dict):
            raise DocumentRefused(path, f"{shown(raw)} stands where an object is wanted")
        return deepcopy(raw)

    def write(self, value: Any) -> Any:
        """Return a copy."""
        return deepcopy(dict(value))

    def schema(self) -> dict[str, Any]:
        """Return that it is an object."""
        return {"type": "object"}


class Stored:
    """An attribute value, as DynamoDB JSON."""

    def read(self, raw: Any, path: str) -> Value:
        """Return it in canonical form."""
        value = deepcopy(raw)
        try:
            admit_value(value)
        except TavolaError as error:
            raise DocumentRefused(path, f"{shown(raw)} is no attribute value: {error}") from error
        return value  # type: ignore[no-any-return]  # what is admitted is one

    def write(self, value: Any) -> Any:
        """Return a copy."""
        return deepcopy(value)

    def schema(self) -> dict[str, Any]:
        """Return that it has one member, the type."""
        return {"type": "object", "minProperties": 1, "maxProperties": 1}


REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an object; `default` is what is meant where it is left out."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    attribute: str = ""  # of the data, where that is called otherwise
    always: bool = False  # it is written though it is the default

    @property
    def of(self) -> str:
        """The attribute of the data."""
        return self.attribute or self.name


@dataclass(frozen=True, slots=True)
class Form:
    """An object with members of its own, which is one piece of data."""

    make: Callable[..., Any]
    entries: tuple[Entry, ...]

    def read(self, raw: Any, path: str) -> Any:
        """Return the data; refuse members that are absent, unknown or wrong."""
        if not isinstance(raw, dict):
            raise DocumentRefused(path, f"{shown(raw)} stands where an object is wanted")
        known = {entry.name for entry in self.entries}
        for name in raw:
            if name not in known:
                raise DocumentRefused(
                    below(path, name), f"there is no such member; it has {', '.join(sorted(known))}"
                )
        values = {}
        for entry in self.entries:
            if entry.name in raw:
                values[entry.of] = entry.kind.read(raw[entry.name], below(path, entry.name))
            elif entry.default is REQUIRED:
                raise DocumentRefused(below(path, entry.name), "it is missing; give it")
            else:
                values[entry.of] = entry.default
        try:
            return self.make(**values)
        except ModelError as error:
            raise DocumentRefused(path, error.problem) from error

    def write(self, value: Any) -> Any:
        """Return an object in the order of the form, without what is meant anyway."""
        written = {}
        for entry in self.entries:
            held = value[entry.of] if isinstance(value, Mapping) else getattr(value, entry.of)
            if entry.always or entry.default is REQUIRED or held != entry.default:
                written[entry.name] = entry.kind.write(held)
        return written

    def schema(self) -> dict[str, Any]:
        """Return its members and which of them must be there."""
        return {
            "type": "object",
            "properties": {
                entry.name: entry.kind.schema() | ({} if entry.default in (REQUIRED, ()) else _default(entry))
                for entry in self.entries
            },
            "required": [entry.name for entry in self.entries if entry.default is REQUIRED],
            "additionalProperties": False,
        }


def _default(entry: Entry) -> dict[str, Any]:
    return {"default": None if entry.default is None else entry.kind.write(entry.default)}


def below(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"


def shown(raw: Any) -> str:
    """Return JSON as an error tells it, never too long."""
    text = (
        {None: "null", True: "true", False: "false"}[raw]
        if raw is None or isinstance(raw, bool)
        else repr(raw)
    )
    return text if len(text) <= 60 else f"{text[:59]}…"


class _Segments:
    """The segments of a template: its literals as text, its fields as objects."""

    def read(self, raw: Any, path: str) -> Any:
        """Return them as they stand; they are held against the template's text."""
        return raw

    def write(self, value: Any) -> Any:
        """Return them as they are."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return both sorts."""
        return {"type": "array", "items": {"anyOf": [TEXT.schema(), _SEGMENT.schema()]}}


_SEGMENT = Form(dict, (Entry("field", TEXT), Entry("spec", TEXT, "")))
_TEMPLATE = Form(
    dict, (Entry("text", TEXT), Entry("delimiter", TEXT, DELIMITER), Entry("segments", _Segments(), None))
)


class Templated:
    """A key template: the text, and the same as data, so that nobody has to parse it."""

    def read(self, raw: Any, path: str) -> Template:
        """Return the template of the text; refuse segments that say something else."""
        told: dict[str, Any] = _TEMPLATE.read(raw, path)
        try:
            template = Template.parse(told["text"], told["delimiter"])
        except TemplateRefused as error:
            raise DocumentRefused(below(path, "text"), str(error)) from error
        if told["segments"] is not None and told["segments"] != _segments(template):
            raise DocumentRefused(
                below(path, "segments"),
                f"they are not those of {told['text']!r}; mend them, or leave them out",
            )
        return template

    def write(self, value: Any) -> Any:
        """Return text and segments, and the delimiter where it is not the usual one."""
        template: Template = value
        told = {"text": template.source, "delimiter": template.delimiter, "segments": _segments(template)}
        return _TEMPLATE.write(told)

    def schema(self) -> dict[str, Any]:
        """Return its members."""
        return _TEMPLATE.schema()


def _segments(template: Template) -> list[Any]:
    return [
        each if isinstance(each, str) else _SEGMENT.write({"field": each.field, "spec": each.spec})
        for each in template.segments
    ]
