"""The HCL functions that table definitions use, each exactly as Terraform defines it, or not at all.

An argument of another type, an unresolved argument or an unsupported form raises `UnknownAtImport`: the call stays as written and is
reported, which is better than a wrong name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tavola.iac.formats.import_result import FormatError
from tavola.iac.formats.source_values import Unresolved, as_plain_data, as_text_part, is_resolved, join_parts

VALUES_MAX = 50_000  # parts of one evaluated value
_VERB = re.compile(r"(%%|%[sdv])")


class UnknownAtImport(Exception):
    """An expression that only the deployment can evaluate."""


def call_function(name: str, arguments: list[Any]) -> Any:
    """Return the result of a function call."""
    function = _FUNCTIONS.get(name)
    if function is None or (
        name not in _ACCEPT_UNRESOLVED and any(isinstance(argument, Unresolved) for argument in arguments)
    ):
        raise UnknownAtImport
    try:
        return check_size(function(*arguments))
    except TypeError as error:  # too few arguments, or too many
        raise UnknownAtImport from error


def check_size(value: Any) -> Any:
    """Return a value; refuse one with more than `VALUES_MAX` parts."""
    level, count = [value], 0
    while level:
        level = [
            inner
            for argument in level
            for inner in (
                argument.values()
                if isinstance(argument, Mapping)
                else argument
                if isinstance(argument, list)
                else ()
            )
        ]
        count += len(level)
        if count > VALUES_MAX:
            raise FormatError(f"a value has more than {VALUES_MAX:,} parts after its references are resolved")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnknownAtImport
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnknownAtImport
    return value


def _map(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UnknownAtImport
    return value


def _part(value: Any) -> str | Unresolved:
    part = as_text_part(value)
    if part is None:
        raise UnknownAtImport
    return part


def _merge(*several: Any) -> dict[str, Any]:
    return {
        name: value for argument in several if argument is not None for name, value in _map(argument).items()
    }


def _concat(*several: Any) -> list[Any]:
    return [value for argument in several for value in _list(argument)]


def _join(delimiter: Any, *several: Any) -> str | Unresolved:
    parts = [part for argument in _concat(*several) for part in (_text(delimiter), _part(argument))]
    return join_parts(parts[1:])


def _format(form: Any, *values: Any) -> str | Unresolved:
    remaining = list(values)
    parts: list[str | Unresolved] = []
    for piece in _VERB.split(_text(form)):
        if piece == "%%":
            parts.append("%")
        elif _VERB.fullmatch(piece):
            value = remaining.pop(0) if remaining else None
            if piece == "%d" and (isinstance(value, bool) or not isinstance(value, int | Unresolved)):
                raise UnknownAtImport
            parts.append(_part(value))
        elif "%" in piece:
            raise UnknownAtImport  # a width, an index or another verb
        else:
            parts.append(piece)
    if remaining:
        raise UnknownAtImport
    return join_parts(parts)


def encode_json(value: Any) -> str | Unresolved:
    """Return a value as Terraform's jsonencode writes it, unresolved if a part of it is."""
    text = json.dumps(as_plain_data(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text if is_resolved(value) else Unresolved(text)


def _replace(text: Any, old: Any, new: Any) -> str:
    if len(_text(old)) > 1 and old[0] == old[-1] == "/":
        raise UnknownAtImport  # a regular expression
    return _text(text).replace(old, _text(new))


def _toset(several: Any) -> list[str]:
    texts = [_text(argument) for argument in _list(several)]
    return sorted(set(texts), key=str.encode)


def _tonumber(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnknownAtImport
    return value


def _tobool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise UnknownAtImport
    return bool(value == "true")


def _length(value: Any) -> int:
    if isinstance(value, str) and not value.isascii():
        raise UnknownAtImport  # Terraform counts grapheme clusters
    if not isinstance(value, str | list | Mapping):
        raise UnknownAtImport
    return len(value)


def _lookup(value: Any, name: Any, *default: Any) -> Any:
    members = _map(value)
    if _text(name) in members:
        return members[name]
    if len(default) != 1:
        raise UnknownAtImport
    return default[0]


def _coalesce(*several: Any) -> Any:
    for argument in several:
        if isinstance(argument, Unresolved):
            break  # it may be the result, or null
        if argument not in (None, ""):
            return argument
    raise UnknownAtImport


def _try(*several: Any) -> Any:
    if not several or isinstance(several[0], Unresolved):
        raise UnknownAtImport
    return several[0]  # the others apply if it fails, which only the deployment knows


_ACCEPT_UNRESOLVED = ("jsonencode", "format", "lookup", "coalesce", "try")
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "merge": _merge,
    "concat": _concat,
    "join": _join,
    "format": _format,
    "jsonencode": encode_json,
    "lower": lambda text: _text(text).lower(),
    "upper": lambda text: _text(text).upper(),
    "replace": _replace,
    "toset": _toset,
    "tolist": lambda several: list(_list(several)),
    "tomap": lambda several: dict(_map(several)),
    "tostring": _part,
    "tonumber": _tonumber,
    "tobool": _tobool,
    "keys": lambda value: sorted(_map(value), key=str.encode),
    "values": lambda value: [_map(value)[name] for name in sorted(_map(value), key=str.encode)],
    "length": _length,
    "lookup": _lookup,
    "coalesce": _coalesce,
    "try": _try,
}
NAMES = tuple(_FUNCTIONS)
