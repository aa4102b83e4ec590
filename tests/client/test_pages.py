"""A page is one part of a result and does not know the length of the whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tavola import Attr, Entity, PrimaryKey, Query, Sort, Table, connect, connect_async, sort


class Shelf(Table):
    """A table."""


class Volume(Entity, table=Shelf):
    """Something large."""

    shelf: Attr[str]
    number: Attr[int]
    text: Attr[str]

    class Key(PrimaryKey["Volume"], pk="SHELF#{shelf}", sk="{number}"):
        shelf: str
        number: int

    class On(Query["Volume"], on=Key):
        shelf: str
        number: Sort[int] = sort()


VOLUMES = [Volume(shelf="s", number=number, text="x" * 300_000) for number in range(12)]


def test_a_page_has_no_length_and_no_truth() -> None:
    """`items` holds one request's items, iterating reads all;

    len() and bool() are refused because they are ambiguous.
    """
    with connect("memory:") as db:
        db.create_tables(Shelf)
        db.put_many(VOLUMES)
        page: Any = db.query(Volume.On(shelf="s"))

        assert len(page.items) == 4
        assert len(list(page)) == db.count(Volume.On(shelf="s")) == 12
        with pytest.raises(TypeError):
            len(page)
        with pytest.raises(TypeError, match="a page has no truth value"):
            bool(page)


def test_an_asynchronous_page_is_waited_for() -> None:
    """An ordinary `for` raises an error that suggests `async for`."""

    async def main() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Shelf)
            await db.put_many(VOLUMES)
            page: Any = await db.query(Volume.On(shelf="s"))

            assert repr(page) == "<AsyncPage of 4, more pages follow>"
            assert len([each async for each in page]) == 12
            with pytest.raises(TypeError, match=r"use `async for`, .* or use page\.items"):
                list(page)
            with pytest.raises(TypeError, match="no truth value"):
                bool(page)

    asyncio.run(main())
