"""Segments: large JSON texts of attribute values are decoded in many small pieces.

The problem. A decoder written in C is fast but cannot pause: a list of 400,000 elements, which one item may have, takes 80 ms to
decode and 200 ms to admit. A server that works on one thread would serve nothing else meanwhile.

The idea. Find the containers that are large, cut their text at the commas between members into segments of some kilobytes, and
decode (and admit, and encode) one segment after the other. What is left of the text when the contents of large containers are
taken out is small, and is decoded as a whole:

    text      {"TableName":"T","Item":{"pk":{"S":"a"},"list":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}, … ]}}}
    skeleton  {"TableName":"T","Item":{"pk":{"S":"a"},"list":{"L":[]}}}
    segments                                              [{"N":"1"},{"N":"2"}]  [{"N":"3"}, … ]  …

Containers are found by scanning the text for strings, brackets and commas. A run of simple members is skipped by one match of
a regular expression, so an ordinary list costs about 0.1 µs for each element; deep structures cost more. A container in a large
container may be large too; then its parent keeps a member without content, and all ancestors of a large container are large.

Why it is safe. The scan checks neither commas nor numbers nor names: every byte of the text is in the skeleton or in a segment,
and each of those is decoded by the ordinary decoder. A text that was cut in the wrong place, such as in a string, does not decode.

Everything here is a generator (`Steps`): it pauses after each small piece of work and returns its result at the end. It costs
two to three times the time of the ordinary way, so callers use it for large texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from tavola.limits import ADMITTED_BYTES_MAX, ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from tavola.values.admission import (
    TOO_DEEP,
    TOO_LARGE,
    AdmittedList,
    AdmittedMap,
    admit_elements,
    admit_members,
    admit_set,
    admitted_size,
    text_size,
)
from tavola.values.value import Item, Value, ValueMalformed, ValueRefused, decode_item

SEGMENT_BYTES = 4 * 1024
"""The least size of a segment, and of a container that is cut; about a third of a millisecond of work."""

LARGE_ITEM_BYTES = 32 * 1024
"""Stored items that are longer are decoded in segments where other requests wait."""

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that pauses now and then, and returns its result at the end."""

Kind = Any
"""What a container holds: one of the constants below, None if it is not cut, or a node of a request (see `enter`)."""

ATTRIBUTES = "attributes"  # a map of names to attribute values
VALUE = "value"  # one attribute value: a tag with its content
ELEMENTS = "elements"  # a list of attribute values
_KIND_OF_TAG: dict[bytes | None, Kind] = {
    b'"M"': ATTRIBUTES,
    b'"L"': ELEMENTS,
    b'"SS"': "SS",
    b'"NS"': "NS",
    b'"BS"': "BS",
}
_CUT = frozenset(_KIND_OF_TAG.values())
_LEVELS_MAX = 2 * NESTING_LEVELS_MAX + 32  # of brackets
_TOKENS_PER_STEP = 32
_RELEASED_PER_STEP = 2_000
_STRING_CHARACTERS_MAX = 6 * ITEM_BYTES_MAX + 2  # each byte may be written as an escape of six
_UNCUT_TOKENS_MAX = 30_000

# A run is some members that are not deep, each followed by a comma. Repetitions are possessive and bounded: they do not
# backtrack, and one match is short, whatever the text is. A long string is in no run, since alternatives would read it again.
_SCALAR = rb'(?:"[^"\\]{0,256}+(?:\\.[^"\\]{0,256}+){0,64}+"|true|false|null)'


def _value_pattern(inner: bytes, members_max: int) -> bytes:
    """Return the pattern of an attribute value whose content is a scalar, or a container of scalars or of `inner`."""
    names = {b"s": _SCALAR, b"i": inner, b"n": members_max}
    members = rb"\{(?:\s*+%(s)b\s*+:\s*+%(i)b\s*+,?){0,%(n)d}+\s*+\}" % names
    elements = rb"\[(?:\s*+%(i)b\s*+,?){0,%(n)d}+\s*+\]" % names
    return rb"\{\s*+%b\s*+:\s*+(?:%b|%b|%b)\s*+\}" % (_SCALAR, _SCALAR, members, elements)


_FLAT = _value_pattern(_SCALAR, 32)
_WIDE = _value_pattern(rb"(?:%b|%b)" % (_SCALAR, _FLAT), 64)
_DEEP = _value_pattern(_value_pattern(_value_pattern(_value_pattern(_SCALAR, 6), 6), 6), 6)
_RUN = rb"(?P<run>(?:(?:%b\s*+:\s*+)?+(?:%b|%b|%b)\s*+,\s*+){1,32}+)" % (_SCALAR, _SCALAR, _WIDE, _DEEP)
_REST_OF_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+){0,512}+(?P<end>"?+)'
_TOKEN = rb'"%b|[{}\[\],]|[^"{}\[\],]{16,65536}+' % _REST_OF_STRING
_find_run_or_token = re.compile(_RUN + rb"|" + _TOKEN, re.DOTALL).search
_find_token = re.compile(_TOKEN, re.DOTALL).search
_find_rest = re.compile(_REST_OF_STRING, re.DOTALL).match

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class PartsExceeded(ValueMalformed):
    """A text with too many parts outside of attribute values."""


class LargeContainer:
    """A container whose content is cut: where it is, and its parts."""

    __slots__ = ("end", "kind", "level", "parts", "path", "start")

    def __init__(self, kind: Kind, start: int, level: int, path: tuple[str | int, ...]) -> None:
        self.kind = kind
        self.start = start  # of the content, after the bracket
        self.end = -1  # of the content, before the bracket
        self.level = level  # of containers around its members, as the limit on nesting counts them
        self.path = path  # from the root of the text: names of members and positions in lists
        self.parts: list[
            tuple[int, int, LargeContainer | None]
        ] = []  # some members, or one that contains a large container


Part = tuple[int, int, LargeContainer | None]
"""Some members with the comma after them, from where to where in the text; or one that contains a large container."""


class _Frame:
    """An open container of the scan."""

    __slots__ = (
        "closing",
        "cut_at",
        "cuts",
        "key",
        "kind",
        "large",
        "level",
        "member_at",
        "nested",
        "position",
        "start",
    )

    def __init__(self, kind: Kind, closing: bytes, start: int, level: int) -> None:
        self.kind = kind
        self.cuts = isinstance(kind, str) and kind in _CUT  # its content is cut if it is large
        self.closing = closing
        self.start = self.cut_at = self.member_at = start
        self.level = level
        self.key: bytes | None = None  # of the current member, in an object
        self.position = 0  # of the current member
        self.large: LargeContainer | None = None
        self.nested: LargeContainer | None = None  # in the current member


def find_large_containers(
    text: bytes, root: Kind, enter: Callable[[Kind, bytes | None], Kind] | None = None
) -> Steps[list[LargeContainer]]:
    """Return the outermost large containers of attribute values in a JSON object.

    `root` is the object's kind. `enter` returns the kind of a member's content for kinds other than those of attribute
    values. Raises ValueMalformed if the brackets do not match, and PartsExceeded if there is too much that cannot be cut; other
    errors are found when the parts are decoded.
    """
    found: list[LargeContainer] = []
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] != b"{":
        raise ValueMalformed("the text is not an object")
    at += 1
    frame = _Frame(root, b"}", at, 0)
    stack = [frame]
    tokens = uncut = 0
    while stack:
        tokens += 1
        if tokens % _TOKENS_PER_STEP == 0:
            yield
        # The positions of members count only outside of attribute values; a run would hide them.
        find = _find_run_or_token if frame.kind is None or isinstance(frame.kind, str) else _find_token
        match = find(text, at)
        if match is None:
            raise ValueMalformed("a bracket is not closed")
        if not frame.cuts and frame.kind != VALUE:
            uncut += 1
            if uncut > _UNCUT_TOKENS_MAX:
                raise PartsExceeded("the text has too many parts")
        start, at = match.span()
        token = text[start : start + 1]
        if match.lastgroup == "run":
            frame.key = None
            _end_member(stack, frame, at, found)
        elif token == b'"':
            if not match["end"]:
                at = yield from _skip_string(text, at)
            if at - start > _STRING_CHARACTERS_MAX:
                raise ValueRefused(TOO_LARGE, bare=True)
            if frame.key is None and frame.closing == b"}":
                frame.key = text[start:at]
        elif token == b",":
            frame.key = None
            frame.position += 1
            _end_member(stack, frame, at, found)
        elif token in (b"{", b"["):
            if len(stack) >= _LEVELS_MAX:
                raise ValueRefused(TOO_DEEP, bare=True)
            frame = _open(frame, token, at, enter)
            stack.append(frame)
        elif token in (b"}", b"]"):
            if token != frame.closing:
                raise ValueMalformed("the brackets do not match")
            if frame.large is None and frame.cuts and start - frame.cut_at >= SEGMENT_BYTES:
                _make_large(stack, found)
            if frame.large is not None:
                _close(frame, text, start)
            stack.pop()
            if stack:
                frame = stack[-1]
    if text[at:].strip():
        raise ValueMalformed("the text continues after the object")
    return found


def _skip_string(text: bytes, at: int) -> Steps[int]:
    """Return the end of a string that continues; pauses, because it may have a million escapes."""
    while True:
        match = _find_rest(text, at)
        if match is None or match.end() == at:
            raise ValueMalformed("a string is not closed")
        at = match.end()
        if match["end"]:
            return at
        yield


def _open(frame: _Frame, token: bytes, at: int, enter: Callable[[Kind, bytes | None], Kind] | None) -> _Frame:
    """Return the frame of a container that opens in another one."""
    kind = _enter(frame, enter)
    opened = _Frame(kind, b"}" if token == b"{" else b"]", at, frame.level)
    if opened.cuts and (token == b"{") != (kind == ATTRIBUTES):
        opened.kind, opened.cuts = (
            None,
            False,
        )  # a wrong type, which is found when the text around it is decoded
    elif opened.cuts and frame.kind == VALUE:
        opened.level += 1
    return opened


def _enter(frame: _Frame, enter: Callable[[Kind, bytes | None], Kind] | None) -> Kind:
    """Return the kind of a container that opens in a frame."""
    kind = frame.kind
    if kind in (ATTRIBUTES, ELEMENTS):
        return VALUE
    if kind == VALUE:
        return _KIND_OF_TAG.get(frame.key)
    if kind is None or enter is None or isinstance(kind, str):
        return None
    return enter(kind, frame.key)


def _end_member(stack: list[_Frame], frame: _Frame, after: int, found: list[LargeContainer]) -> None:
    """Cut after a member, or after a run of them, if what was not cut yet is long or contains a large container."""
    if frame.nested is not None:
        assert frame.large is not None, "ancestors of a large container are large"
        frame.large.parts.append((frame.cut_at, after, frame.nested))
        frame.nested = None
        frame.cut_at = after
    elif after - frame.cut_at >= SEGMENT_BYTES and frame.cuts:
        _make_large(stack, found)
        large = frame.large
        assert large is not None, "it was made large"
        large.parts.append((frame.cut_at, after, None))
        frame.cut_at = after
    frame.member_at = after


def _make_large(stack: list[_Frame], found: list[LargeContainer]) -> None:
    """Make the innermost container and all its ancestors that hold attribute values large."""
    parent: _Frame | None = None
    for frame in stack:
        if not frame.cuts:
            continue
        large = frame.large
        if large is None:
            path = _path_of(stack[: stack.index(frame)]) if parent is None else ()
            large = frame.large = LargeContainer(frame.kind, frame.start, frame.level, path)
            if parent is None:
                found.append(large)
        if parent is not None and parent.nested is None:
            assert parent.large is not None, "parents are made large first"
            if parent.member_at > parent.cut_at:
                parent.large.parts.append((parent.cut_at, parent.member_at, None))
                parent.cut_at = parent.member_at
            parent.nested = large
        parent = frame


def _path_of(frames: list[_Frame]) -> tuple[str | int, ...]:
    path: list[str | int] = []
    for frame in frames:
        if frame.closing == b"]":
            path.append(frame.position)
        elif frame.key is None:
            raise ValueMalformed("a member has no name")
        else:
            try:
                path.append(_decode(frame.key))
            except msgspec.DecodeError as error:
                raise ValueMalformed("a name is not valid") from error
    return tuple(path)


def _close(frame: _Frame, text: bytes, end: int) -> None:
    """Add the last part of a large container."""
    large = frame.large
    assert large is not None, "only large containers are closed"
    large.end = end
    # Every part before this one ended with a comma.
    if not text[frame.cut_at : end].strip():
        raise ValueMalformed("a comma is followed by no member")
    large.parts.append((frame.cut_at, end, frame.nested))


def remove_contents(text: bytes, containers: list[LargeContainer]) -> bytes:
    """Return the text with large containers left empty."""
    pieces: list[bytes] = []
    at = 0
    for large in containers:
        pieces.append(text[at : large.start])
        at = large.end
    pieces.append(text[at:])
    return b"".join(pieces)


def admit_container(text: bytes, large: LargeContainer) -> Steps[AdmittedList | AdmittedMap]:
    """Return the content of a large container: checked, made canonical, measured and encoded.

    Raises what `admit_item` raises; a text that does not decode, or that has a name twice, is ValueMalformed.
    """
    return (yield from _read_container(text, large, admit=True))


def _read_container(text: bytes, large: LargeContainer, *, admit: bool) -> Steps[AdmittedList | AdmittedMap]:
    is_map = large.kind == ATTRIBUTES
    if large.level > NESTING_LEVELS_MAX:
        raise ValueRefused(TOO_DEEP, bare=True)
    content: Any
    if admit:
        content = AdmittedMap() if is_map else AdmittedList()
    else:
        content = {} if is_map else []
    encoded: list[bytes] = []
    is_set = large.kind not in (ATTRIBUTES, ELEMENTS)
    size = 0
    for part in large.parts:
        nested = part[2]
        members = _decode_part(text, large, part)
        added = len(members)
        if nested is not None:
            size += yield from _read_nested(text, members, nested, admit=admit)
        elif admit and is_set:
            size += admit_set(large.kind, members)
        elif admit:
            size += admit_members(members, large.level) if is_map else admit_elements(members, large.level)
        if size > ADMITTED_BYTES_MAX:
            yield from release_in_steps(content)
            raise ValueRefused(TOO_LARGE, bare=True)
        if admit and not is_set:
            encoded.append(_encode_members(members, nested))
        if is_map:
            before = len(content)
            content.update(members)
            if len(content) != before + added:
                raise ValueMalformed("a name appears twice")
        else:
            content.extend(members)
        yield
    if admit:
        if is_set:
            if large.kind != "NS" or len(set(content)) != len(content):
                size = admit_set(large.kind, content)  # sorts, and refuses duplicates
            encoded = [_encode(content)[1:-1]]
        content.size = size
        content.data = (b"{%b}" if is_map else b"[%b]") % b",".join(encoded)
    return content  # type: ignore[no-any-return]  # one of the two


def _decode_part(text: bytes, large: LargeContainer, part: Part) -> Any:
    """Return the members in a part of a container; a nested container is left empty."""
    start, end, nested = part
    piece = text[start:end] if nested is None else text[start : nested.start] + text[nested.end : end]
    if end != large.end:
        piece = piece.rstrip()[:-1]  # the comma before the next part
    try:
        members = _decode((b"{%b}" if large.kind == ATTRIBUTES else b"[%b]") % piece)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueMalformed("the text is not valid JSON") from error
    if not members:
        raise ValueMalformed("a comma is followed by no member")
    return members


def _read_nested(text: bytes, members: Any, nested: LargeContainer, *, admit: bool) -> Steps[int]:
    """Fill the nested container of the only member in a part; return the bytes that the member counts for."""
    size = 0
    if type(members) is dict:
        ((name, value),) = members.items()
        size += text_size(name)
    else:
        (value,) = members
    if type(value) is not dict or len(value) != 1:
        raise ValueMalformed("the value of a large container has other members")
    ((tag, content),) = value.items()
    if len(content) != 0:
        raise ValueMalformed("a name appears twice")
    inner = yield from _read_container(text, nested, admit=admit)
    value[tag] = inner
    return size + admitted_size(tag, inner) if admit else size


def decode_item_in_steps(data: bytes) -> Steps[Item]:
    """Return a stored item; pauses while it decodes a large one."""
    if len(data) < LARGE_ITEM_BYTES:
        return decode_item(data)
    containers = yield from find_large_containers(data, ATTRIBUTES)
    if not containers:
        return decode_item(data)
    if not containers[0].path:
        (root,) = containers
        content = yield from _read_container(data, root, admit=False)
        return content  # type: ignore[return-value]  # of a map
    raise AssertionError("the item itself is the outermost container")


def release_in_steps(content: Any) -> Steps[None]:
    """Empty a large list or map that is not used any more; freeing a million objects at once would take 20 ms."""
    if type(content) is dict or type(content) is AdmittedMap:
        while content:
            _, value = content.popitem()
            if type(value) is dict:
                yield from _release_value(value)
            if len(content) % _RELEASED_PER_STEP == 0:
                yield
    else:
        while content:
            if type(content[-1]) is dict and len(content[-1]) == 1:
                yield from _release_value(content[-1])
            del content[-_RELEASED_PER_STEP:]
            yield


def _release_value(value: Any) -> Steps[None]:
    for inner in value.values():
        if isinstance(inner, list | dict) and len(inner) > _RELEASED_PER_STEP:
            yield from release_in_steps(inner)


def _encode_members(members: Any, nested: LargeContainer | None) -> bytes:
    """Return the members of a part as JSON, without brackets; the content of a nested container is encoded already."""
    if nested is not None and type(members) is dict:
        members = {name: _with_encoded_content(value) for name, value in members.items()}
    elif nested is not None:
        members = [_with_encoded_content(value) for value in members]
    return _encode(members)[1:-1]


def _with_encoded_content(value: Value) -> dict[str, msgspec.Raw]:
    return {tag: msgspec.Raw(content.data) for tag, content in value.items()}
