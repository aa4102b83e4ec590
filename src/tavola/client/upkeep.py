"""Upkeep: what is asked of tables and designs rather than of items, in both shells.

Making tables, holding them against their models, finding and mending stale keys, plans and backfills. Its tools are
loaded when they are asked for: a program that serves requests does not need them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tavola.client.checkpoints import Checkpoints, kept_in
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.progress import Telling
from tavola.client.provisioning import blueprint_of, delete_table
from tavola.client.reports import BackfillReport, KeyReport, MigrationPlan, TableChanges
from tavola.model import Entity, Table

R = TypeVar("R")


class Upkeep:
    """What a connection can be asked about whole tables."""

    _context: Context

    def _run(self, steps: Program[R]) -> R:
        raise NotImplementedError

    def create_tables(self, *tables: type[Table], change: bool = False) -> None:
        """Make tables as their models say, with indexes, stream, time to live and recovery.

        One that is there stays as it is; only a time to live or a recovery that is off is switched on. Where its key is
        another, or it lacks an index of the model, that is a `TableMismatch`. With `change` it is made what its model
        says, as `apply_changes` does without `drop`.
        """
        from tavola.client.table_changes import ensure_table  # noqa: PLC0415 - a tool's

        for table in tables:
            self._run(ensure_table(blueprint_of(self._context, table), change))

    def delete_tables(self, *tables: type[Table]) -> None:
        """Delete tables with everything in them; those that are not there are no error."""
        for table in tables:
            self._run(delete_table(self._context, table))

    def table_changes(self, table: type[Table]) -> TableChanges:
        """Return what a table that is there has otherwise than its model; nothing is changed."""
        from tavola.client.table_changes import table_changes  # noqa: PLC0415 - a tool's

        return self._run(table_changes(blueprint_of(self._context, table)))

    def apply_changes(self, table: type[Table], *, drop: bool = False) -> TableChanges:
        """Make a table what its model says, one change at a time, each waited for; return what was done.

        What takes something away (an index, the stream, recovery, throughput) is done with `drop` alone. What cannot be done in
        place is a `TableMismatch`, before anything is changed.
        """
        from tavola.client.table_changes import apply_changes  # noqa: PLC0415 - a tool's

        return self._run(apply_changes(blueprint_of(self._context, table), drop))

    def verify_keys(
        self,
        table: type[Table],
        *,
        repair: bool = False,
        segments: int = 1,
        units_per_second: float | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        progress: Telling | None = None,
    ) -> KeyReport:
        """Read a whole table and return which index keys and guards of unique values are not what the items' fields say.

        With `repair` each is put right, if its item still is as it was read, at no more than `units_per_second`
        write units. A `checkpoint`, a file's path or an object of one's own, lets killed work go on where it was.
        """
        from tavola.client.staleness import verify_keys  # noqa: PLC0415 - a tool's

        pace = _pace(segments, units_per_second, checkpoint, progress)
        return self._run(verify_keys(self._context, table, repair, pace))

    def plan_migration(
        self,
        table: type[Table],
        *,
        was: Mapping[str, Any] | type[Table] | None = None,
        exact: bool = False,
        region: str | None = None,
    ) -> MigrationPlan:
        """Return what a backfill would rewrite and what it would cost, from a sample of the items.

        `was` is the older design, as `design_document` wrote it, or the older Table class: then the plan also says what
        is otherwise. `exact` looks at every item. The dollars are those of a region's newest price book.
        """
        from tavola.client.migrations import plan_migration  # noqa: PLC0415 - a tool's

        return self._run(plan_migration(self._context, table, was, exact, region))

    def backfill(
        self,
        table: type[Table],
        *,
        entities: Sequence[type[Entity]] | None = None,
        forget: Sequence[str] = (),
        segments: int = 1,
        units_per_second: float | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        progress: Telling | None = None,
    ) -> BackfillReport:
        """Rewrite every item that its entity would write otherwise now: keys, shards, schemas, defaults, guards.

        Each write holds only if its item is as it was read, so the application may go on. `entities` are all of the table
        unless given; attributes in `forget` are removed. The rest is as in `verify_keys`.
        """
        from tavola.client.migrations import backfill  # noqa: PLC0415 - a tool's

        pace = _pace(segments, units_per_second, checkpoint, progress, consistent=True)
        return self._run(backfill(self._context, table, entities, forget, pace))


class AsyncUpkeep:
    """The same on an event loop."""

    _context: Context

    async def _run(self, steps: Program[R]) -> R:
        raise NotImplementedError

    async def create_tables(self, *tables: type[Table], change: bool = False) -> None:
        """Make tables as their models say, with indexes, stream, time to live and recovery.

        One that is there stays as it is; only a time to live or a recovery that is off is switched on. Where its key is
        another, or it lacks an index of the model, that is a `TableMismatch`. With `change` it is made what its model
        says, as `apply_changes` does without `drop`.
        """
        from tavola.client.table_changes import ensure_table  # noqa: PLC0415 - a tool's

        for table in tables:
            await self._run(ensure_table(blueprint_of(self._context, table), change))

    async def delete_tables(self, *tables: type[Table]) -> None:
        """Delete tables with everything in them; those that are not there are no error."""
        for table in tables:
            await self._run(delete_table(self._context, table))

    async def table_changes(self, table: type[Table]) -> TableChanges:
        """Return what a table that is there has otherwise than its model; nothing is changed."""
        from tavola.client.table_changes import table_changes  # noqa: PLC0415 - a tool's

        return await self._run(table_changes(blueprint_of(self._context, table)))

    async def apply_changes(self, table: type[Table], *, drop: bool = False) -> TableChanges:
        """Make a table what its model says, one change at a time, each waited for; return what was done.

        What takes something away (an index, the stream, recovery, throughput) is done with `drop` alone. What cannot be done in
        place is a `TableMismatch`, before anything is changed.
        """
        from tavola.client.table_changes import apply_changes  # noqa: PLC0415 - a tool's

        return await self._run(apply_changes(blueprint_of(self._context, table), drop))

    async def verify_keys(
        self,
        table: type[Table],
        *,
        repair: bool = False,
        segments: int = 1,
        units_per_second: float | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        progress: Telling | None = None,
    ) -> KeyReport:
        """Read a whole table and return which index keys and guards of unique values are not what the items' fields say.

        With `repair` each is put right, if its item still is as it was read, at no more than `units_per_second`
        write units. A `checkpoint`, a file's path or an object of one's own, lets killed work go on where it was.
        """
        from tavola.client.staleness import verify_keys  # noqa: PLC0415 - a tool's

        pace = _pace(segments, units_per_second, checkpoint, progress)
        return await self._run(verify_keys(self._context, table, repair, pace))

    async def plan_migration(
        self,
        table: type[Table],
        *,
        was: Mapping[str, Any] | type[Table] | None = None,
        exact: bool = False,
        region: str | None = None,
    ) -> MigrationPlan:
        """Return what a backfill would rewrite and what it would cost, from a sample of the items.

        `was` is the older design, as `design_document` wrote it, or the older Table class: then the plan also says what
        is otherwise. `exact` looks at every item. The dollars are those of a region's newest price book.
        """
        from tavola.client.migrations import plan_migration  # noqa: PLC0415 - a tool's

        return await self._run(plan_migration(self._context, table, was, exact, region))

    async def backfill(
        self,
        table: type[Table],
        *,
        entities: Sequence[type[Entity]] | None = None,
        forget: Sequence[str] = (),
        segments: int = 1,
        units_per_second: float | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        progress: Telling | None = None,
    ) -> BackfillReport:
        """Rewrite every item that its entity would write otherwise now: keys, shards, schemas, defaults, guards.

        Each write holds only if its item is as it was read, so the application may go on. `entities` are all of the table
        unless given; attributes in `forget` are removed. The rest is as in `verify_keys`.
        """
        from tavola.client.migrations import backfill  # noqa: PLC0415 - a tool's

        pace = _pace(segments, units_per_second, checkpoint, progress, consistent=True)
        return await self._run(backfill(self._context, table, entities, forget, pace))


def _pace(
    segments: int,
    units_per_second: float | None,
    checkpoint: str | os.PathLike[str] | Checkpoints | None,
    progress: Telling | None,
    *,
    consistent: bool = False,
) -> Any:
    from tavola.client.sweeps import Pace  # noqa: PLC0415 - a tool's

    return Pace(segments, units_per_second, kept_in(checkpoint), progress, consistent=consistent)
