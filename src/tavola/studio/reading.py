"""Reading: tables that can be asked and not changed, whatever an endpoint has in mind.

An endpoint says of itself whether it changes something, and read-only refuses it by that word. This is the second lock, for the
day when the word is wrong: every call passes here, and only operations that are known to read go on. What nobody has listed
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.backends import PastUnavailable
from tavola.client import AsyncBackend, AsyncRemembering
from tavola.connections import AsyncConnection
from tavola.studio.problems import Refused
from tavola.studio.watching.shapes import is_read

TELLING = frozenset(
    {
        *(
            "DescribeBackup",
            "DescribeBulkOperation",
            "DescribeContinuousBackups",
            "DescribeContributorInsights",
        ),
        *("DescribeEndpoints", "DescribeExport", "DescribeGlobalTable", "DescribeGlobalTableSettings"),
        *("DescribeImport", "DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeStream"),
        *("DescribeTable", "DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "GetRecords"),
        *("GetResourcePolicy", "GetShardIterator", "ListBackups", "ListBulkOperations"),
        *("ListContributorInsights", "ListExports", "ListGlobalTables", "ListImports", "ListStreams"),
        *("ListTables", "ListTagsOfResource"),
    }
)
"""Operations that tell of tables and their streams, and change nothing."""


def reading(connection: AsyncConnection) -> AsyncConnection:
    """Return a connection to the same tables through which nothing can be changed."""
    return AsyncConnection(ReadingBackend(connection.backend), connection.target)


class ReadingBackend:
    """Passes on what reads, and refuses the rest before it is sent."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers to a read."""
        if operation not in TELLING and not is_read(operation, request):
            raise Refused(
                "read-only",
                "Nothing may be changed here",
                f"The studio was started read-only, and {operation} may change what stands.",
                "Start it without --read-only (and with --live for AWS) to change something.",
                status=403,
            )
        return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as they were."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The endpoint")
        return ReadingBackend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()
