"""What a page is: one stretch of an answer, which cannot know how long the answer is."""

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
    """`items` are those of one request; who iterates gets everything; neither len() nor bool() tells one for the other."""
    with connect("memory:") as db:
        db.create_tables(Shelf)
        db.put_many(VOLUMES)
        page: Any = db.query(Volume.On(shelf="s"))

        assert len(page.items) == 4
        assert len(list(page)) == db.count(Volume.On(shelf="s")) == 12
        with pytest.raises(TypeError):
            len(page)
        with pytest.raises(TypeError, match="a page is neither true nor false"):
            bool(page)


def test_an_asynchronous_page_is_waited_for() -> None:
    """An ordinary `for` is told to be an `async for`."""

    async def main() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Shelf)
            await db.put_many(VOLUMES)
            page: Any = await db.query(Volume.On(shelf="s"))

            assert repr(page) == "<AsyncPage of 4, more to come>"
            assert len([each async for each in page]) == 12
            with pytest.raises(TypeError, match=r"write `async for`, or take page\.items"):
                list(page)
            with pytest.raises(TypeError, match="neither true nor false"):
                bool(page)

    asyncio.run(main())
