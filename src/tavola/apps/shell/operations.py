"""Operations: an application's OpenAPI document, as the page about its API tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

_DEPTH_MAX = 4  # of an example; what refers to itself has an end
_COMMAND_CHARACTERS_MAX = 400  # of a body that stands in a command
_BOUND_MAX = 1e15  # of a number; what is larger is a format's bound and nobody's
_CHOICES = ("anyOf", "oneOf", "allOf")
_TONES = {"get": "info", "post": "good", "put": "warn", "patch": "warn", "delete": "bad"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    place: str  # path, query or header
    kind: str
    required: bool
    description: str
    sample: str | None = None  # what a command has in its place


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a body; one of a member is told by its path, `findings[].title`."""

    path: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method at one path."""

    method: str
    tone: str
    path: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    body: str | None  # an example as JSON, with every member
    members: tuple[Member, ...]
    answers: tuple[tuple[str, str], ...]  # status and what it means
    command: str  # the same with curl


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that belong together."""

    name: str
    description: str
    operations: tuple[Operation, ...]


def groups_of(document: Mapping[str, Any], address: str) -> tuple[Group, ...]:
    """Return the operations of a document by their tag, the service's own last; `address` is where they are."""
    told = {tag["name"]: tag.get("description", "") for tag in document.get("tags", ())}
    found: dict[str, list[Operation]] = {name: [] for name in told}
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            tag = next(iter(operation.get("tags", ())), "other")
            found.setdefault(tag, []).append(_operation(document, address, method, path, operation))
    ordered = sorted(found, key=lambda name: name == "service")
    return tuple(Group(name, told.get(name, ""), tuple(found[name])) for name in ordered if found[name])


def _operation(
    document: Mapping[str, Any], address: str, method: str, path: str, told: Mapping[str, Any]
) -> Operation:
    parameters = tuple(_parameter(document, each) for each in told.get("parameters", ()))
    content = told.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = sent = None
    members: tuple[Member, ...] = ()
    if schema is not None:
        body = json.dumps(example(document, schema), indent=2, ensure_ascii=False)
        sent = json.dumps(example(document, schema, needed=True), ensure_ascii=False)
        members = tuple(_members(document, schema))
    answers = tuple(
        (status, str(answer.get("description", ""))) for status, answer in told.get("responses", {}).items()
    )
    return Operation(
        method.upper(),
        _TONES.get(method, "neutral"),
        path,
        str(told.get("summary", "")),
        str(told.get("description", "")),
        parameters,
        body,
        members,
        answers,
        _command(method, address + path, parameters, _headers(told), sent, next(iter(content), None)),
    )


def _headers(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers that a request needs: those that are required, and If-Match where what is changed is there already."""
    answers = told.get("responses", {})
    changes = "428" in answers and "201" not in answers
    found = [each for each in told.get("parameters", ()) if each["in"] == "header"]
    return [
        (each["name"], "*" if each["name"] == "If-Match" else "…")
        for each in found
        if each.get("required") or (changes and each["name"] == "If-Match")
    ]


def _parameter(document: Mapping[str, Any], told: Mapping[str, Any]) -> Parameter:
    schema = _resolved(document, told.get("schema", {}))
    return Parameter(
        told["name"],
        told["in"],
        _kind(document, schema),
        bool(told.get("required")),
        str(told.get("description", "")),
        next((str(each) for each in schema.get("examples", ()) if each is not None), None),
    )


def _members(
    document: Mapping[str, Any], schema: Mapping[str, Any], above: str = "", depth: int = 0
) -> Iterator[Member]:
    """Give the members of an object, each before its own."""
    for told in _alternatives(document, schema):
        if told.get("type") == "array" and "items" in told:
            yield from _members(document, told["items"], f"{above}[]", depth)
        required = told.get("required", ())
        for name, each in told.get("properties", {}).items() if depth < _DEPTH_MAX else ():
            path = f"{above}.{name}" if above else name
            found = _resolved(document, each)
            description = str(each.get("description") or found.get("description") or "")
            yield Member(path, _kind(document, found), name in required, description)
            yield from _members(document, found, path, depth + 1)


def _alternatives(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a value may be of, without null."""
    schema = _resolved(document, schema)
    if "properties" in schema or "type" in schema:
        return [schema]
    several = [_resolved(document, each) for name in _CHOICES for each in schema.get(name, ())]
    return [each for each in several if each.get("type") != "null"]


def _kind(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "type" not in schema and ("anyOf" in schema or "oneOf" in schema):
        several = [
            _kind(document, _resolved(document, each)) for each in schema.get("anyOf") or schema["oneOf"]
        ]
        return " or ".join(dict.fromkeys(each for each in several if each != "null"))
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        kind = f"list of {_kind(document, _resolved(document, schema['items']))}"
    else:
        kind = str(schema.get("format") or schema.get("type") or "any")
    bounds = [schema[name] for name in ("minimum", "maximum") if abs(schema.get(name, inf)) < _BOUND_MAX]
    if bounds:
        kind += " " + "–".join(f"{int(each) if each == int(each) else each:,}" for each in bounds)
    if "maxLength" in schema:
        kind += f", up to {schema['maxLength']:,} characters"
    return f"{kind}; up to {schema['maxItems']:,} of them" if "maxItems" in schema else kind


def _command(
    method: str,
    address: str,
    parameters: Sequence[Parameter],
    headers: Sequence[tuple[str, str]],
    body: str | None,
    media: str | None,
) -> str:
    """Return the request for curl, with what it needs and nothing else."""
    for each in parameters:
        if each.place == "path" and each.sample is not None:
            address = address.replace(f"{{{each.name}}}", each.sample)
    needed = [each for each in parameters if each.required and each.place == "query"]
    query = "&".join(f"{each.name}={each.sample or '…'}" for each in needed)
    words = ["curl"] if method == "get" else ["curl", "-X", method.upper()]
    words.append(f"'{address}{'?' + query if query else ''}'")
    words += [f"-H '{name}: {value}'" for name, value in headers]
    if media is not None:
        words.append(f"-H 'Content-Type: {'application/octet-stream' if media == '*/*' else media}'")
        if body is not None:
            plain = body.replace("'", "'\\''")
            words.append(f"-d '{plain}'" if len(plain) < _COMMAND_CHARACTERS_MAX else "-d @body.json")
        else:
            words.append("--data-binary @file")
    return " ".join(words)


def example(
    document: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0, *, needed: bool = False
) -> Any:
    """Return a value that a schema allows: its own example, else the plainest one.

    An object has all its members, or those that are `needed`; of members that exclude each other it has the first.
    """
    schema = _resolved(document, schema)
    if schema.get("examples"):
        return schema["examples"][0]
    for name in ("example", "default", "const"):
        if schema.get(name) is not None:
            return schema[name]
    if "enum" in schema:
        return schema["enum"][0]
    if "type" not in schema:
        several = _alternatives(document, schema)
        return example(document, several[0], depth + 1, needed=needed) if several else None
    match schema["type"]:
        case "object":
            known = schema.get("properties", {})
            shown = _shown(schema, needed=needed) if depth < _DEPTH_MAX else []
            return {name: example(document, known[name], depth + 1, needed=needed) for name in shown}
        case "array":
            return (
                [example(document, schema["items"], depth + 1, needed=needed)]
                if "items" in schema and depth < _DEPTH_MAX
                else []
            )
        case "integer":
            return int(schema.get("minimum", 1))
        case "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            pattern = schema.get("pattern", "")
            fitting = (each for each in _FITTING if re.search(pattern, each))
            return _TEXTS.get(schema.get("format", "")) or next(fitting, "…")
        case _:
            return None


def _shown(schema: Mapping[str, Any], *, needed: bool) -> list[str]:
    """Return the members that an example of an object has."""
    known = list(schema.get("properties", {}))
    one = [set(each.get("required", ())) for each in schema.get("oneOf", ())]
    some = [set(each.get("required", ())) for each in schema.get("anyOf", ())]
    required = set(schema.get("required", ())).union(*one[:1], *some[:1])
    if needed:
        return [name for name in known if name in required] or known[:1]
    return [name for name in known if name in required or not any(name in each for each in one)]


_FITTING = ("…", "example", "example-1")  # for a text: the first that its pattern allows
_TEXTS = {"date-time": "2026-11-03T14:05:00Z", "date": "2026-11-03", "email": "desk@example.com"}


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema itself where it is told by its name."""
    for _ in range(_DEPTH_MAX):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part, {})
        schema = found
    return schema
