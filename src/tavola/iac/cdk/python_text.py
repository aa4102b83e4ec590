"""Python source text: calls and values, laid out like a formatter would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, Union

WIDTH = 100
_ESCAPES = {'"': '\\"', "'": "'", "{": "{{", "}": "}}"}


@dataclass(frozen=True, slots=True)
class PythonCode:
    """An expression, as source text."""

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
    """Render a text as a Python literal, in double quotes if that needs no more escapes."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in text:
        return f'"{literal[1:-1]}"'
    return literal


def format_string(*parts: str | PythonCode) -> PythonCode:
    """Return an f-string of texts and expressions."""
    rendered = [
        f"{{{part.text}}}"
        if isinstance(part, PythonCode)
        else "".join(_ESCAPES.get(character) or repr(character)[1:-1] for character in part)
        for part in parts
    ]
    return PythonCode(f'f"{"".join(rendered)}"')


def render_assignment(name: str, value: Value, depth: int) -> str:
    """Render an assignment, indented by four spaces per depth."""
    return f"{'    ' * depth}{name} = {_render(value, depth, len(name) + 3)}"


def render_statement(value: Value, depth: int) -> str:
    """Render an expression as a statement."""
    return f"{'    ' * depth}{_render(value, depth, 0)}"


def render_inline(value: Value) -> str:
    """Render a value on one line."""
    match value:
        case str():
            return render_text(value)
        case PythonCode():
            return value.text
        case PythonCall():
            named = (f"{name}={render_inline(member)}" for name, member in value.named.items())
            return f"{value.name}({', '.join([*map(render_inline, value.positional), *named])})"
        case list():
            return f"[{', '.join(map(render_inline, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{render_inline(key)}: {render_inline(member)}' for key, member in value.items())}}}"
        case _:
            return repr(value)


def _render(value: Value, depth: int, before: int) -> str:
    inline = render_inline(value)
    if len(inline) + 4 * depth + before <= WIDTH:
        return inline
    indent, end = "    " * (depth + 1), "    " * depth
    match value:
        case PythonCall() if value.positional or value.named:
            lines = [f"{indent}{_render(member, depth + 1, 1)},\n" for member in value.positional]
            lines += [
                f"{indent}{name}={_render(member, depth + 1, len(name) + 2)},\n"
                for name, member in value.named.items()
            ]
            return f"{value.name}(\n{''.join(lines)}{end})"
        case list() if value:
            lines = [f"{indent}{_render(member, depth + 1, 1)},\n" for member in value]
            return f"[\n{''.join(lines)}{end}]"
        case Mapping() if value:
            lines = []
            for key, member in value.items():
                name = render_inline(key)
                lines.append(f"{indent}{name}: {_render(member, depth + 1, len(name) + 3)},\n")
            return f"{{\n{''.join(lines)}{end}}}"
        case _:
            return inline
