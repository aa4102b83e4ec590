"""Facts about live tables that an access decision may depend on.

Policy evaluation asks for facts synchronously, but tables are described over an async connection. So the evaluation is
repeated until every table it names has been loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.protocol.resources import TableFacts

R = TypeVar("R")
_TABLES_MAX = 100  # a transaction names no more


class LiveFacts:
    """The tables of a connection, as far as they were asked for."""

    def __init__(self, db: AsyncConnection) -> None:
        self._db = db
        self._known: dict[str, TableFacts | None] = {}
        self._requested: dict[str, None] = {}

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return what is known of a table; what is not known yet is noted to be asked for."""
        name = _table(name_or_arn)
        if name not in self._known:
            self._requested[name] = None
        return self._known.get(name)

    def iterator_stream(self, iterator: str) -> str | None:
        """Return nothing: an iterator means something to the engine that gave it."""
        return None

    async def resolve(self, question: Callable[[], R]) -> R:
        """Return the answer to a question that asks for facts, once all that it asks for is known."""
        while True:
            self._requested.clear()
            error: TavolaError | None = None
            answer: R | None = None
            try:
                answer = question()
            except TavolaError as raised:
                error = raised  # it may be one of a table that is not known yet
            wanted = tuple(self._requested)
            if not wanted or len(self._known) >= _TABLES_MAX:
                if error is not None:
                    raise error
                return cast("R", answer)
            for name in wanted:
                await self.load(name)

    async def load(self, name_or_arn: str) -> None:
        """Ask for a table; one that is not there is known to be none."""
        name = _table(name_or_arn)
        if name in self._known or name == "*":
            return
        try:
            described = (await self._db.call("DescribeTable", {"TableName": name}))["Table"]
        except TavolaError:
            self._known[name] = None
            return
        arn = described["TableArn"]
        stream = described.get("LatestStreamArn")
        stream_policy = None if stream is None else await self._policy(stream)
        self._known[name] = TableFacts(
            arn=arn,
            hash=_names(described["KeySchema"], "HASH")[0],
            range=next(iter(_names(described["KeySchema"], "RANGE")), None),
            types={
                each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]
            },
            indexes={
                each["IndexName"]: (_names(each["KeySchema"], "HASH"), _names(each["KeySchema"], "RANGE"))
                for members in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
                for each in described.get(members, ())
            },
            tags=await self._tags(arn),
            policy=await self._policy(arn),
            stream_policies={} if stream_policy is None else {stream: stream_policy},
        )

    async def _tags(self, arn: str) -> dict[str, str]:
        try:
            answer = await self._db.call("ListTagsOfResource", {"ResourceArn": arn})
        except TavolaError:
            return {}
        return {each["Key"]: each["Value"] for each in answer.get("Tags", ())}

    async def _policy(self, arn: str) -> str | None:
        try:
            answer: dict[str, Any] = await self._db.call("GetResourcePolicy", {"ResourceArn": arn})
        except TavolaError:
            return None  # there is none, which is told as a fault
        return answer.get("Policy")


def _table(name_or_arn: str) -> str:
    return name_or_arn.partition(":table/")[2].partition("/")[0] or name_or_arn


def _names(schema: list[dict[str, str]], role: str) -> tuple[str, ...]:
    return tuple(each["AttributeName"] for each in schema if each["KeyType"] == role)
