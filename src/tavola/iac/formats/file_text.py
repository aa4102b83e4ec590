"""Read files as JSON, YAML or HCL text, within limits; errors name the line and column.

Files are untrusted: aliases that expand without end, unlimited nesting and binary data are refused before the data is walked.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tavola.iac.errors import MissingLibrary
from tavola.iac.formats.import_result import DesignFileNotFound, FormatError, UnknownFormat

FILE_BYTES_MAX = 8 * 1024 * 1024
DEPTH_MAX = 100
NODES_MAX = 400_000  # of YAML, with every alias written out
_JSON_PROBLEMS = {  # sentences of the standard library that end in the air or hide the usual cause
    "Unterminated string starting at": "a string without a closing quote",
    "Expecting property name enclosed in double quotes": "expected a member name in double quotes; remove a trailing comma",
    "Illegal trailing comma before end of object": "remove the trailing comma",
    "Illegal trailing comma before end of array": "remove the trailing comma",
    "Extra data": "text after the end of the value",
}
_YAML_PROBLEMS = (  # the start of PyYAML's sentence, and ours
    ("found character '\\t'", "use spaces instead of tabs"),
    ("expected <block end>", "check the indentation of this line"),
    ("found unexpected end of stream", "a quote or bracket is not closed"),
    ("could not find expected ':'", "expected a colon after the key"),
    ("mapping values are not allowed here", "quote a value that contains a colon, or check the indentation"),
)


def read_text(path: Path, *, may_be_empty: bool = False) -> str:
    """Return a file's text; refuse binary, empty and oversized files, devices and pipes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FormatError("not a regular file; give a file or a folder of Terraform files")
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise DesignFileNotFound("no such file or folder") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"cannot read the file: {why}") from error
    if len(raw) > FILE_BYTES_MAX:
        raise FormatError(
            f"the file is larger than {FILE_BYTES_MAX:,} bytes; import only the part that defines tables"
        )
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    encoding = next((name for mark, name in marks.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnknownFormat(f"not a text file: byte {error.start + 1} is not valid UTF-8") from error
    if "\0" in text:
        raise UnknownFormat("not a text file: it contains zero bytes")
    if not text.strip("\ufeff \t\r\n") and not may_be_empty:
        raise FormatError("the file is empty")
    return text


def parse_json(text: str) -> Any:
    """Parse a JSON text."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_members)
    except json.JSONDecodeError as error:
        raise UnknownFormat(
            f"not valid JSON: {_JSON_PROBLEMS.get(error.msg, error.msg)}",
            f"line {error.lineno}, column {error.colno}",
        ) from error
    except (RecursionError, ValueError) as error:  # a number of thousands of digits is a ValueError
        raise UnknownFormat(f"not valid JSON: {_first_line(error)}") from error
    check_depth(data)
    return data


def parse_yaml(text: str) -> Any:
    """Parse a YAML text; CloudFormation's short tags become their long form."""
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingLibrary("YAML", "PyYAML") from error
    from tavola.iac.formats.yaml_tags import TemplateLoader  # noqa: PLC0415 - needs the extra

    loader: TemplateLoader | None = None
    try:
        loader = TemplateLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise UnknownFormat("the file is empty")
        _check_nodes(node)
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise UnknownFormat(
            f"not valid YAML: {_describe_yaml_problem(error.problem or error.context or '')}", place
        ) from error
    except yaml.reader.ReaderError as error:
        place = f"line {text.count(chr(10), 0, error.position) + 1}"
        raise UnknownFormat("not valid YAML: it contains a control character", place) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise UnknownFormat(f"not valid YAML: {_first_line(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()
    check_depth(data)
    return data


def _describe_yaml_problem(problem: str) -> str:
    return next((description for start, description in _YAML_PROBLEMS if problem.startswith(start)), problem)


def check_depth(data: Any) -> None:
    """Refuse data that is nested deeper than `DEPTH_MAX`."""
    level = [data]
    for _ in range(DEPTH_MAX):
        level = [inner for child in level for inner in _inside(child)]
        if not level:
            return
    raise FormatError(f"nested deeper than {DEPTH_MAX} levels")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_nodes(root: Any) -> None:
    """Refuse a node tree in which an alias forms a cycle, or which aliases expand beyond the limit."""
    sizes: dict[int, int] = {}
    opened: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        inner = _children(node)
        if done:
            opened.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in inner)
            if sizes[id(node)] > NODES_MAX:
                raise FormatError(
                    f"its YAML aliases expand to more than {NODES_MAX:,} values; write the values out instead"
                )
            continue
        if id(node) in sizes:
            continue
        opened.add(id(node))
        stack.append((node, True))
        for child in inner:
            if id(child) in opened:
                mark = child.start_mark
                raise FormatError(
                    "a YAML alias refers to a value that contains it; write the value out instead",
                    f"line {mark.line + 1}, column {mark.column + 1}",
                )
            if id(child) not in sizes:
                stack.append((child, False))


def _children(node: Any) -> list[Any]:
    value = getattr(node, "value", None)
    if not isinstance(value, list):
        return []
    return [child for pair in value for child in (pair if isinstance(pair, tuple) else (pair,))]


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(name for position, (name, _) in enumerate(pairs) if name in dict(pairs[:position]))
        raise FormatError(f"an object has two members named {repeated!r}; remove one")
    return members


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
