"""Python text: calls and values as source, laid out as a formatter would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, Union

WIDTH = 100
_SIGNS = {'"': '\\"', "'": "'", "{": "{{", "}": "}}"}


@dataclass(frozen=True, slots=True)
class PythonCode:
    """An expression, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A call with positional and named arguments."""

    name: str
    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)


Value: TypeAlias = Union[
    str,
    int,
    float,
    bool,
    PythonCode,
    PythonCall,
    "list[Value]",
    "Mapping[str, Value]",
    "Mapping[PythonCode, Value]",
    None,
]


def render_text(text: str) -> str:
    """Render a text as Python writes it, in double quotes where that needs no escape more."""
    told = repr(text)
    if told[0] == "'" and '"' not in text:
        return f'"{told[1:-1]}"'
    return told


def format_string(*parts: str | PythonCode) -> PythonCode:
    """Return a text of parts, some of which are expressions."""
    told = [
        f"{{{part.text}}}" if isinstance(part, PythonCode) else _escape_format_text(part) for part in parts
    ]
    return PythonCode(f'f"{"".join(told)}"')


def _escape_format_text(text: str) -> str:
    """Render a text that stands beside expressions: a brace of its own is doubled."""
    return "".join(_SIGNS.get(sign) or repr(sign)[1:-1] for sign in text)


def render_assignment(name: str, value: Value, depth: int) -> str:
    """Render an assignment, at a depth of four spaces each."""
    return f"{'    ' * depth}{name} = {_render(value, depth, len(name) + 3)}"


def render_statement(value: Value, depth: int) -> str:
    """Render an expression that stands for itself."""
    return f"{'    ' * depth}{_render(value, depth, 0)}"


def render_inline(value: Value) -> str:
    """Render a value on one line."""
    match value:
        case str():
            return render_text(value)
        case PythonCode():
            return value.text
        case PythonCall():
            named = (f"{name}={render_inline(told)}" for name, told in value.named.items())
            return f"{value.name}({', '.join([*map(render_inline, value.positional), *named])})"
        case list():
            return f"[{', '.join(map(render_inline, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{render_inline(key)}: {render_inline(told)}' for key, told in value.items())}}}"
        case _:
            return repr(value)


def _render(value: Value, depth: int, before: int) -> str:
    one = render_inline(value)
    if len(one) + 4 * depth + before <= WIDTH:
        return one
    lead, end = "    " * (depth + 1), "    " * depth
    match value:
        case PythonCall() if value.positional or value.named:
            lines = [f"{lead}{_render(told, depth + 1, 1)},\n" for told in value.positional]
            lines += [
                f"{lead}{name}={_render(told, depth + 1, len(name) + 2)},\n"
                for name, told in value.named.items()
            ]
            return f"{value.name}(\n{''.join(lines)}{end})"
        case list() if value:
            lines = [f"{lead}{_render(told, depth + 1, 1)},\n" for told in value]
            return f"[\n{''.join(lines)}{end}]"
        case Mapping() if value:
            lines = []
            for key, told in value.items():
                name = render_inline(key)
                lines.append(f"{lead}{name}: {_render(told, depth + 1, len(name) + 3)},\n")
            return f"{{\n{''.join(lines)}{end}}}"
        case _:
            return one
