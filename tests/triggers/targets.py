"""Where a trigger can read: an engine in memory, one in a file, and one behind HTTP; all with a clock by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tavola import Connection, Engine, connect
from tavola.backends.embedded import EmbeddedBackend
from tavola.clock import ManualClock
from tavola.server.listener import running

NAMES = ("memory", "file", "http")
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@dataclass(frozen=True, slots=True)
class Target:
    """A connection, the engine behind it, and the engine's clock."""

    connection: Connection
    engine: Engine
    clock: ManualClock

    def table(self, view: str = "NEW_AND_OLD_IMAGES", *, on: bool = True) -> str:
        """Make a table with a key `pk` and a stream, and give its name."""
        name = f"t-{uuid.uuid4().hex}"
        stream = {"StreamEnabled": True, "StreamViewType": view} if on else {"StreamEnabled": False}
        self.connection.call(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": stream,
            },
        )
        return name

    def put(self, table: str, key: str, **attributes: dict[str, Any]) -> None:
        """Put an item."""
        self.connection.call("PutItem", {"TableName": table, "Item": {"pk": {"S": key}, **attributes}})

    def delete(self, table: str, key: str) -> None:
        """Delete an item."""
        self.connection.call("DeleteItem", {"TableName": table, "Key": {"pk": {"S": key}}})

    def tend(self) -> None:
        """Let the engine do what it does by itself in time: sweep, roll shards, trim."""
        while self.engine.run_background_work():
            pass


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Target]:
    """Give a target by its name."""
    clock = ManualClock()
    engine = Engine.open(folder / "store.db" if name == "file" else None, clock=clock)
    with closing(engine):
        if name == "http":
            with (
                running(engine) as endpoint,
                connect(endpoint.url, region="us-east-1", account="0" * 12) as far,
            ):
                yield Target(far, engine, clock)
        else:
            yield Target(Connection(EmbeddedBackend(engine, owned=False)), engine, clock)
