"""Templates of HCL: texts with expressions in them, taken apart where the grammar leaves them whole, as in heredocs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tavola.iac.formats.hcl_functions import UnknownAtImport

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_MARK = re.compile(r"\$\$\{|%%\{|\$\{|%\{")
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_EXPRESSIONS_MAX = 400


@dataclass(frozen=True, slots=True)
class TemplateExpression:
    """An expression that stands in a text."""

    text: str


def unescape(text: str) -> str:
    """Return a quoted text without its escapes."""
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(found: re.Match[str]) -> str:
    told = found[1]
    if told[0] in "uU" and len(told) > 1:
        code = int(told[1:], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise UnknownAtImport
        return chr(code)
    return _ESCAPES.get(told, found[0])


def strip_heredoc(raw: str, *, trim: bool) -> str:
    """Return what stands between the marks of a heredoc; `trim` takes off what all lines are indented by."""
    lines = raw.splitlines()[1:-1]
    if trim:
        margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        lines = [line[margin:] for line in lines]
    return "\n".join(lines)


def template_parts(raw: str) -> Iterator[str | TemplateExpression]:
    """Give the literal texts of a template and its expressions, in their order."""
    at = count = 0
    while (mark := _MARK.search(raw, at)) is not None:
        yield raw[at : mark.start()]
        if mark[0] in ("$${", "%%{"):
            yield mark[0][1:]
            at = mark.end()
            continue
        count += 1
        if mark[0] == "%{" or count > _EXPRESSIONS_MAX:
            raise UnknownAtImport  # a loop or a condition over the text
        end = _end(raw, mark.end())
        yield TemplateExpression(raw[mark.end() : end].strip())
        at = end + 1
    yield raw[at:]


def _end(raw: str, at: int) -> int:
    """Return where the brace is that closes an expression."""
    depth = 1
    while (found := _INSIDE.search(raw, at)) is not None:
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.start()
        at = found.end()
    raise UnknownAtImport
