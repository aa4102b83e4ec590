"""Reading: rendered HCL back to plain data, with python-hcl2 and the rules of Terraform's quoted texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import hcl2

_ESCAPE = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|\\(.)|([$%])\4\{")
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


@lru_cache(maxsize=16)
def read_hcl(text: str) -> dict[str, Any]:
    """Return a module as plain data: texts are themselves, and what Terraform evaluates stays as `${…}`."""
    found: dict[str, Any] = _plain(hcl2.loads(text))
    return found


def resources(text: str, kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a kind in a module, by name."""
    return {
        name: body
        for block in read_hcl(text).get("resource", [])
        for name, body in block.get(kind, {}).items()
    }


def unquoted(text: str) -> str:
    """Return what a text in quotes means to Terraform."""

    def meant(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            return chr(int(code, 16))
        return _SIGNS[found[3]] if found[3] else f"{found[4]}{{"

    return _ESCAPE.sub(meant, text[1:-1])


def _plain(told: Any) -> Any:
    match told:
        case dict():
            return {_key(key): _plain(value) for key, value in told.items() if key != "__is_block__"}
        case list():
            return [_plain(value) for value in told]
        case str() if told.startswith('"') and "${" not in told.replace("$${", ""):
            return unquoted(told)
        case _:
            return told


def _key(key: str) -> str:
    return unquoted(key) if key.startswith('"') else key
