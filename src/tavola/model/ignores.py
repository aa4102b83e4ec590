"""Ignores: comments in a design's source that suppress findings, and the lines of its declarations.

    # tavola: ignore[mutable-index-key] the desk is asked by status all day
    class ByStatus(Query["Ticket"], …):

A comment applies to the declaration on its line or on the next one: a class, index, field, query, write or need. The source is
parsed, not run, so a declaration that a function creates has no line of its own and gets its class's.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tavola.model.design import Design, Ignore

_COMMENT = re.compile(r"#\s*tavola:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?\s*(?P<reason>.*)")
_TITLED = ("Need", "Consumer", "WritePattern")


@dataclass(frozen=True, slots=True)
class SourceDeclaration:
    """A declaration in a source file: the name that findings use for it, and its lines, counted from 1."""

    place: str
    first: int
    last: int  # its last line; of a class, the last line before its body


@dataclass(frozen=True, slots=True)
class _Comment:
    line: int
    text: str
    alone: bool


def declarations_in(source: str) -> tuple[SourceDeclaration, ...]:
    """Return the declarations in a module's text, in order; none if the text is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    declarations = [declaration for node in tree.body for declaration in _declarations(node)]
    return tuple(sorted(declarations, key=lambda declaration: (declaration.first, declaration.last)))


def ignores_in(source: str, name: str = "") -> tuple[Ignore, ...]:
    """Return the ignores in the text of a module; one without a declaration is placed by its line in `name`."""
    declared = declarations_in(source)
    ignores: list[Ignore] = []
    comments = {comment.line: comment for comment in _comments(source)}
    for comment in comments.values():
        match = _COMMENT.match(comment.text)
        if match is None:
            continue
        reason, line = match["reason"].strip(), comment.line
        while comment.alone and (more := comments.get(line + 1)) is not None and more.alone:
            if _COMMENT.match(more.text):
                break
            reason = f"{reason} {more.text.lstrip('#').strip()}".strip()
            line += 1
        place = _place(declared, comments, comment) or f"{name}:{comment.line}"
        for rule in (match["rules"] or "").split(","):
            # RULE@PLACE names a place that cannot have a comment, such as a policy in a file
            word, _, elsewhere = rule.partition("@")
            ignores.append(Ignore(word.strip(), elsewhere.strip() or place, reason))
    return tuple(ignores)


def _place(
    declared: tuple[SourceDeclaration, ...], comments: dict[int, _Comment], comment: _Comment
) -> str | None:
    """Return the declaration that a comment applies to: the innermost on its line, else one that begins on the next line of code."""
    line = comment.line
    if comment.alone:
        while line in comments and comments[line].alone:
            line += 1
        below = [declaration for declaration in declared if declaration.first == line]
        if below:
            return below[-1].place  # the widest: a class before what its header holds
    around = [declaration for declaration in declared if declaration.first <= line <= declaration.last]
    return min(around, key=lambda declaration: declaration.last - declaration.first).place if around else None


def _comments(source: str) -> Iterator[_Comment]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                on_own_line = not token.line[: token.start[1]].strip()
                yield _Comment(token.start[0], token.string, on_own_line)
    except (tokenize.TokenError, SyntaxError):
        return


def _declarations(node: ast.stmt) -> Iterator[SourceDeclaration]:
    if isinstance(node, ast.ClassDef):
        yield from _class(node, "")
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        yield from _titled_declarations(node, "", node)


def _class(node: ast.ClassDef, owner: str) -> Iterator[SourceDeclaration]:
    place = f"{owner}.{node.name}" if owner else node.name
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    yield SourceDeclaration(place, first, max(node.lineno, node.body[0].lineno - 1))
    if owner:
        return  # what a query class holds are its arguments
    for keyword in node.keywords:
        yield from _titled_declarations(keyword.value, place, None)
    for inner in node.body:
        match inner:
            case ast.ClassDef():
                yield from _class(inner, place)
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                yield SourceDeclaration(f"{place}.{name}", inner.lineno, inner.end_lineno or inner.lineno)
            case _:
                pass


def _titled_declarations(node: ast.AST, owner: str, whole: ast.stmt | None) -> Iterator[SourceDeclaration]:
    """Yield declarations that are named by their first argument: needs and consumers by that alone, writes with their entity."""
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TITLED):
            continue
        word = "title" if call.func.id == "WritePattern" else "name"
        titles = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == word)]
        title = titles[0].value if titles and isinstance(titles[0], ast.Constant) else None
        if not isinstance(title, str) or (call.func.id == "WritePattern" and not owner):
            continue
        place = f"{owner}: {title}" if call.func.id == "WritePattern" else title
        lines = whole if call.func.id == "Need" and whole is not None else call
        yield SourceDeclaration(place, lines.lineno, lines.end_lineno or lines.lineno)


def with_ignores(design: Design, sources: Iterable[tuple[str, str]]) -> Design:
    """Return a design with the ignores in its sources; each source is a name and a text."""
    ignores = [ignore for name, text in sources for ignore in ignores_in(text, name)]
    return replace(design, ignores=(*design.ignores, *ignores)) if ignores else design
