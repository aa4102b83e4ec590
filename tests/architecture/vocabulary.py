"""Vocabulary: what a name, a docstring or a comment must not contain.

An earlier style of this code base used a private vocabulary. These checks keep it out: words that were retired, functions named
with a bare past participle (`told`, `sorted_`), and class names that mean two things. Only names, docstrings and comments count;
a string may quote what a user typed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.architecture.source_tree import Finding, Module, nodes

RETIRED = re.compile(
    r"\b(told|untold|mend(?:s|ed|ing)?|rack|seals?|chores?|pasts|strangers?|dearest|whoever|nobody|somebody|everybody"
    r"|anew|foretells?|deeds?|house|rooms?|lanes?|thereof)\b",
    re.IGNORECASE,
)
PHRASES = re.compile(
    r"that is none|which is none|what stands|what stood|shall stand|stands? in the way|let go of|otherwise than"
    r"|(?:comes?|came) to grief|in the place of|for who comes",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(r"[a-z]{3,}ed")
_IRREGULAR = frozenset(
    "told given found kept made taken shown written seen sent held met meant paid stood brought drawn known bound chosen"
    " laid led left lost said won".split()
)
_NOT_PARTICIPLES = frozenset("embed feed need seed shed speed exceed proceed".split())


def retired_words(module: Module) -> Iterator[Finding]:
    """Yield each retired word or phrase in a docstring, a comment or a name."""
    for line, text in _prose(module):
        for pattern in (RETIRED, PHRASES):
            for match in pattern.finditer(text):
                yield Finding(
                    module.file, line + text.count("\n", 0, match.start()), f"retired: {match[0]!r}"
                )
    for line, name in _names(module):
        for part in re.findall(r"[A-Z]?[a-z]+", name):
            if RETIRED.fullmatch(part):
                yield Finding(module.file, line, f"retired: {part!r} in the name {name}")


def participle_functions(module: Module) -> Iterator[Finding]:
    """Yield each function that is named with one past participle; a property may state a fact."""
    for node in nodes(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        bare = node.name.strip("_")
        if any("property" in ast.unparse(each) for each in node.decorator_list) or bare in _NOT_PARTICIPLES:
            continue
        if bare in _IRREGULAR or _PARTICIPLE.fullmatch(bare):
            yield module.find(node, f"{node.name}: name a function with a verb and its object")


def repeated_classes(modules: Iterable[Module]) -> Iterator[Finding]:
    """Yield each class whose name another class has; key and query classes nested in an entity are not meant."""
    homes: defaultdict[str, list[Finding]] = defaultdict(list)
    for module in modules:
        for node in nodes(module):
            if isinstance(node, ast.ClassDef) and node.name != "Key" and not node.name.startswith("By"):
                homes[node.name].append(module.find(node, f"class {node.name} has a namesake"))
    for findings in homes.values():
        if len(findings) > 1:
            yield from findings


def _prose(module: Module) -> Iterator[tuple[int, str]]:
    """Yield every docstring and comment with its first line."""
    for node in nodes(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(lineno=line, value=ast.Constant(value=str(text))):
                    yield line, text
                case _:
                    pass
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _names(module: Module) -> Iterator[tuple[int, str]]:
    """Yield every name that the module defines: classes, functions, parameters, variables, attributes."""
    for node in nodes(module):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case _:
                pass
