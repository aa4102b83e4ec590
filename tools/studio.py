"""The studio's pages: TypeScript types generated from the API, and the build.

`python -m tools.studio types` writes web/src/generated/api.ts; `build` does that and
builds; `lint` checks the types, runs the unit tests, ESLint and Prettier.
"""

from __future__ import annotations

import dataclasses
import datetime
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Mapping as AbcMapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

WEB = Path(__file__).parents[1] / "src" / "tavola" / "studio" / "web"
GENERATED = WEB / "src" / "generated" / "api.ts"

_PLAIN = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Decimal: "string",
    datetime.date: "string",
}
_HEAD = """// Generated from the API's types by `python -m tools.studio types`; not committed.
export type AttributeValue = { readonly [tag: string]: unknown };
export type Item = { readonly [name: string]: AttributeValue };
export type Document = { readonly [name: string]: unknown };
"""


class UnsupportedType(Exception):
    """An API type that has no TypeScript equivalent here."""


def typescript() -> str:
    """Return the request and response types of every endpoint as TypeScript."""
    from tavola.studio.api import ENDPOINTS

    return render_types(ENDPOINTS)


def render_types(endpoints: Iterable[Any]) -> str:
    """Return the types of some endpoints and of everything they refer to."""
    writer = _Writer()
    endpoints = tuple(endpoints)
    requests = [writer.render_type(each.request_type) for each in endpoints]
    interfaces = list(writer.render_interfaces(is_request=True))
    responses = ["never" if each.raw else writer.render_type(each.response_type) for each in endpoints]
    interfaces += writer.render_interfaces(is_request=False)
    rows = [
        f'  "{each.name}": {{ request: {request}; response: {response}; isWrite: {str(each.is_write).lower()} }};'
        for each, request, response in zip(endpoints, requests, responses, strict=True)
    ]
    return "\n".join([_HEAD, *interfaces, "export interface Endpoints {", *rows, "}", ""])


class _Writer:
    """Writes dataclasses as interfaces, each once."""

    def __init__(self) -> None:
        self._known: dict[str, type[Any]] = {}
        self._rendered: set[str] = set()

    def render_type(self, hint: Any) -> str:
        """Return a type as TypeScript."""
        from tavola.studio.types import AttributeValue, Document, Item

        named = {id(AttributeValue): "AttributeValue", id(Item): "Item", id(Document): "Document"}
        if hint == Item:
            return "Item"
        if id(hint) in named or hint == Mapping[str, Any]:
            return named.get(id(hint), "Document")
        if hint is Any or hint is object:
            return "unknown"
        if hint in _PLAIN:
            return _PLAIN[hint]
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Literal:
            return " | ".join(_literal(each) for each in inner)
        if origin in (Union, types.UnionType):
            return " | ".join(self.render_type(each) for each in inner)
        if origin in (tuple, list):
            if origin is tuple and inner[-1:] != (Ellipsis,):
                return f"readonly [{', '.join(self.render_type(each) for each in inner)}]"
            return f"readonly ({self.render_type(inner[0])})[]"
        if origin in (dict, AbcMapping):
            value = self.render_type(inner[1])
            if get_origin(inner[0]) is Literal:  # it has all of these keys
                return f"Readonly<Record<{self.render_type(inner[0])}, {value}>>"
            return f"{{ readonly [name: string]: {value} }}"
        if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
            return f"readonly [{', '.join(map(self.render_type, get_type_hints(hint).values()))}]"
        if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, msgspec.Struct)):
            return self._register(hint)
        raise UnsupportedType(
            f"{hint!r} has no TypeScript of its own; make it of the types that tools/studio.py knows"
        )

    def _register(self, found: type[Any]) -> str:
        name = found.__name__
        if self._known.setdefault(name, found) is not found:
            raise UnsupportedType(
                f"{found.__module__} and {self._known[name].__module__} both call a type {name}; pages have one namespace"
            )
        return name

    def render_interfaces(self, *, is_request: bool) -> Iterator[str]:
        """Yield the interfaces not rendered yet, including those they refer to.

        A request may leave out fields that have a default; a response has them all.
        """
        while waiting := [name for name in self._known if name not in self._rendered]:
            for name in waiting:
                self._rendered.add(name)
                yield self._render_interface(self._known[name], is_request)

    def _render_interface(self, found: type[Any], is_request: bool) -> str:
        hints = get_type_hints(found)
        lines = [
            f"  readonly {name}{'' if required or not is_request else '?'}: {self.render_type(hints[name])};"
            for name, required in _fields(found)
        ]
        return "\n".join([f"export interface {found.__name__} {{", *lines, "}"])


def _fields(found: type[Any]) -> list[tuple[str, bool]]:
    """Return the fields of a dataclass or Struct, each with whether it is required."""
    if issubclass(found, msgspec.Struct):
        return [(each.name, each.required) for each in msgspec.structs.fields(found)]
    missing = dataclasses.MISSING
    return [
        (each.name, each.default is missing and each.default_factory is missing)
        for each in dataclasses.fields(found)
    ]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def write_types() -> None:
    """Write the generated types if they changed."""
    text = typescript()
    GENERATED.parent.mkdir(parents=True, exist_ok=True)
    if not GENERATED.exists() or GENERATED.read_text("utf-8") != text:
        GENERATED.write_text(text, "utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["types"]:
            write_types()
        case ["build"] | ["build", "--if-possible"]:
            from tools.studio_build import main

            sys.exit(main(typescript, if_possible="--if-possible" in sys.argv))
        case ["lint"] | ["lint", "--if-possible"]:
            from tools.studio_build import lint_main

            sys.exit(lint_main(typescript, if_possible="--if-possible" in sys.argv))
        case _:
            sys.exit("usage: python -m tools.studio types|build|lint [--if-possible]")
