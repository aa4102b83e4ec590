"""What a page needs first: where the tables are, what is allowed, and which tables exist."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola import __version__
from tavola.errors import TavolaError
from tavola.keys import KeySchema
from tavola.model.document import TableDesign
from tavola.protocol.faults import Fault, ResourceNotFoundFault
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio, TablesLocation
from tavola.studio.table_layouts import parse_layout
from tavola.web import Problem

_PAGE_TABLES = 100
_AT_ONCE = 8  # concurrent DescribeTable calls; one by one, a hundred remote tables would take seconds


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session itself; with a table that is told of even where there are more tables than are listed."""

    table: str = ""


@dataclass(frozen=True, slots=True)
class TableKeyAttribute:
    """An attribute of a key, with its type."""

    name: str
    type: Literal["B", "N", "S"]
    role: Literal["HASH", "RANGE"]


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """An index as it stands: its key, what it holds of an item, and how much there is."""

    name: str
    local: bool
    keys: tuple[TableKeyAttribute, ...]
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    included: tuple[str, ...]
    status: str
    items: int
    bytes: int
    label: str  # what the design calls it


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table as it stands; of one that the design declares and nobody has made, what it would be."""

    name: str
    status: str  # MISSING: the design declares it, and it is not there; UNKNOWN: nobody can tell
    keys: tuple[TableKeyAttribute, ...]
    indexes: tuple[IndexSummary, ...]
    items: int
    bytes: int
    stream: bool
    billing: Literal["on-demand", "provisioned"]
    designed: bool
    label: str
    entities: tuple[str, ...]
    design: str  # the design that declares it, as it was named on the command line
    command: str  # that makes it, where it is missing and one can
    problem: Problem | None = None  # why nothing is known of it


@dataclass(frozen=True, slots=True)
class Session:
    """What the studio is, and the tables that it shows."""

    version: str
    where: TablesLocation
    read_only: bool
    watching: bool  # every call of the engine is seen, not only the studio's own
    designs: tuple[str, ...]
    designed: bool
    log: bool
    directory: bool
    tables: tuple[TableSummary, ...]
    more_tables: (
        bool  # more exist than listed; listed are the first, those of the design, and the requested one
    )
    first: str  # the table to begin with: the largest of the first design that is there
    problem: Problem | None = None  # why the tables cannot be listed


async def load_session(studio: Studio, params: SessionRequest) -> Session:
    """Return what the studio is; an endpoint that does not answer is told of, and is no failure of the studio's."""
    names: list[str] = []
    more = False
    problem: Problem | None = None
    answers = True
    try:
        answer = await studio.db.call("ListTables", {"Limit": _PAGE_TABLES})
        names, more = answer["TableNames"], "LastEvaluatedTableName" in answer
    except TavolaError as error:
        problem = problem_of(error)
        answers = isinstance(error, Fault)  # who may not list tables may still see those of the design
    designed = () if studio.design is None else studio.design.tables
    names_of_interest = dict.fromkeys([*(table.name for table in designed), params.table])
    unlisted = (
        [name for name in names_of_interest if name and name not in names]
        if more or (problem and answers)
        else []
    )
    limiter = asyncio.Semaphore(_AT_ONCE)
    described = await asyncio.gather(*(_load_table(studio, name, limiter) for name in (*names, *unlisted)))
    summaries = [table for table in described if table is not None]
    known = {table.name for table in summaries}
    summaries += [
        _undescribed_table(table.name, table, None if answers else problem)
        for table in designed
        if table.name not in known
    ]
    owners = {table.name: each.name for each in reversed(studio.declared) for table in each.design.tables}
    only = studio.designs[0] if len(studio.designs) == 1 else ""
    summaries = [_with_design(studio, table, owners.get(table.name, only)) for table in summaries]
    return Session(
        version=__version__,
        where=studio.where,
        read_only=studio.read_only,
        watching=studio.engine is not None and studio.monitor is not None,
        designs=studio.designs,
        designed=studio.design is not None,
        log=studio.log is not None,
        directory=studio.directory is not None,
        tables=tuple(sorted(summaries, key=lambda table: (not table.designed, table.name))),
        more_tables=more,
        first=_first_table(studio, summaries),
        problem=problem,
    )


def _with_design(studio: Studio, table: TableSummary, design: str) -> TableSummary:
    """Return a table with the design that declares it and, of one that is missing, the command that makes it."""
    if not table.designed:
        return table
    where, region = studio.where, studio.where.region
    endpoint = where.endpoint or (where.text if where.kind in ("http", "aws") else "")
    place = ["--endpoint", endpoint] if endpoint else ["--store", where.text] if where.kind == "file" else []
    words = [
        "tavola",
        "deploy",
        design,
        *place,
        *(["--region", region] if region and endpoint[:4] != "aws:" else []),
    ]
    makes = table.status == "MISSING" and design and place
    return replace(table, design=design, command=shlex.join(words) if makes else "")


def _first_table(studio: Studio, tables: Sequence[TableSummary]) -> str:
    """Return the table that a visitor sees first: the largest of the first design that has one here, else the first by name."""
    there = [table for table in tables if table.status not in ("MISSING", "UNKNOWN")]
    for name in (*(each.name for each in studio.declared), None):
        own = [table for table in there if table.designed and name in (None, table.design)]
        if own:
            return max(own, key=lambda table: (table.bytes, -there.index(table))).name
    rest = there or list(tables)
    return min(rest, key=lambda table: (not table.designed, table.name)).name if rest else ""


async def _load_table(studio: Studio, name: str, limiter: asyncio.Semaphore) -> TableSummary | None:
    """Return what is known of a table; None: it is not there, or no longer."""
    design = studio.table_design(name)
    try:
        async with limiter:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
    except ResourceNotFoundFault:
        return None
    except TavolaError as error:
        return _undescribed_table(name, design, problem_of(error))
    return summarise_table(described, design)


def summarise_table(described: dict[str, Any], design: TableDesign | None) -> TableSummary:
    """Return what DescribeTable and the design say of a table."""
    layout = parse_layout(described)
    labels = {} if design is None else {index.name: index.label for index in design.indexes}
    return TableSummary(
        name=layout.table,
        status=described["TableStatus"],
        keys=_key_attributes(layout.schema),
        indexes=tuple(
            IndexSummary(
                name=index.index or "",
                local=index.local,
                keys=_key_attributes(index.schema),
                projection=index.projection,
                included=index.included,
                status=index.status,
                items=index.items,
                bytes=index.bytes,
                label=labels.get(index.index or "", index.index or ""),
            )
            for index in layout.indexes
        ),
        items=layout.table_target.items,
        bytes=layout.table_target.bytes,
        stream=described.get("StreamSpecification", {}).get("StreamEnabled", False),
        billing="on-demand" if layout.on_demand else "provisioned",
        designed=design is not None,
        label=layout.table if design is None else design.label,
        entities=() if design is None else tuple(entity.name for entity in design.entities),
        design="",
        command="",
    )


def _key_attributes(schema: KeySchema) -> tuple[TableKeyAttribute, ...]:
    roles = ["HASH"] * len(schema.hash) + ["RANGE"] * len(schema.range)
    return tuple(
        TableKeyAttribute(each.name, each.type, role)  # type: ignore[arg-type]  # as DescribeTable names them
        for each, role in zip(schema.attributes, roles, strict=True)
    )


def _undescribed_table(name: str, design: TableDesign | None, problem: Problem | None) -> TableSummary:
    return TableSummary(
        name=name,
        status="UNKNOWN" if problem is not None else "MISSING",
        keys=(),
        indexes=(),
        items=0,
        bytes=0,
        stream=False,
        billing="on-demand",
        designed=design is not None,
        label=name if design is None else design.label,
        entities=() if design is None else tuple(entity.name for entity in design.entities),
        design="",
        command="",
        problem=problem,
    )


ENDPOINTS = (Endpoint("GET", "/session", load_session),)
