"""A connection that can read tables and not change them.

Each endpoint declares whether it changes anything, and a read-only studio refuses those that do. This is the second lock in
case a declaration is wrong: only operations known to read pass, everything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncRemembering
from tavola.handles import AsyncConnection
from tavola.studio.monitoring.request_shapes import is_read
from tavola.studio.problems import RequestRefused

DESCRIBE_OPERATIONS = frozenset(
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


def read_only_connection(connection: AsyncConnection) -> AsyncConnection:
    """Return a connection to the same tables through which nothing can be changed."""
    return AsyncConnection(ReadOnlyBackend(connection.backend), connection.target)


class ReadOnlyBackend:
    """Passes on what reads, and refuses the rest before it is sent."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers to a read."""
        if operation not in DESCRIBE_OPERATIONS and not is_read(operation, request):
            raise RequestRefused(
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
        return ReadOnlyBackend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()
