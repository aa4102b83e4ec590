"""The client for event loops has what the other has: the same methods, asked alike, but that one awaits them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tavola import AsyncConnection, Connection
from tavola.client.db import AsyncDb, Db
from tavola.client.explain.explain import (
    AsyncExplain,
    AsyncExplainedTransaction,
    Explain,
    ExplainedTransaction,
)

TWINS = [
    (Db, AsyncDb), (Connection, AsyncConnection), (Explain, AsyncExplain),
    (ExplainedTransaction, AsyncExplainedTransaction),
]  # fmt: skip


def methods(cls: type) -> dict[str, Any]:
    """Return what a class offers, its properties included."""
    return {name: found for name, found in inspect.getmembers_static(cls) if not name.startswith("_")}


def told(text: str) -> str:
    """Return an annotation of the asynchronous one in the words of the other."""
    return text.replace("Async", "").replace("Awaitable", "")


def asked(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Return the arguments of a method: name, kind, default and type."""
    given = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, told(str(each.annotation))) for each in given]


def forms(function: Any) -> Iterator[list[tuple[Any, ...]]]:
    """Give a method's arguments, for each overload too."""
    yield asked(function)
    yield from map(asked, typing.get_overloads(function))


@pytest.mark.parametrize(("one", "other"), TWINS, ids=lambda cls: cls.__name__)
def test_twins_have_the_same_methods(one: type, other: type) -> None:
    """What one offers the other does, as a method or as a property."""
    mine, its = methods(one), methods(other)

    assert mine.keys() == its.keys()
    for name, found in mine.items():
        assert isinstance(found, property) == isinstance(its[name], property), name


@pytest.mark.parametrize(("one", "other"), TWINS, ids=lambda cls: cls.__name__)
def test_twins_are_asked_alike(one: type, other: type) -> None:
    """Every argument has the same name, place, default and type; so has every overload."""
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
