"""Read files as JSON, YAML or HCL text, within limits; errors name the line and column.

Files are untrusted: aliases that expand without end, unlimited nesting and binary data are refused before anything walks through them.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tavola.iac.errors import LibraryMissing
from tavola.iac.formats.import_result import FileMissing, FormatRefused, FormatUnknown

FILE_BYTES_MAX = 8 * 1024 * 1024
DEPTH_MAX = 100
NODES_MAX = 400_000  # of YAML, with every alias written out


def read_text(path: Path, *, may_be_empty: bool = False) -> str:
    """Return a file's text; refuse binary, empty and oversized files, devices and pipes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FormatRefused("it is no regular file; name a file, or a folder of Terraform's")
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise FileMissing("it is not there; name a file that is, or a folder of Terraform's") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatRefused(
            f"it cannot be read ({why}); name a file that is there and may be read"
        ) from error
    if len(raw) > FILE_BYTES_MAX:
        raise FormatRefused(
            f"it has more than {FILE_BYTES_MAX:,} bytes, which no design has; name the file of the design"
        )
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    encoding = next((name for mark, name in marks.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise FormatUnknown(
            f"it is no text, byte {error.start + 1} is none of UTF-8; name the file of a design"
        ) from error
    if "\0" in text:
        raise FormatUnknown("it is no text, it holds zero bytes; name the file of a design")
    if not text.strip("\ufeff \t\r\n") and not may_be_empty:
        raise FormatRefused("it is empty; name the file of a design")
    return text


def parse_json(text: str) -> Any:
    """Parse a JSON text."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_members)
    except json.JSONDecodeError as error:
        raise FormatUnknown(
            f"it is no JSON: {error.msg}; mend it there", f"line {error.lineno}, column {error.colno}"
        ) from error
    except (RecursionError, ValueError) as error:  # a number of thousands of digits is a ValueError
        raise FormatUnknown(f"it is no JSON that can be read: {_first_line(error)}; mend it") from error
    check_depth(data)
    return data


def parse_yaml(text: str) -> Any:
    """Parse a YAML text; CloudFormation's short tags become their long form."""
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise LibraryMissing("YAML", "PyYAML") from error
    from tavola.iac.formats.yaml_tags import TemplateLoader  # noqa: PLC0415 - stands on the extra

    loader: TemplateLoader | None = None
    try:
        loader = TemplateLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise FormatUnknown("there is nothing in it; name the file of a design")
        _check_nodes(node)
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise FormatUnknown(
            f"it is no YAML: {error.problem or error.context}; mend it there", place
        ) from error
    except yaml.reader.ReaderError as error:
        place = f"line {text.count(chr(10), 0, error.position) + 1}"
        raise FormatUnknown(
            "it is no YAML: it holds a sign that no text has; mend it there", place
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise FormatUnknown(f"it is no YAML that can be read: {_first_line(error)}; mend it") from error
    finally:
        if loader is not None:
            loader.dispose()
    check_depth(data)
    return data


def check_depth(data: Any) -> None:
    """Refuse data that is nested deeper than any design."""
    level = [data]
    for _ in range(DEPTH_MAX):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise FormatRefused(f"it is nested deeper than {DEPTH_MAX} levels; name the file of a design")


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
            sizes[id(node)] = 1 + sum(sizes[id(each)] for each in inner)
            if sizes[id(node)] > NODES_MAX:
                raise FormatRefused(
                    f"its aliases make it larger than {NODES_MAX:,} values; write out what they stand for"
                )
            continue
        if id(node) in sizes:
            continue
        opened.add(id(node))
        stack.append((node, True))
        for each in inner:
            if id(each) in opened:
                mark = each.start_mark
                raise FormatRefused(
                    "an alias stands inside what it names; write out what it stands for",
                    f"line {mark.line + 1}, column {mark.column + 1}",
                )
            if id(each) not in sizes:
                stack.append((each, False))


def _children(node: Any) -> list[Any]:
    value = getattr(node, "value", None)
    if not isinstance(value, list):
        return []
    return [each for pair in value for each in (pair if isinstance(pair, tuple) else (pair,))]


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise FormatRefused(f"an object has {repeated!r} twice; take one of them out")
    return members


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
