"""Copies of a module with one planted fault, to show that a test finds it."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType


def plant(module: ModuleType, check: str, without: str) -> ModuleType:
    """Return a copy of a module in which one check is replaced; the check must occur exactly once."""
    source = inspect.getsource(module)
    assert source.count(check) == 1, f"{check} is not in {module.__name__} any more"
    copy = ModuleType(f"planted.{module.__name__}")
    sys.modules[copy.__name__] = copy  # dataclasses look their module up
    try:
        exec(compile(source.replace(check, without), copy.__name__, "exec"), copy.__dict__)
    finally:
        del sys.modules[copy.__name__]
    return copy
