"""What a page needs first: where the tables are, what is allowed, and which tables exist."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import structs

from tavola import __version__
from tavola.errors import TavolaError
from tavola.keys import KeySchema
from tavola.model.document import TableDesign
from tavola.protocol.faults import Fault, ResourceNotFoundFault
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio, TablesLocation
from tavola.studio.table_layouts import parse_layout
from tavola.studio.types import ApiMessage
from tavola.web import Problem

_PAGE_TABLES = 100
_AT_ONCE = 8  # concurrent DescribeTable calls; one by one, a hundred remote tables would take seconds


class SessionRequest(ApiMessage):
    """Optionally a table that must be included even if there are more tables than are listed."""

    table: str = ""


class TableKeyAttribute(ApiMessage):
    """An attribute of a key, with its type."""

    name: str
    type: Literal["B", "N", "S"]
    role: Literal["HASH", "RANGE"]


class IndexSummary(ApiMessage):
    """A live index: its key, projection and size."""

    name: str
    local: bool
    keys: tuple[TableKeyAttribute, ...]
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    included: tuple[str, ...]
    status: str
    items: int
    bytes: int
    label: str  # its name in the design


class TableSummary(ApiMessage):
    """A live table, or a table that the design declares and that does not exist yet."""

    name: str
    status: str  # DynamoDB's; MISSING: declared but not created; UNKNOWN: it could not be described
    keys: tuple[TableKeyAttribute, ...]
    indexes: tuple[IndexSummary, ...]
    items: int
    bytes: int
    stream: bool
    billing: Literal["on-demand", "provisioned"]
    designed: bool
    label: str
    entities: tuple[str, ...]
    design: str  # the design that declares it, as given on the command line
    command: str  # that creates it if it is missing; may be empty
    problem: Problem | None = None  # why it could not be described


class StudioSession(ApiMessage):
    """The studio's settings and its tables."""

    version: str
    where: TablesLocation
    read_only: bool
    watching: bool  # all requests to the engine are monitored, not only the studio's own
    designs: tuple[str, ...]
    designed: bool
    log: bool
    directory: bool
    tables: tuple[TableSummary, ...]
    more_tables: bool  # listed are only the first tables, those of the design and the requested one
    first: str  # the table to open first: the largest of the first design that has any
    problem: Problem | None = None  # why the tables cannot be listed


async def load_session(studio: Studio, params: SessionRequest) -> StudioSession:
    """Return the session; if the endpoint does not respond, that is part of the result."""
    names: list[str] = []
    has_more = False
    problem: Problem | None = None
    answers = True
    try:
        answer = await studio.db.call("ListTables", {"Limit": _PAGE_TABLES})
        names, has_more = answer["TableNames"], "LastEvaluatedTableName" in answer
    except TavolaError as error:
        problem = problem_of(error)
        # Without permission to list tables, those of the design can be shown
        answers = isinstance(error, Fault)
    designed = () if studio.design is None else studio.design.tables
    names_of_interest = dict.fromkeys([*(table.name for table in designed), params.table])
    unlisted = (
        [name for name in names_of_interest if name and name not in names]
        if has_more or (problem and answers)
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
    owners = {
        table.name: declared_design.name
        for declared_design in reversed(studio.declared)
        for table in declared_design.design.tables
    }
    only = studio.designs[0] if len(studio.designs) == 1 else ""
    summaries = [_with_design(studio, table, owners.get(table.name, only)) for table in summaries]
    return StudioSession(
        version=__version__,
        where=studio.where,
        read_only=studio.read_only,
        watching=studio.features.monitor,
        designs=studio.designs,
        designed=studio.design is not None,
        log=studio.features.log,
        directory=studio.features.directory,
        tables=tuple(sorted(summaries, key=lambda table: (not table.designed, table.name))),
        more_tables=has_more,
        first=_first_table(studio, summaries),
        problem=problem,
    )


def _with_design(studio: Studio, table: TableSummary, design: str) -> TableSummary:
    """Return a table with the name of its design and, if it is missing, the command that creates it."""
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
    return structs.replace(table, design=design, command=shlex.join(words) if makes else "")


def _first_table(studio: Studio, tables: Sequence[TableSummary]) -> str:
    """Return the table to open first: the largest of the first design that has any, else the first by name."""
    available = [table for table in tables if table.status not in ("MISSING", "UNKNOWN")]
    for name in (*(declared_design.name for declared_design in studio.declared), None):
        designed_tables = [table for table in available if table.designed and name in (None, table.design)]
        if designed_tables:
            return max(designed_tables, key=lambda table: (table.bytes, -available.index(table))).name
    rest = available or list(tables)
    return min(rest, key=lambda table: (not table.designed, table.name)).name if rest else ""


async def _load_table(studio: Studio, name: str, limiter: asyncio.Semaphore) -> TableSummary | None:
    """Return the summary of a table; None if it does not exist."""
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
    """Return the summary of a table from DescribeTable and its design."""
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
        TableKeyAttribute(attribute.name, attribute.type, role)  # type: ignore[arg-type]  # as DescribeTable names them
        for attribute, role in zip(schema.attributes, roles, strict=True)
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
