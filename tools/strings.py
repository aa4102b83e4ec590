"""List the strings a user can read, so that a person can review their English.

    python -m tools.strings                  how many strings of each kind there are
    python -m tools.strings messages         every message in the Python code, with file and line
    python -m tools.strings pages apps       every string on the pages, only of files whose path contains "apps"

Kinds: *help* (the command line's own help), *messages* (sentences in the Python code: errors, remedies, findings, results),
*pages* (text, labels and tooltips in templates and TypeScript), *docs* (headings and paragraphs of the Markdown pages).

Strings are found by their form, because the code does not mark them. Keys, paths, SQL, formats and single lower-case words are left
out; a few technical strings still get through, and a label of one lower-case word in Python is missed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tavola"
_READ_ATTRIBUTES = frozenset({"title", "placeholder", "aria-label", "alt", "label", "hint", "data-confirm"})
_JSX_TEXT = re.compile(r">([^<>{}]*[A-Za-z][^<>{}]*)<")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)+)"|`((?:[^`\\]|\\.)+)`')
_TAG = re.compile(r"{%.*?%}|{#.*?#}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UserString:
    """A string that a user can read, and where it is written."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def command_help() -> Iterator[UserString]:
    """Yield the help of every command, argument and option."""
    from tavola.cli.main import app

    def walk(path: str, command: click.Command) -> Iterator[UserString]:
        yield UserString(path, 0, _one_line(command.help or ""))
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.help:
                yield UserString(path, 0, f"{'/'.join(parameter.opts)}: {_one_line(parameter.help)}")
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None:
                    yield from walk(f"{path} {name}", child)

    yield from walk("tavola", app)


def messages() -> Iterator[UserString]:
    """Yield the sentences in the Python code that are not docstrings."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from python_strings(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))


def python_strings(path: str, text: str) -> Iterator[UserString]:
    """Yield the strings of one module that read as a phrase or sentence; an f-string's values are shown as `{…}`."""
    tree = ast.parse(text)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        match node:
            case ast.Constant(value=str(value)):
                sentence = value
            case ast.JoinedStr(values=parts):
                sentence = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in parts
                )
            case _:
                continue
        if is_prose(sentence):
            yield UserString(path, node.lineno, _one_line(sentence))


def is_prose(text: str) -> bool:
    """Return whether a string reads as a phrase in English rather than as a key, a path, code or SQL."""
    words = re.findall(r"[A-Za-z][a-z']+", text)
    if len(words) < 2 or " " not in text.strip():
        return False
    if re.search(r"\b(SELECT|INSERT|CREATE TABLE|PRAGMA|DELETE FROM)\b|[;{]\s*$|^\s*[<{\[]|::|=>|</", text):
        return False
    letters = sum(character.isalpha() or character.isspace() for character in text)
    return letters / len(text) > 0.7


def pages() -> Iterator[UserString]:
    """Yield the texts of templates and of the studio's pages."""
    for path in sorted(SOURCE.rglob("*.html")):
        if "node_modules" not in path.parts and "static" not in path.parts:
            yield from template_strings(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.ts*")):
        if (
            "node_modules" not in path.parts
            and "generated" not in path.parts
            and path.suffix in {".ts", ".tsx"}
        ):
            yield from script_strings(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))


def template_strings(path: str, text: str) -> Iterator[UserString]:
    """Yield the text nodes and readable attributes of one Jinja template."""
    found: list[UserString] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            if re.search(r"[A-Za-z]{2}", re.sub(r"{{.*?}}", "", data)):
                found.append(UserString(path, self.getpos()[0], _one_line(data)))

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            for name, value in attrs:
                if name in _READ_ATTRIBUTES and value:
                    found.append(UserString(path, self.getpos()[0], f"{name}: {_one_line(value)}"))

    reader = Reader()
    reader.feed(_TAG.sub(lambda match: "\n" * match[0].count("\n"), text))
    return iter(found)


def script_strings(path: str, text: str) -> Iterator[UserString]:
    """Yield the text between tags and the quoted phrases of one TypeScript module."""
    code = re.sub(
        r"/\*.*?\*/|(?<!:)//[^\n]*", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL
    )
    for match in _JSX_TEXT.finditer(code):
        if is_label(match[1]):
            yield UserString(path, code.count("\n", 0, match.start(1)) + 1, _one_line(match[1]))
    for match in _QUOTED.finditer(code):
        quoted = match[1] or match[2]
        is_class = code[: match.start()].endswith(("class=", "class={", "class: "))
        if is_label(quoted) and not is_class and not quoted.startswith((".", "/", "#", "@")):
            yield UserString(path, code.count("\n", 0, match.start()) + 1, _one_line(quoted))


def is_label(text: str) -> bool:
    """Return whether a string of a page reads as a label: a capitalized word, or a phrase."""
    bare = _one_line(text)
    return bool(re.fullmatch(r"[A-Z][a-z]+[.:…?!]?", bare)) or (is_prose(bare) and "=" not in bare)


def docs() -> Iterator[UserString]:
    """Yield the headings, paragraphs and list entries of the Markdown pages, without code."""
    for path in sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]):
        name = str(path.relative_to(ROOT))
        text = re.sub(
            r"^```.*?^```$",
            lambda match: "\n" * match[0].count("\n"),
            path.read_text(encoding="utf-8"),
            flags=re.M | re.S,
        )
        line = 1
        for block in re.split(r"(\n\s*\n)", text):
            if re.search(r"[A-Za-z]{2}", block) and not block.lstrip().startswith("<!--"):
                yield UserString(name, line + len(block) - len(block.lstrip("\n")), _one_line(block))
            line += block.count("\n")


KINDS: dict[str, Callable[[], Iterator[UserString]]] = {
    "help": command_help,
    "messages": messages,
    "pages": pages,
    "docs": docs,
}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Print the strings of one kind, or the number of strings of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("part", nargs="?", default="", help="only files whose path contains this")
    arguments = parser.parse_args()
    if arguments.kind is None:
        for kind, find in KINDS.items():
            sys.stdout.write(f"{sum(1 for _ in find()):6,}  {kind}\n")
        return
    for string in KINDS[arguments.kind]():
        if arguments.part in string.path:
            sys.stdout.write(f"{string}\n")


if __name__ == "__main__":
    main()
