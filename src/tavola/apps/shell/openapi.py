"""The OpenAPI document of an application: the error responses that it declares, and its content as the API page shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Any

from tavola.web import MEDIA_TYPE, URN

_DEPTH_MAX = 4  # of an example: schemas may refer to themselves
_COMMAND_CHARACTERS_MAX = 400  # of a body that is shown inside a command
_BOUND_MAX = 1e15  # a larger bound of a number is that of its format
_CHOICES = ("anyOf", "oneOf", "allOf")
_TONES = {"get": "info", "post": "good", "put": "warn", "patch": "warn", "delete": "bad"}


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """One parameter of an operation."""

    name: str
    location: str  # path, query or header
    kind: str
    required: bool
    description: str
    sample: str | None = None  # the value in the example command


@dataclass(frozen=True, slots=True)
class ApiField:
    """One field of a request body; nested ones are named by their path, such as `findings[].title`."""

    path: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One method at one path."""

    method: str
    tone: str
    path: str
    summary: str
    description: str
    parameters: tuple[ApiParameter, ...]
    body: str | None  # an example as JSON, with every field
    members: tuple[ApiField, ...]
    responses: tuple[tuple[str, str], ...]  # status and description
    command: str  # an example for curl


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """The operations of one tag."""

    name: str
    description: str
    operations: tuple[ApiOperation, ...]


def group_operations(document: Mapping[str, Any], address: str) -> tuple[ApiGroup, ...]:
    """Return the operations of a document by tag, those of the tag `service` last; `address` is the base URL."""
    descriptions = {tag["name"]: tag.get("description", "") for tag in document.get("tags", ())}
    operations: dict[str, list[ApiOperation]] = {name: [] for name in descriptions}
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            tag = next(iter(operation.get("tags", ())), "other")
            operations.setdefault(tag, []).append(_operation(document, address, method, path, operation))
    ordered = sorted(operations, key=lambda name: name == "service")
    return tuple(
        ApiGroup(name, descriptions.get(name, ""), tuple(operations[name]))
        for name in ordered
        if operations[name]
    )


def _operation(
    document: Mapping[str, Any], address: str, method: str, path: str, operation: Mapping[str, Any]
) -> ApiOperation:
    parameters = tuple(_parameter(document, parameter) for parameter in operation.get("parameters", ()))
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = minimal = None
    members: tuple[ApiField, ...] = ()
    if schema is not None:
        body = json.dumps(example(document, schema), indent=2, ensure_ascii=False)
        minimal = json.dumps(example(document, schema, needed=True), ensure_ascii=False)
        members = tuple(_members(document, schema))
    responses = tuple(
        (status, str(response.get("description", "")).replace("Successful Response", "Success"))
        for status, response in operation.get("responses", {}).items()
    )
    return ApiOperation(
        method.upper(),
        _TONES.get(method, "neutral"),
        path,
        str(operation.get("summary", "")),
        str(operation.get("description", "")),
        parameters,
        body,
        members,
        responses,
        _command(method, address + path, parameters, _headers(operation), minimal, next(iter(content), None)),
    )


def _headers(operation: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers of an example request: the required ones, and If-Match for a change of an existing record."""
    responses = operation.get("responses", {})
    changes = "428" in responses and "201" not in responses
    headers = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "header"]
    return [
        (header["name"], "*" if header["name"] == "If-Match" else "…")
        for header in headers
        if header.get("required") or (changes and header["name"] == "If-Match")
    ]


def _parameter(document: Mapping[str, Any], parameter: Mapping[str, Any]) -> ApiParameter:
    schema = _resolve(document, parameter.get("schema", {}))
    return ApiParameter(
        parameter["name"],
        parameter["in"],
        _kind(document, schema),
        bool(parameter.get("required")),
        str(parameter.get("description", "")),
        next((str(value) for value in schema.get("examples", ()) if value is not None), None),
    )


def _members(
    document: Mapping[str, Any], schema: Mapping[str, Any], above: str = "", depth: int = 0
) -> Iterator[ApiField]:
    """Generate the fields of an object, each before its nested fields."""
    for alternative in _alternatives(document, schema):
        if alternative.get("type") == "array" and "items" in alternative:
            yield from _members(document, alternative["items"], f"{above}[]", depth)
        required = alternative.get("required", ())
        for name, member in alternative.get("properties", {}).items() if depth < _DEPTH_MAX else ():
            path = f"{above}.{name}" if above else name
            resolved = _resolve(document, member)
            description = str(member.get("description") or resolved.get("description") or "")
            yield ApiField(path, _kind(document, resolved), name in required, description)
            yield from _members(document, resolved, path, depth + 1)


def _alternatives(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas that a value may have, without null."""
    schema = _resolve(document, schema)
    if "properties" in schema or "type" in schema:
        return [schema]
    choices = [_resolve(document, choice) for name in _CHOICES for choice in schema.get(name, ())]
    return [choice for choice in choices if choice.get("type") != "null"]


def _kind(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "type" not in schema and ("anyOf" in schema or "oneOf" in schema):
        kinds = [
            _kind(document, _resolve(document, choice)) for choice in schema.get("anyOf") or schema["oneOf"]
        ]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        kind = f"list of {_kind(document, _resolve(document, schema['items']))}"
    else:
        kind = str(schema.get("format") or schema.get("type") or "any")
    bounds = [schema[name] for name in ("minimum", "maximum") if abs(schema.get(name, inf)) < _BOUND_MAX]
    if bounds:
        kind += " " + "–".join(f"{int(bound) if bound == int(bound) else bound:,}" for bound in bounds)
    if "maxLength" in schema:
        kind += f", up to {schema['maxLength']:,} characters"
    return f"{kind}; up to {schema['maxItems']:,} entries" if "maxItems" in schema else kind


def _command(
    method: str,
    address: str,
    parameters: Sequence[ApiParameter],
    headers: Sequence[tuple[str, str]],
    body: str | None,
    media: str | None,
) -> str:
    """Return the smallest valid request as a curl command."""
    for parameter in parameters:
        if parameter.location == "path" and parameter.sample is not None:
            address = address.replace(f"{{{parameter.name}}}", parameter.sample)
    needed = [parameter for parameter in parameters if parameter.required and parameter.location == "query"]
    query = "&".join(f"{parameter.name}={parameter.sample or '…'}" for parameter in needed)
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
    """Return a value that a schema allows: its own example, or else the simplest one.

    An object has all its fields, or with `needed` the required ones; of fields that exclude each other, the first.
    """
    schema = _resolve(document, schema)
    if schema.get("examples"):
        return schema["examples"][0]
    for name in ("example", "default", "const"):
        if schema.get(name) is not None:
            return schema[name]
    if "enum" in schema:
        return schema["enum"][0]
    if "type" not in schema:
        choices = _alternatives(document, schema)
        return example(document, choices[0], depth + 1, needed=needed) if choices else None
    match schema["type"]:
        case "object":
            known = schema.get("properties", {})
            shown = _example_fields(schema, needed=needed) if depth < _DEPTH_MAX else []
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
            fitting = (sample for sample in _FITTING if re.search(pattern, sample))
            return _TEXTS.get(schema.get("format", "")) or next(fitting, "…")
        case _:
            return None


def _example_fields(schema: Mapping[str, Any], *, needed: bool) -> list[str]:
    """Return the names of the fields in an example of an object."""
    known = list(schema.get("properties", {}))
    one = [set(choice.get("required", ())) for choice in schema.get("oneOf", ())]
    some = [set(choice.get("required", ())) for choice in schema.get("anyOf", ())]
    required = set(schema.get("required", ())).union(*one[:1], *some[:1])
    if needed:
        return [name for name in known if name in required] or known[:1]
    return [name for name in known if name in required or not any(name in names for names in one)]


_FITTING = ("…", "example", "example-1")  # for a string: the first that matches its pattern
_TEXTS = {"date-time": "2026-11-03T14:05:00Z", "date": "2026-11-03", "email": "desk@example.com"}


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a `$ref` refers to."""
    for _ in range(_DEPTH_MAX):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part, {})
        schema = target
    return schema


# Error responses


_PROBLEM_SCHEMAS: Mapping[str, Any] = {
    "Problem": {
        "type": "object",
        "title": "Problem",
        "description": "An error response (RFC 9457).",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "format": "uri", "description": f"{URN} followed by the error code."},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What failed, where, and what to do next."},
            "instance": {"type": "string", "description": "The path of the request."},
            "incident": {"type": "string", "description": "For a 500: the ID of the log entry."},
            "errors": {"type": "array", "items": {"$ref": "#/components/schemas/InvalidField"}},
        },
    },
    "InvalidField": {
        "type": "object",
        "title": "InvalidField",
        "required": ["in", "pointer", "detail"],
        "properties": {
            "in": {"type": "string", "description": "body, query, path, header or cookie."},
            "pointer": {"type": "string", "description": "JSON pointer to the field."},
            "detail": {"type": "string"},
        },
    },
}

_MEANINGS: Mapping[int, str] = {
    400: "The request is malformed: invalid JSON, header or cursor",
    403: "The caller lacks permission, or the request comes from a page of another site",
    404: "The record does not exist",
    409: "The record was changed concurrently, or already exists",
    412: "The record has changed since the version in If-Match",
    413: "The request body or the record is too large",
    415: "The Content-Type is not supported",
    422: "The request is not valid, or its Idempotency-Key was used for another request",
    428: "If-Match is missing",
    500: "Internal error; the log has the details under the incident ID",
    503: "The store is unreachable or overloaded; retry after Retry-After seconds",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the declaration of a route's error responses: `responses=problems(404, 409)`."""
    return {status: _problem_response(status) for status in statuses}


def _problem_response(status: int) -> dict[str, Any]:
    return {
        "description": _MEANINGS.get(status, HTTPStatus(status).phrase),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def declare_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Add the error responses of the request guard and the store to every operation, and replace FastAPI's 422 by ours."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for operations in document.get("paths", {}).values():
        for method, operation in operations.items():
            responses = operation.setdefault("responses", {})
            statuses = {400, 403, 500, 503}
            if operation.get("parameters") or "requestBody" in operation:
                statuses.add(422)
            if method in ("post", "put", "patch", "delete"):
                statuses |= {413, 415}
            for status in sorted(statuses):
                declared = responses.get(str(status), {})
                if not declared or (status == 422 and "application/json" in declared.get("content", {})):
                    responses[str(status)] = _problem_response(status)
            operation["responses"] = {name: responses[name] for name in sorted(responses)}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas.update(_PROBLEM_SCHEMAS)
    return document
