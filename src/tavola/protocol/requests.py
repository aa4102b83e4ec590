"""Parsing: a JSON body becomes a typed, checked request, or the fault with which AWS responds.

A valid body costs one typed decode and a few comparisons. An invalid one is walked again, slowly, to find the error
that AWS reports first: JSON syntax, then types, then constraints of members, then rules between members.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from threading import Lock
from typing import Any

import msgspec

from tavola.limits import SMALL_REQUEST_BYTES_MAX
from tavola.protocol.coercion import coerce_body
from tavola.protocol.constraints import check_members
from tavola.protocol.faults import Fault, SerializationFault, UnknownOperationFault, ValidationFault
from tavola.protocol.fields import NameInvalid, Shape
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.operations import OPERATIONS, Check, Operation
from tavola.protocol.shapes import StructureNode, describe_shape
from tavola.values import TOO_LARGE

_Decode = Callable[[bytes], Shape]

# More than the largest item can have, even with the smallest values.
_PARTS_WALKED_MAX = 400_000

# Built on first use, 0.2 ms each. Under a lock: msgspec cannot build decoders of one class in two threads at once.
_PARSERS: dict[str, tuple[_Decode, Check]] = {}
_BUILDING = Lock()


def parse(operation: str, body: bytes, wording: MessageStyle = "current") -> Any:
    """Return the request of an operation, checked as far as possible without a table.

    Attribute values are not checked yet: `tavola.values` does that later, and where it finds a wrong JSON type,
    `parse_coerced` produces AWS's error.
    """
    decode, check = _PARSERS.get(operation) or _build_parser(operation)
    if len(body) > SMALL_REQUEST_BYTES_MAX:
        check_body_size(operation, body)
    try:
        request = decode(body)
        check(request, wording)
        if not body.isascii():
            body.decode()  # the decoder does not check the encoding of unknown members
        return request
    except (msgspec.ValidationError, NameInvalid):
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SerializationFault from None
    except Fault:
        check_serialization(operation, body)
        raise
    return parse_coerced(operation, body, wording)


def check_body_size(operation: str, body: bytes) -> None:
    """Refuse a body that is longer than any valid request of its operation, before it is decoded."""
    bytes_max = _find_operation(operation).body_bytes_max
    if len(body) <= bytes_max:
        return
    if operation == "PutItem":
        raise ValidationFault(TOO_LARGE)
    raise ValidationFault(f"The request has {len(body)} bytes; {operation} accepts {bytes_max}")


def parse_coerced(operation: str, body: bytes, wording: MessageStyle = "current") -> Any:
    """Return the request as `parse` does, with AWS's type conversions applied everywhere, in values too."""
    _check_walkable(body)
    spec = _find_operation(operation)
    structure = describe_shape(spec.request)
    if spec.check_body is not None:
        spec.check_body(body)
    data = coerce_body(structure, body)
    check_members(operation, wording, structure, data)
    try:
        request = msgspec.convert(data, spec.request)
    except msgspec.ValidationError:
        raise SerializationFault from None
    spec.check(request, wording)
    return request


def describe_request(operation: str) -> StructureNode:
    """Return the tree of an operation's request type."""
    return describe_shape(_find_operation(operation).request)


def _build_parser(name: str) -> tuple[_Decode, Check]:
    operation = _find_operation(name)
    with _BUILDING:
        parser = _PARSERS[name] = msgspec.json.Decoder(operation.request).decode, operation.check
    return parser


def check_serialization(operation: str, body: bytes) -> None:
    """Raise AWS's SerializationFault if the body does not deserialize.

    Called before another error is raised, because AWS reports a wrong type anywhere in a body first.
    """
    _check_walkable(body)
    coerce_body(describe_shape(_find_operation(operation).request), body)


def _check_walkable(body: bytes) -> None:
    """Reject an invalid body with so many parts that finding AWS's message would block other requests."""
    if body.count(b",") + body.count(b"{") > _PARTS_WALKED_MAX:
        raise ValidationFault(
            "The request is not valid, and has too many parts to locate the error; send fewer at a time"
        )


def _find_operation(name: str) -> Operation:
    operation = OPERATIONS.get(name)
    if operation is None:
        raise unknown_operation(name)
    return operation


def unknown_operation(operation: str) -> UnknownOperationFault:
    """Return the fault for an operation that does not exist."""
    near = get_close_matches(operation, OPERATIONS, n=1)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    return UnknownOperationFault(f"DynamoDB has no operation {operation}{suggestion}")
