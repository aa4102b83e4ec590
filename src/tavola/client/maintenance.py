"""Operations on whole tables: create and compare them, verify index keys, plan and run migrations.

These are the programs behind the methods of `Connection` and `AsyncConnection`. The modules that do the work are imported when a method is
first called: a program that serves requests does not need them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tavola.client.batches import ProgressReporter
from tavola.client.checkpoints import CheckpointStore, open_checkpoints
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.provisioning import blueprint_of, delete_table
from tavola.client.reports import BackfillReport, KeyReport, MigrationPlan, TableChanges
from tavola.model import Entity, Table


def create_tables(context: Context, *tables: type[Table], change: bool = False) -> Program[None]:
    """Create tables as their models declare them, with indexes, stream, time to live and recovery.

    An existing table is left as it is, except that a declared time to live or recovery is switched on. If its key differs,
    or it lacks a declared index, `TableMismatch` is raised. With `change` it is altered to match its model, as
    `apply_changes` does without `drop`.
    """
    from tavola.client.table_changes import ensure_table  # noqa: PLC0415 - see the module's docstring

    for table in tables:
        yield from ensure_table(blueprint_of(context, table), change)


def delete_tables(context: Context, *tables: type[Table]) -> Program[None]:
    """Delete tables with everything in them; missing tables are not an error."""
    for table in tables:
        yield from delete_table(context.name_of(table))


def table_changes(context: Context, table: type[Table]) -> Program[TableChanges]:
    """Return the differences between an existing table and its model; nothing is changed."""
    from tavola.client.table_changes import table_changes as compare  # noqa: PLC0415 - see the docstring

    return (yield from compare(blueprint_of(context, table)))


def apply_changes(context: Context, table: type[Table], *, drop: bool = False) -> Program[TableChanges]:
    """Alter a table to match its model, one change after the other, and return what was changed.

    Changes that remove something (an index, the stream, recovery, throughput) are made only with `drop`. If a difference
    cannot be changed in place, `TableMismatch` is raised before anything is changed.
    """
    from tavola.client.table_changes import apply_changes as apply  # noqa: PLC0415 - see the docstring

    return (yield from apply(blueprint_of(context, table), drop))


def verify_keys(
    context: Context,
    table: type[Table],
    *,
    repair: bool = False,
    segments: int = 1,
    units_per_second: float | None = None,
    checkpoint: str | os.PathLike[str] | CheckpointStore | None = None,
    progress: ProgressReporter | None = None,
) -> Program[KeyReport]:
    """Read a whole table and report index keys and guards of unique values that do not match the items' fields.

    With `repair` each is corrected, provided that its item has not changed since it was read, at up to `units_per_second`
    write units. A `checkpoint`, a file's path or an object of your own, lets an interrupted run continue.
    """
    from tavola.client.verification import verify_keys as verify  # noqa: PLC0415 - see the docstring

    options = _sweep_options(segments, units_per_second, checkpoint, progress)
    return (yield from verify(context, table, repair, options))


def plan_migration(
    context: Context,
    table: type[Table],
    *,
    was: Mapping[str, Any] | type[Table] | None = None,
    exact: bool = False,
    region: str | None = None,
) -> Program[MigrationPlan]:
    """Return what a backfill would rewrite and what it would cost, estimated from a sample of the items.

    `was` is the previous design, a document from `design_document` or a Table class: the plan then lists the differences.
    `exact` reads every item instead of a sample. Costs use the region's newest price book.
    """
    from tavola.client.migrations import plan_migration as plan  # noqa: PLC0415 - see the docstring

    return (yield from plan(context, table, was, exact, region))


def backfill(
    context: Context,
    table: type[Table],
    *,
    entities: Sequence[type[Entity]] | None = None,
    forget: Sequence[str] = (),
    segments: int = 1,
    units_per_second: float | None = None,
    checkpoint: str | os.PathLike[str] | CheckpointStore | None = None,
    progress: ProgressReporter | None = None,
) -> Program[BackfillReport]:
    """Rewrite every item that its entity would store differently now: keys, shards, schemas, defaults, guards.

    Each write is conditional on the item being as it was read, so the application can keep running. `entities` defaults to
    all entities of the table; attributes in `forget` are removed. The other options are those of `verify_keys`.
    """
    from tavola.client.migrations import backfill as rewrite  # noqa: PLC0415 - see the docstring

    options = _sweep_options(segments, units_per_second, checkpoint, progress, consistent=True)
    return (yield from rewrite(context, table, entities, forget, options))


def _sweep_options(
    segments: int,
    units_per_second: float | None,
    checkpoint: str | os.PathLike[str] | CheckpointStore | None,
    progress: ProgressReporter | None,
    *,
    consistent: bool = False,
) -> Any:
    from tavola.client.sweeps import SweepOptions  # noqa: PLC0415 - see the module's docstring

    return SweepOptions(
        segments, units_per_second, open_checkpoints(checkpoint), progress, consistent=consistent
    )
