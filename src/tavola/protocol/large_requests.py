"""Parsing large bodies in steps, for a server that serves others meanwhile; `requests` parses the rest.

A body is decoded in one piece if it has few parts and less than half a megabyte. Otherwise the contents of large items and values are taken out, what is
left (the skeleton) is parsed as a request, and the contents are decoded, admitted and put back one segment after the other;
see `tavola.values.segments`. The result is the request that `parse` returns, with its large values admitted.

A skeleton that is still large has thousands of names, keys or requests, more than AWS allows, and is refused. So is a body
with a wrong JSON type in a large value: finding the message that AWS has for it would take a walk through the whole body.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.protocol.faults import SerializationFault, ValidationFault
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.requests import check_body_size, describe_request, parse
from tavola.protocol.shapes import ATTRIBUTE_VALUE, ListNode, MapNode, Node, StructureNode
from tavola.values import (
    ATTRIBUTES,
    VALUE,
    PartsExceeded,
    Steps,
    ValueMalformed,
    admit_container,
    find_large_containers,
    remove_contents,
)

LARGE_BODY_BYTES = 16 * 1024
"""Bodies that are longer may take more than a slice of time to parse."""

_PARTS_PARSED_MAX = 1_000  # decoded and admitted in half a millisecond
_BYTES_PARSED_MAX = 512 * 1024  # however few parts; longer than any string but those in large values
_SKELETON_PARTS_MAX = 10_000
_COUNTED_BYTES = 1024 * 1024


def parse_in_steps(operation: str, body: bytes, wording: MessageStyle, contents: list[Any]) -> Steps[Any]:
    """Return what `parse` returns, or raise what it raises; pauses while it parses a body with many parts.

    Adds the large lists and maps of the request to `contents`, to be released in steps. Raises ValueRefused if a large value is
    refused.
    """
    check_body_size(operation, body)
    if (yield from _count_parts(body)) <= _PARTS_PARSED_MAX and len(body) <= _BYTES_PARSED_MAX:
        return parse(operation, body, wording)
    try:
        containers = yield from find_large_containers(body, describe_request(operation), _enter)
        skeleton = remove_contents(body, containers)
        if len(skeleton) > _BYTES_PARSED_MAX or _parts_in(skeleton, 0, len(skeleton)) > _SKELETON_PARTS_MAX:
            raise PartsExceeded
        request = parse(operation, skeleton, wording)
        for large in containers:
            content = yield from admit_container(body, large)
            contents.append(content)
            _put_back(request, large.path, content)
    except PartsExceeded as exceeded:
        text = f"The request has too many parts for {operation}; send fewer at a time"
        raise ValidationFault(text) from exceeded
    except ValueMalformed as malformed:
        raise SerializationFault(str(malformed)) from malformed
    return request


def _count_parts(body: bytes) -> Steps[int]:
    """Return about how many names and values a body has; characters in strings count as well."""
    parts = 0
    for start in range(0, len(body), _COUNTED_BYTES):
        parts += _parts_in(body, start, start + _COUNTED_BYTES)
        yield
    return parts


def _parts_in(body: bytes, start: int, end: int) -> int:
    return body.count(b",", start, end) + body.count(b":", start, end)


def _enter(node: Node, key: bytes | None) -> Any:
    """Return the kind of a container in a request, for `find_large_containers`."""
    inner: Node | None = None
    if isinstance(node, ListNode):
        inner = node.element
    elif isinstance(node, MapNode):
        inner = node.value
    elif isinstance(node, StructureNode) and key is not None:
        member = node.members.get(key[1:-1].decode("latin-1"))
        inner = None if member is None else member.node
    if inner is ATTRIBUTE_VALUE:
        return VALUE
    if isinstance(inner, MapNode) and inner.value is ATTRIBUTE_VALUE:
        return ATTRIBUTES
    return inner


def _put_back(request: Any, path: tuple[str | int, ...], content: Any) -> None:
    """Set the member of a request at a path of AWS's names, which was left empty."""
    *parents, last = path
    try:
        target = request
        for step in parents:
            target = _member(target, step)
        if len(_member(target, last)) != 0:
            raise ValueMalformed("a name appears twice")
        if isinstance(target, msgspec.Struct):
            msgspec.structs.force_setattr(target, _attribute_name(target, last), content)
        else:
            target[last] = content
    except (
        LookupError,
        TypeError,
        AttributeError,
    ) as error:  # the same name twice, with something else the second time
        raise ValueMalformed("a name appears twice") from error


def _member(target: Any, step: str | int) -> Any:
    if isinstance(target, msgspec.Struct):
        return getattr(target, _attribute_name(target, step))
    return target[step]


def _attribute_name(target: msgspec.Struct, name: str | int) -> str:
    names: dict[str | int, str] = dict(
        zip(target.__struct_encode_fields__, target.__struct_fields__, strict=True)
    )
    return names[name]
