"""Ignores: the comments by which a design's source says which findings are to stand, and the lines of its declarations.

    # tavola: ignore[mutable-index-key] the desk is asked by status all day
    class ByStatus(Query["Ticket"], …):

A comment speaks of what is declared on its line, or on the next one: a class, an index, a field, a query, a write, a need.
The source is read, not run: what is made by a function has no line of its own, and takes that of its class.
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
    """Something that a source declares, by the name that findings give it, and its lines from 1."""

    place: str
    first: int
    last: int  # of its own; of a class, of what stands before its body


@dataclass(frozen=True, slots=True)
class _Comment:
    line: int
    text: str
    alone: bool


def declarations_in(source: str) -> tuple[SourceDeclaration, ...]:
    """Return what the text of a module declares, in its order; nothing of a text that is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    found = [declaration for node in tree.body for declaration in _declarations(node)]
    return tuple(sorted(found, key=lambda each: (each.first, each.last)))


def ignores_in(source: str, name: str = "") -> tuple[Ignore, ...]:
    """Return the ignores in the text of a module; one that stands by no declaration is told by its line in `name`."""
    declared = declarations_in(source)
    ignores: list[Ignore] = []
    comments = {comment.line: comment for comment in _comments(source)}
    for comment in comments.values():
        found = _COMMENT.match(comment.text)
        if found is None:
            continue
        reason, line = found["reason"].strip(), comment.line
        while comment.alone and (more := comments.get(line + 1)) is not None and more.alone:
            if _COMMENT.match(more.text):
                break
            reason = f"{reason} {more.text.lstrip('#').strip()}".strip()
            line += 1
        place = _place(declared, comments, comment) or f"{name}:{comment.line}"
        for rule in (found["rules"] or "").split(","):
            word, _, elsewhere = rule.partition(
                "@"
            )  # what no comment can stand by, such as a policy in a file
            ignores.append(Ignore(word.strip(), elsewhere.strip() or place, reason))
    return tuple(ignores)


def _place(
    declared: tuple[SourceDeclaration, ...], comments: dict[int, _Comment], comment: _Comment
) -> str | None:
    """Return what a comment is about: the narrowest thing on its line, or what begins on the next line of code."""
    line = comment.line
    if comment.alone:
        while line in comments and comments[line].alone:
            line += 1
        below = [each for each in declared if each.first == line]
        if below:
            return below[-1].place  # the widest: a class before what its header holds
    around = [each for each in declared if each.first <= line <= each.last]
    return min(around, key=lambda each: each.last - each.first).place if around else None


def _comments(source: str) -> Iterator[_Comment]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                yield _Comment(token.start[0], token.string, alone)
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
    """Give what is called by its first argument: needs and consumers by that alone, writes under their entity."""
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TITLED):
            continue
        word = "title" if call.func.id == "WritePattern" else "name"
        titles = [*call.args[:1], *(each.value for each in call.keywords if each.arg == word)]
        title = titles[0].value if titles and isinstance(titles[0], ast.Constant) else None
        if not isinstance(title, str) or (call.func.id == "WritePattern" and not owner):
            continue
        place = f"{owner}: {title}" if call.func.id == "WritePattern" else title
        lines = whole if call.func.id == "Need" and whole is not None else call
        yield SourceDeclaration(place, lines.lineno, lines.end_lineno or lines.lineno)


def with_ignores(design: Design, sources: Iterable[tuple[str, str]]) -> Design:
    """Return a design with what the comments of its sources say; each is a name and a text."""
    ignores = [ignore for name, text in sources for ignore in ignores_in(text, name)]
    return replace(design, ignores=(*design.ignores, *ignores)) if ignores else design
