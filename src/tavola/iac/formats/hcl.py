"""Parse Terraform's HCL and evaluate its expressions as far as the files determine them.

Variables have their defaults. What only the deployment knows stays as written: `${data.aws_region.current.name}`. python-hcl2 parses; the tree is
evaluated here, because its own output is text again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tavola.iac.errors import MissingLibrary
from tavola.iac.formats.hcl_functions import UnknownAtImport, call_function, check_size
from tavola.iac.formats.import_result import FormatError
from tavola.iac.formats.source_values import Unresolved, as_text_part, is_resolved, join_parts

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_MARK = re.compile(r"\$\$\{|%%\{|\$\{|%\{")
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_EXPRESSIONS_MAX = 400


@dataclass(frozen=True, slots=True)
class TemplateExpression:
    """An expression inside a template text."""

    text: str


def unescape(text: str) -> str:
    """Return a quoted text without its escapes."""
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "uU" and len(escape) > 1:
        code = int(escape[1:], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise UnknownAtImport
        return chr(code)
    return _ESCAPES.get(escape, match[0])


def strip_heredoc(raw: str, *, trim: bool) -> str:
    """Return the text of a heredoc; `trim` removes the indentation that all lines share."""
    lines = raw.splitlines()[1:-1]
    if trim:
        margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        lines = [line[margin:] for line in lines]
    return "\n".join(lines)


def template_parts(raw: str) -> Iterator[str | TemplateExpression]:
    """Yield the literal texts and the expressions of a template, in order."""
    position = count = 0
    while (mark := _MARK.search(raw, position)) is not None:
        yield raw[position : mark.start()]
        if mark[0] in ("$${", "%%{"):
            yield mark[0][1:]
            position = mark.end()
            continue
        count += 1
        if mark[0] == "%{" or count > _EXPRESSIONS_MAX:
            raise UnknownAtImport  # a loop or a condition over the text
        end = _end(raw, mark.end())
        yield TemplateExpression(raw[mark.end() : end].strip())
        position = end + 1
    yield raw[position:]


def _end(raw: str, position: int) -> int:
    """Return the position of the brace that closes an expression."""
    depth = 1
    while (match := _INSIDE.search(raw, position)) is not None:
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.start()
        position = match.end()
    raise UnknownAtImport


EXPRESSION_DEPTH_MAX = 120
_OPENING = re.compile(  # quoted text and comments, which hide a heredoc, and the start of a heredoc
    r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|//[^\n]*|/\*(?:.*?\*/|.*)|<<-?(?P<end>[A-Za-z][\w.-]*)\r?\n', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class HclBlock:
    """A block of HCL: its kind, its labels, and its attributes as unevaluated expressions."""

    kind: str
    labels: tuple[str, ...]
    line: int
    text: str = field(repr=False)  # of the whole file; unresolved expressions are shown as written in it
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    blocks: tuple[HclBlock, ...] = field(default=(), repr=False)
    file: str = ""  # empty if the text came without one


def parse_hcl(text: str, file: str = "") -> HclBlock:
    """Return a file as one block without a kind; refuse invalid HCL with its line and column."""
    try:
        from hcl2 import parses_to_tree  # noqa: PLC0415 - an extra
        from lark.exceptions import LarkError  # noqa: PLC0415 - comes with it
    except ModuleNotFoundError as error:
        raise MissingLibrary("HCL", "python-hcl2") from error
    _check_heredocs(text)
    if not text.strip():
        return HclBlock("", (), 1, text, file=file)
    try:
        tree = parses_to_tree(text)
        return _body_block("", (), 1, tree.children[0], text, file)
    except LarkError as error:
        line, column = getattr(error, "line", -1), getattr(error, "column", -1)
        place = f"line {line}, column {column}" if isinstance(line, int) and line > 0 else "end of file"
        raise FormatError(f"not valid HCL: {_describe_syntax_error(error, text)}", place) from error
    except RecursionError as error:
        raise FormatError("blocks are nested too deeply") from error


def _describe_syntax_error(error: Exception, source: str) -> str:
    """Return a parse error without the parser's names for its tokens."""
    line = getattr(error, "line", -1)
    if isinstance(line, int) and 0 < line <= source.count("\n") + 1:
        before = source.split("\n")[line - 1][: getattr(error, "column", 1)]
        if re.sub(r"\\.", "", before).count('"') % 2:
            return "a string without a closing quote"
    token = getattr(error, "token", None)
    text = str(getattr(error, "char", "") or ("" if token is None else token))
    if text.startswith(("\n", "\r")):
        return "unexpected end of line"
    if not text.strip() or getattr(token, "type", "") == "$END":
        return "the file ends inside a block; is a closing brace missing?"
    return f"unexpected {text.strip()[:40]!r}"


def _check_heredocs(text: str) -> None:
    """Refuse a heredoc that is not closed: the parser would take very long to notice."""
    at = 0
    while (match := _OPENING.search(text, at)) is not None:
        at = match.end()
        if match["end"] is None:
            continue
        end = re.compile(rf"(?m)^[ \t]*{re.escape(match['end'])}[ \t]*\r?$").search(text, at)
        if end is None:
            line = text.count("\n", 0, match.start()) + 1
            raise FormatError(
                f"the heredoc <<{match['end']} is not closed; add a line {match['end']}", f"line {line}"
            )
        at = end.end()


def _body_block(kind: str, labels: tuple[str, ...], line: int, body: Any, text: str, file: str) -> HclBlock:
    attributes: dict[str, Any] = {}
    blocks: list[HclBlock] = []
    for child in body.children:
        name = getattr(child, "data", None)
        if name == "attribute":
            attributes[_word(child.children[0])] = child.children[-1]
        elif name == "block":
            *heads, inner = [
                other_child
                for other_child in child.children
                if getattr(other_child, "data", "") != "new_line_or_comment"
            ][:-1]
            heads = [head for head in heads if hasattr(head, "data")]
            names = tuple(_word(head) for head in heads)
            blocks.append(_body_block(names[0], names[1:], child.meta.line, inner, text, file))
    return HclBlock(kind, labels, line, text, attributes, tuple(blocks), file)


def _word(node: Any) -> str:
    """Return an identifier, or a label in quotes."""
    if hasattr(node, "data"):
        return "".join(_word(child) for child in node.children)
    return "" if node.type == "DBLQUOTE" else str(node)


Lookup = Callable[[tuple[str, ...]], Any]
"""Returns the value of a reference, given as its steps; KeyError if only the deployment knows it."""


class Evaluator:
    """Evaluates expressions; a lookup function resolves references."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._depth = 0

    def value(self, node: Any, text: str, scope: Mapping[str, Any] | None = None) -> Any:
        """Return the value of an expression; an `Unresolved` with its source text if it is unknown."""
        self._depth += 1
        try:
            if self._depth > EXPRESSION_DEPTH_MAX:
                raise FormatError(
                    "an expression is nested too deeply; split it with locals", f"line {_line(node)}"
                )
            return self._value(node, text, scope or {})
        except UnknownAtImport:
            return Unresolved(f"${{{_source_text(node, text)}}}")
        finally:
            self._depth -= 1

    def _value(self, node: Any, text: str, scope: Mapping[str, Any]) -> Any:
        children = [
            child
            for child in getattr(node, "children", ())
            if getattr(child, "data", "") != "new_line_or_comment"
        ]
        match getattr(node, "data", None):
            case "expr_term":
                inner = [child for child in children if hasattr(child, "data")]
                return self.value(inner[0], text, scope)
            case "int_lit":
                return int(children[0]) if len(children[0]) < 20 else str(children[0])
            case "float_lit":
                number = float(children[0])
                return int(number) if number.is_integer() and abs(number) < 1e15 else number
            case "literal_value":
                return {"true": True, "false": False}.get(str(children[0]))
            case "string":
                return self._string(children, text, scope)
            case "heredoc_template" | "heredoc_template_trim":
                raw = strip_heredoc(str(children[0]), trim=node.data.endswith("trim"))
                return join_parts(self._template(raw, scope))
            case "tuple":
                return check_size(
                    [self.value(child, text, scope) for child in children if hasattr(child, "data")]
                )
            case "object":
                return check_size(dict(self._members(children, text, scope)))
            case "identifier" | "get_attr_expr_term" | "index_expr_term":
                return self._reference(node, text, scope)
            case "function_call":
                return self._call(children, text, scope)
            case "conditional":
                terms = [child for child in children if hasattr(child, "data")]
                chosen = self.value(terms[0], text, scope)
                if not isinstance(chosen, bool):
                    raise UnknownAtImport
                return self.value(terms[1 if chosen else 2], text, scope)
            case "binary_op":
                return self._binary(children, text, scope)
            case "unary_op":
                value = self.value(children[1], text, scope)
                if str(children[0]) == "!" and isinstance(value, bool):
                    return not value
                if str(children[0]) == "-" and isinstance(value, int | float):
                    return -value
            case _:
                pass
        raise UnknownAtImport

    def _string(self, children: list[Any], text: str, scope: Mapping[str, Any]) -> str | Unresolved:
        parts: list[str | Unresolved] = []
        for part in children[1:-1]:
            (inner,) = part.children
            if getattr(inner, "data", "") == "interpolation":
                part_text = as_text_part(self.value(inner.children[1], text, scope))
                parts.append(
                    Unresolved(f"${{{_source_text(inner.children[1], text)}}}")
                    if part_text is None
                    else part_text
                )
            elif hasattr(inner, "data"):
                raise UnknownAtImport  # a directive such as %{ if … }
            elif inner.type in ("ESCAPED_INTERPOLATION", "ESCAPED_DIRECTIVE"):
                parts.append(str(inner)[1:])
            else:
                parts.append(unescape(str(inner)))
        return join_parts(parts)

    def _template(self, raw: str, scope: Mapping[str, Any]) -> Iterator[str | Unresolved]:
        """Yield the parts of a heredoc, with its expressions evaluated."""
        for part in template_parts(raw):
            if not isinstance(part, TemplateExpression):
                yield part
                continue
            value_text: str | Unresolved | None = None
            try:
                block = parse_hcl(f"x = {part.text}\n")
                value_text = as_text_part(self.value(block.attributes["x"], block.text, scope))
            except (FormatError, KeyError):
                pass  # not an expression by itself: it stays as written
            yield Unresolved(f"${{{part.text}}}") if value_text is None else value_text

    def _members(self, children: list[Any], text: str, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for element in children:
            if getattr(element, "data", "") != "object_elem":
                continue
            key = element.children[0].children[0]
            bare = key.children[0] if getattr(key, "data", "") == "expr_term" else key
            if getattr(bare, "data", "") in ("identifier", "keyword", "literal_value"):
                name: str | Unresolved | None = _word(bare)
            else:
                name = as_text_part(self.value(key, text, scope))
            if not isinstance(name, str):
                raise UnknownAtImport
            yield name, self.value(element.children[-1], text, scope)

    def _reference(self, node: Any, text: str, scope: Mapping[str, Any]) -> Any:
        steps = self._steps(node, text, scope)
        if steps[0] in scope:
            return _follow_steps(scope[steps[0]], steps[1:])
        try:
            return self._lookup(steps)
        except KeyError:
            raise UnknownAtImport from None

    def _steps(self, node: Any, text: str, scope: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the steps of a reference such as `aws_dynamodb_table.orders[0].name`."""
        steps: list[str] = []
        while True:
            match getattr(node, "data", None):
                case "expr_term" if hasattr(node.children[0], "data"):
                    node = node.children[0]
                case "identifier":
                    return (_word(node), *reversed(steps))
                case "get_attr_expr_term":
                    steps.append(_word(node.children[1].children[1]))
                    node = node.children[0]
                case "index_expr_term":
                    index = node.children[1]
                    inner = [child for child in index.children if hasattr(child, "data")]
                    subscript = self.value(inner[0], text, scope) if inner else str(index.children[-1])
                    step = as_text_part(subscript)
                    if not isinstance(step, str):
                        raise UnknownAtImport
                    steps.append(step)
                    node = node.children[0]
                case _:
                    raise UnknownAtImport

    def _call(self, children: list[Any], text: str, scope: Mapping[str, Any]) -> Any:
        name = _word(children[0])
        arguments = [child for child in children if getattr(child, "data", "") == "arguments"]
        values = [
            self.value(child, text, scope)
            for inner in arguments
            for child in inner.children
            if hasattr(child, "data") and child.data != "new_line_or_comment"
        ]
        if any(str(child) == "..." for inner in arguments for child in inner.children):
            raise UnknownAtImport
        return call_function(name, values)

    def _binary(self, children: list[Any], text: str, scope: Mapping[str, Any]) -> Any:
        left = self.value(children[0], text, scope)
        term = [
            child for child in children[1].children if getattr(child, "data", "") != "new_line_or_comment"
        ]
        operator, right = _word(term[0]).strip(), self.value(term[1], text, scope)
        if not (is_resolved(left) and is_resolved(right)):
            raise UnknownAtImport
        match operator:
            case "==" | "!=":
                same = isinstance(left, bool) == isinstance(right, bool) and left == right
                return same if operator == "==" else not same
            case "&&" | "||" if isinstance(left, bool) and isinstance(right, bool):
                return left and right if operator == "&&" else left or right
            case _:
                pass
        if _is_integer(left) and _is_integer(right):
            match operator:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "<":
                    return left < right
                case ">":
                    return left > right
                case "<=":
                    return left <= right
                case ">=":
                    return left >= right
                case _:
                    pass
        raise UnknownAtImport


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18


def _follow_steps(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            raise UnknownAtImport
    return value


def follow_steps(value: Any, steps: tuple[str, ...]) -> Any:
    """Return the value that steps lead to; KeyError if they lead nowhere."""
    try:
        return _follow_steps(value, steps)
    except UnknownAtImport:
        raise KeyError(steps) from None


def _line(node: Any) -> int:
    return getattr(getattr(node, "meta", None), "line", 0)


def _source_text(node: Any, text: str) -> str:
    meta = getattr(node, "meta", None)
    if meta is None or getattr(meta, "empty", True):
        return "…"
    return re.sub(r"\s+", " ", text[meta.start_pos : meta.end_pos].strip())[:200]
