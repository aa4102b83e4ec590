"""Values by name, computed on first use, with detection of circular references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tavola.iac.formats.errors import FormatRefused


class LazyValues:
    """Computes each named value once; a value that depends on itself is refused."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._opened: list[str] = []

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the value of a name; `work` computes it and may request other names."""
        if name in self._known:
            return self._known[name]
        if name in self._opened:
            circle = " → ".join([*self._opened[self._opened.index(name) :], name])
            raise FormatRefused(f"it stands on itself: {circle}; break the circle", name)
        self._opened.append(name)
        try:
            self._known[name] = work()
        finally:
            self._opened.pop()
        return self._known[name]
