"""The studio's pages: their types, made of the API's, and their build.

`python -m tools.studio types` writes web/src/generated/api.ts; `build` does that, checks the types and builds.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Mapping as AbcMapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

WEB = Path(__file__).parents[1] / "src" / "tavola" / "studio" / "web"
GENERATED = WEB / "src" / "generated" / "api.ts"

_PLAIN = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Decimal: "string",
}
_HEAD = """// Made of the API's types by `python -m tools.studio types`; not kept in the repository.
export type AttributeValue = { readonly [tag: string]: unknown };
export type Item = { readonly [name: string]: AttributeValue };
export type Document = { readonly [name: string]: unknown };
"""


class TypeUntold(Exception):
    """A type of the API that the pages' types have no word for."""


def typescript() -> str:
    """Return the types of every question of the API, in TypeScript."""
    from tavola.studio.api import ENDPOINTS

    return written_types(ENDPOINTS)


def written_types(endpoints: Iterable[Any]) -> str:
    """Return the types of some questions, with all that they name."""
    writer = _Writer()
    rows = []
    for endpoint in endpoints:
        gives = "never" if endpoint.raw else writer.told(endpoint.gives)
        rows.append(
            f'  "{endpoint.name}": {{ asks: {writer.told(endpoint.asks)}; gives: {gives}; changes: {str(endpoint.changes).lower()} }};'
        )
    return "\n".join([_HEAD, *writer.written(), "export interface Endpoints {", *rows, "}", ""])


class _Writer:
    """Writes dataclasses as interfaces, each once."""

    def __init__(self) -> None:
        self._known: dict[str, type[Any]] = {}

    def told(self, hint: Any) -> str:
        """Return a type in TypeScript's words."""
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
            return " | ".join(self.told(each) for each in inner)
        if origin in (tuple, list):
            if origin is tuple and inner[-1:] != (Ellipsis,):
                return f"readonly [{', '.join(self.told(each) for each in inner)}]"
            return f"readonly ({self.told(inner[0])})[]"
        if origin in (dict, AbcMapping):
            return f"{{ readonly [name: string]: {self.told(inner[1])} }}"
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._interface(hint)
        raise TypeUntold(
            f"{hint!r} has no TypeScript of its own; make it of the types that tools/studio.py knows"
        )

    def _interface(self, found: type[Any]) -> str:
        name = found.__name__
        if self._known.setdefault(name, found) is not found:
            raise TypeUntold(
                f"{found.__module__} and {self._known[name].__module__} both call a type {name}; pages have one namespace"
            )
        return name

    def written(self) -> Iterator[str]:
        """Give the interfaces, and those that they name."""
        done: set[str] = set()
        while waiting := [name for name in self._known if name not in done]:
            for name in waiting:
                done.add(name)
                yield self._written(self._known[name])

    def _written(self, found: type[Any]) -> str:
        hints = get_type_hints(found)
        lines = []
        for field in dataclasses.fields(found):
            given = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            lines.append(f"  readonly {field.name}{'' if given else '?'}: {self.told(hints[field.name])};")
        return "\n".join([f"export interface {found.__name__} {{", *lines, "}"])


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def write_types() -> None:
    """Write the pages' types, if they are other than what stands."""
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
        case _:
            sys.exit("usage: python -m tools.studio types|build [--if-possible]")
