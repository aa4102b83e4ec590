"""pydynox, whose core is Rust: by its synchronous methods, or several calls at once on an event loop.

On an endpoint whose table is there, or on its own stand-in for DynamoDB within this process.
"""

import asyncio
from contextlib import AbstractContextManager, nullcontext

from pydynox import DynamoDBClient, Model, ModelConfig
from pydynox.attributes import (
    DatetimeAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    StringAttribute,
)

from benchmarks.clients.timing import ENTITIES, TABLE, arguments, fields, name_of, report

told = arguments()
client = None
if told.endpoint is not None:
    client = DynamoDBClient(
        region="us-east-1", access_key="local", secret_key="local", endpoint_url=told.endpoint
    )


class Ticket(Model):
    """The entity that every client stores."""

    model_config = ModelConfig(table=TABLE, client=client)

    pk = StringAttribute(partition_key=True, template="TICKET#{ticket_id}")
    sk = StringAttribute(sort_key=True, template="TICKET")
    gsi1pk = StringAttribute(template="CUSTOMER#{customer_id}")
    gsi1sk = StringAttribute()
    ticket_id = StringAttribute()
    customer_id = StringAttribute()
    subject = StringAttribute()
    body = StringAttribute()
    status = StringAttribute()
    channel = StringAttribute()
    language = StringAttribute()
    assignee = StringAttribute()
    priority = NumberAttribute()
    replies = NumberAttribute()
    score = NumberAttribute()
    created_at = DatetimeAttribute()
    updated_at = DatetimeAttribute()
    tags = ListAttribute()
    address = MapAttribute()


def made(number: int) -> Ticket:
    """Return one entity, the index's sort key made by hand: its templates do not know times."""
    item = fields(number)
    return Ticket(**item, gsi1sk=item["created_at"].isoformat())


def put(number: int) -> None:
    """Store one entity."""
    made(number).sync_save()


def get(number: int) -> object:
    """Read one entity."""
    return Ticket.sync_get(pk=f"TICKET#{name_of(number)}", sk="TICKET")


async def put_all(numbers: range) -> None:
    """Store entities at once."""
    await asyncio.gather(*(made(number).save() for number in numbers))


async def get_all(numbers: range) -> None:
    """Read entities at once."""
    await asyncio.gather(*(Ticket.get(pk=f"TICKET#{name_of(number)}", sk="TICKET") for number in numbers))


def main() -> None:
    """Time it."""
    around: AbstractContextManager[object] = nullcontext()
    if told.endpoint is None:
        from pydynox.testing import MemoryBackend

        around = MemoryBackend()
    with around, asyncio.Runner() as runner:
        if told.at_once == 1:
            report(told, put, get)
        else:
            report(
                told,
                put,
                get,
                put=lambda first: runner.run(put_all(range(first, first + ENTITIES))),
                get=lambda first: runner.run(get_all(range(first, first + ENTITIES))),
            )


if __name__ == "__main__":
    main()
