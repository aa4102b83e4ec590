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
_WIDTH = 100  # of a list that stands on one line


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
    """A block: its kind, its labels, and what it holds in order; None is an empty line. What is remarked stands above it."""

    kind: str
    labels: tuple[str, ...]
    body: tuple[Entry, ...]
    remarks: tuple[str, ...] = ()


Entry: TypeAlias = "tuple[str, Value] | OutputBlock | None"


def render_blocks(blocks: tuple[OutputBlock, ...] | list[OutputBlock]) -> str:
    """Render blocks, an empty line between them."""
    return "\n\n".join("\n".join(_block(block, 0)) for block in blocks) + "\n"


def quote(text: str) -> str:
    """Render a text in quotes so that Terraform reads it back as it is, `${` and `%{` too."""
    told: list[str] = []
    for place, sign in enumerate(text):
        if sign in "$%" and text[place + 1 : place + 2] == "{":
            # Doubled where that is legible and every parser reads it so: before a whole `{…}`, and after no sign like it.
            legible = _CLOSED.match(text, place + 1) and text[max(place - 1, 0) : place] != sign
            told.append(sign * 2 if legible else f"\\u{ord(sign):04x}")
        elif sign in _ESCAPES:
            told.append(_ESCAPES[sign])
        elif sign.isprintable():
            told.append(sign)
        else:
            code = ord(sign)
            told.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
    return f'"{"".join(told)}"'


def prefix_name(text: str) -> HclExpression:
    """Return a name behind the prefix that whoever applies the module gives all of them."""
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
    """Give the lines of a block; a block in it has empty lines around it."""
    chain: list[tuple[str, list[str]]] = []
    before: Entry | None = None
    for place, entry in enumerate(body):
        if isinstance(entry, tuple):
            if isinstance(before, OutputBlock):
                yield ""
            chain.append((entry[0], list(_value(entry[1], depth))))
        else:
            yield from _aligned(chain, depth)
            chain = []
            if place and (entry is None or before is not None):
                yield ""
            if isinstance(entry, OutputBlock):
                yield from _block(entry, depth)
        before = entry
    yield from _aligned(chain, depth)


def _aligned(chain: list[tuple[str, list[str]]], depth: int) -> Iterator[str]:
    """Give attributes with their signs in one column; one of several lines stands for itself, and ends a column."""
    lead = "  " * depth
    run: list[tuple[str, str]] = []
    for name, lines in chain:
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
    """Give the lines of a value; the first has no indentation, as it follows a name."""
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
    one = f"[{', '.join(part[0] for part in parts)}]"
    if all(len(part) == 1 for part in parts) and (len(parts) < 2 or len(one) + 2 * depth <= _WIDTH):
        yield one
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
    chain = [(_key(name), list(_value(told, depth + 1))) for name, told in value.items()]
    yield "{"
    yield from _aligned(chain, depth + 1)
    yield f"{'  ' * depth}}}"


def _key(name: str | HclExpression) -> str:
    """Render a key of an object: plain where it is a word, and in quotes otherwise."""
    if isinstance(name, HclExpression):
        return name.text
    plain = name.isidentifier() and name.isascii() and name not in ("null", "true", "false", "for")
    return name if plain else quote(name)
