"""YAML text: plain data of a template, written as a person would write it.

Block style, texts plain where YAML cannot mistake them and in double quotes otherwise, CloudFormation's functions in their short form
(`!Ref`, `!GetAtt`, `!Sub`, `!If`). A writer of our own, as a template needs so little of YAML and the order and quoting should be ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./*@+=()-]|:(?! |$)| (?![#\s]))*(?<![\s:])")
_WORDS = frozenset("y n yes no on off true false null ~".split())
_TAGS = {
    "Ref": "!Ref",
    "Fn::GetAtt": "!GetAtt",
    "Fn::Sub": "!Sub",
    "Fn::If": "!If",
    "Fn::Join": "!Join",
    "Fn::Not": "!Not",
    "Fn::Equals": "!Equals",
}


def render_yaml(data: Mapping[str, Any]) -> str:
    """Render a mapping as a YAML document."""
    return "\n".join(_mapping(data, 0)) + "\n"


def scalar(value: str | float | bool | None) -> str:
    """Render a text, number or truth so that it is read back as itself."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Render a text in double quotes; what YAML would not print is escaped, the rest stays legible."""
    told = json.dumps(text, ensure_ascii=False)
    return "".join(
        sign if sign.isprintable() and sign not in "\x85\u2028\u2029\ufeff" else _escaped(sign)
        for sign in told
    )


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _mapping(data: Mapping[str, Any], depth: int) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{'  ' * depth}{scalar(key)}:", value, depth + 1)


def _sequence(values: Sequence[Any], depth: int) -> Iterator[str]:
    for value in values:
        lead = "  " * depth
        if isinstance(value, Mapping) and value and _short(value) is None:
            first, *rest = _mapping(value, depth + 1)
            yield f"{lead}- {first.lstrip(' ')}"
            yield from rest
        else:
            yield from _entry(f"{lead}-", value, depth + 1)


def _entry(lead: str, value: Any, depth: int) -> Iterator[str]:
    short = _short(value)
    if short is not None:
        tag, inner = short
        if isinstance(inner, list):
            yield f"{lead} {tag}"
            yield from _sequence(inner, depth)
        else:
            yield f"{lead} {tag} {scalar(inner)}"
    elif isinstance(value, Mapping):
        yield lead if value else f"{lead} {{}}"
        yield from _mapping(value, depth)
    elif isinstance(value, list | tuple):
        yield lead if value else f"{lead} []"
        yield from _sequence(value, depth)
    else:
        yield f"{lead} {scalar(value)}"


def _short(value: Any) -> tuple[str, Any] | None:
    """Return a function of CloudFormation as its tag and what it is of, None if it is none."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((name, inner),) = value.items()
    if name not in _TAGS:
        return None
    if name == "Fn::GetAtt":
        inner = ".".join(inner)
    return _TAGS[name], inner
