"""Render blocks and values as HCL in the layout of `terraform fmt`.

A text is quoted and stands for itself: `${` and `%{` in it are escaped. Only an `HclExpression` is evaluated by Terraform.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CLOSED = re.compile(r"\{[\w.:/ -]*\}")
_WIDTH = 100  # of a list on one line


@dataclass(frozen=True, slots=True)
class HclExpression:
    """Something that Terraform evaluates, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class HclCall:
    """A function of one value, such as jsonencode."""

    name: str
    value: Value


Value: TypeAlias = Union[
    str,
    int,
    bool,
    HclExpression,
    HclCall,
    "list[Value]",
    "Mapping[str, Value]",
    "Mapping[HclExpression, Value]",
]


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """A block: its kind, its labels, and its entries in order; None is an empty line. Remarks become comments above it."""

    kind: str
    labels: tuple[str, ...]
    body: tuple[Entry, ...]
    remarks: tuple[str, ...] = ()


Entry: TypeAlias = "tuple[str, Value] | OutputBlock | None"


def render_blocks(blocks: tuple[OutputBlock, ...] | list[OutputBlock]) -> str:
    """Render blocks, an empty line between them."""
    return "\n\n".join("\n".join(_block(block, 0)) for block in blocks) + "\n"


def quote(text: str) -> str:
    """Render a text in quotes so that Terraform reads it back unchanged, including `${` and `%{`."""
    quoted: list[str] = []
    for position, character in enumerate(text):
        if character in "$%" and text[position + 1 : position + 2] == "{":
            # Double the character where that is legible and every parser agrees: before a complete `{…}`, and not after the same character.
            legible = _CLOSED.match(text, position + 1) and text[max(position - 1, 0) : position] != character
            quoted.append(character * 2 if legible else f"\\u{ord(character):04x}")
        elif character in _ESCAPES:
            quoted.append(_ESCAPES[character])
        elif character.isprintable():
            quoted.append(character)
        else:
            code = ord(character)
            quoted.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
    return f'"{"".join(quoted)}"'


def prefix_name(text: str) -> HclExpression:
    """Return a name with the module's prefix variable before it."""
    return HclExpression(f'"${{var.prefix}}{quote(text)[1:-1]}"')


def append_text(expression: HclExpression, text: str) -> HclExpression:
    """Return an expression followed by a text, as one text."""
    return HclExpression(f'"${{{expression.text}}}{quote(text)[1:-1]}"')


def _block(block: OutputBlock, depth: int) -> Iterator[str]:
    lead = "  " * depth
    head = " ".join([block.kind, *(quote(label) for label in block.labels)])
    yield from (f"{lead}# {remark}" for remark in block.remarks)
    if not block.body:
        yield f"{lead}{head} {{}}"
        return
    yield f"{lead}{head} {{"
    yield from _body(block.body, depth + 1)
    yield f"{lead}}}"


def _body(body: tuple[Entry, ...], depth: int) -> Iterator[str]:
    """Yield the lines of a block's entries; a nested block has empty lines around it."""
    attributes: list[tuple[str, list[str]]] = []
    before: Entry | None = None
    for position, entry in enumerate(body):
        if isinstance(entry, tuple):
            if isinstance(before, OutputBlock):
                yield ""
            attributes.append((entry[0], list(_value(entry[1], depth))))
        else:
            yield from _align(attributes, depth)
            attributes = []
            if position and (entry is None or before is not None):
                yield ""
            if isinstance(entry, OutputBlock):
                yield from _block(entry, depth)
        before = entry
    yield from _align(attributes, depth)


def _align(attributes: list[tuple[str, list[str]]], depth: int) -> Iterator[str]:
    """Yield attributes with their equals signs aligned; a value of several lines ends the aligned column."""
    lead = "  " * depth
    run: list[tuple[str, str]] = []
    for name, lines in attributes:
        if len(lines) == 1:
            run.append((name, lines[0]))
            continue
        yield from _column(run, lead)
        run = []
        yield f"{lead}{name} = {lines[0]}"
        yield from lines[1:]
    yield from _column(run, lead)


def _column(run: list[tuple[str, str]], lead: str) -> Iterator[str]:
    width = max((len(name) for name, _ in run), default=0)
    for name, value in run:
        yield f"{lead}{name:<{width}} = {value}"


def _value(value: Value, depth: int) -> Iterator[str]:
    """Yield the lines of a value; the first has no indentation, because it follows a name."""
    match value:
        case bool():
            yield "true" if value else "false"
        case int():
            yield str(value)
        case str():
            yield quote(value)
        case HclExpression():
            yield value.text
        case HclCall():
            first, *rest = _value(value.value, depth)
            if rest:
                yield f"{value.name}({first}"
                yield from rest[:-1]
                yield f"{rest[-1]})"
            else:
                yield f"{value.name}({first})"
        case list():
            yield from _list(value, depth)
        case _:
            yield from _object(value, depth)


def _list(values: list[Value], depth: int) -> Iterator[str]:
    parts = [list(_value(value, depth + 1)) for value in values]
    inline = f"[{', '.join(part[0] for part in parts)}]"
    if all(len(part) == 1 for part in parts) and (len(parts) < 2 or len(inline) + 2 * depth <= _WIDTH):
        yield inline
        return
    yield "["
    for first, *rest in parts:
        lines = [f"{'  ' * (depth + 1)}{first}", *rest]
        yield from lines[:-1]
        yield f"{lines[-1]},"
    yield f"{'  ' * depth}]"


def _object(value: Mapping[str, Value] | Mapping[HclExpression, Value], depth: int) -> Iterator[str]:
    if not value:
        yield "{}"
        return
    members = [(_key(name), list(_value(member, depth + 1))) for name, member in value.items()]
    yield "{"
    yield from _align(members, depth + 1)
    yield f"{'  ' * depth}}}"


def _key(name: str | HclExpression) -> str:
    """Render an object's key: plain if it is an identifier, else in quotes."""
    if isinstance(name, HclExpression):
        return name.text
    plain = name.isidentifier() and name.isascii() and name not in ("null", "true", "false", "for")
    return name if plain else quote(name)
