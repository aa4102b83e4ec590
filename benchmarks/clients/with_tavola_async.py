"""Tavola's typed client on an event loop: one call after another, or as many at once as are asked for."""

import asyncio
from collections.abc import Awaitable, Callable

from benchmarks.clients.timing import ENTITIES, arguments, fields, name_of, report
from benchmarks.clients.with_tavola import Entities, Ticket
from tavola import connect_async


def main() -> None:
    """Time it."""
    told = arguments()
    db = connect_async(told.endpoint or "memory:")

    async def put(number: int) -> object:
        return await db.put(Ticket(**fields(number)))

    async def get(number: int) -> object:
        return await db.get(Ticket.Key(ticket_id=name_of(number)))

    async def lap(ask: Callable[[int], Awaitable[object]], first: int) -> None:
        numbers = range(first, first + ENTITIES)
        if told.at_once == 1:
            for number in numbers:
                await ask(number)
        for at in range(0, ENTITIES if told.at_once > 1 else 0, told.at_once):
            await asyncio.gather(*map(ask, numbers[at : at + told.at_once]))

    with asyncio.Runner() as runner:
        if told.create or told.endpoint is None:
            runner.run(db.create_tables(Entities))
        report(
            told,
            lambda n: runner.run(put(n)),
            lambda n: runner.run(get(n)),
            put=lambda first: runner.run(lap(put, first)),
            get=lambda first: runner.run(lap(get, first)),
        )
        runner.run(db.close())


if __name__ == "__main__":
    main()
