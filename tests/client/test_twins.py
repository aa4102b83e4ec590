"""The asynchronous client has the methods of the blocking one, with the same arguments, but awaited."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tavola import AsyncConnection, Connection
from tavola.client.explain.explain import (
    AsyncExplain,
    AsyncExplainedTransaction,
    Explain,
    ExplainedTransaction,
)

TWINS = [
    (Connection, AsyncConnection), (Explain, AsyncExplain),
    (ExplainedTransaction, AsyncExplainedTransaction),
]  # fmt: skip


def methods(cls: type) -> dict[str, Any]:
    """Return what a class offers, its properties included."""
    return {name: found for name, found in inspect.getmembers_static(cls) if not name.startswith("_")}


def as_blocking(text: str) -> str:
    """Return an annotation of the asynchronous client in terms of the blocking one."""
    return text.replace("Async", "").replace("Awaitable", "")


def parameters_of(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Return the arguments of a method: name, kind, default and type."""
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, as_blocking(str(each.annotation))) for each in parameters]


def forms(function: Any) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a method's arguments, and those of each overload."""
    yield parameters_of(function)
    yield from map(parameters_of, typing.get_overloads(function))


@pytest.mark.parametrize(("one", "other"), TWINS, ids=lambda cls: cls.__name__)
def test_twins_have_the_same_methods(one: type, other: type) -> None:
    """Every method or property of one client exists on the other."""
    mine, its = methods(one), methods(other)

    assert mine.keys() == its.keys()
    for name, found in mine.items():
        assert isinstance(found, property) == isinstance(its[name], property), name


@pytest.mark.parametrize(("one", "other"), TWINS, ids=lambda cls: cls.__name__)
def test_twins_have_the_same_arguments(one: type, other: type) -> None:
    """Every argument has the same name, position, default and type, in every overload."""
    its = methods(other)

    for name, found in methods(one).items():
        if inspect.isfunction(found):
            assert list(forms(found)) == list(forms(its[name])), f"{one.__name__}.{name}"


def test_a_difference_is_found() -> None:
    """A default that only one of them has is seen, so the comparison looks."""

    def get(self: Any, key: str, consistent: bool = False) -> str:
        return key

    def get_async(self: Any, key: str, consistent: bool = True) -> str:
        return key

    assert list(forms(get)) != list(forms(get_async))
