"""What a page needs first: where the tables are, what is allowed, and which tables exist."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola import __version__
from tavola.errors import TavolaError
from tavola.model.document import TableDesign
from tavola.protocol.faults import Fault, ResourceNotFoundFault
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio, TablesLocation
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
    wanted = dict.fromkeys([*(table.name for table in designed), params.table])
    unlisted = (
        [name for name in wanted if name and name not in names] if more or (problem and answers) else []
    )
    asking = asyncio.Semaphore(_AT_ONCE)
    found = await asyncio.gather(*(_load_table(studio, name, asking) for name in (*names, *unlisted)))
    told = [table for table in found if table is not None]
    known = {table.name for table in told}
    told += [
        _missing_table(table, None if answers else problem) for table in designed if table.name not in known
    ]
    owners = {table.name: each.name for each in reversed(studio.declared) for table in each.design.tables}
    only = studio.designs[0] if len(studio.designs) == 1 else ""
    told = [_with_design(studio, table, owners.get(table.name, only)) for table in told]
    return Session(
        version=__version__,
        where=studio.where,
        read_only=studio.read_only,
        watching=studio.engine is not None and studio.monitor is not None,
        designs=studio.designs,
        designed=studio.design is not None,
        log=studio.log is not None,
        directory=studio.directory is not None,
        tables=tuple(sorted(told, key=lambda table: (not table.designed, table.name))),
        more_tables=more,
        first=_first_table(studio, told),
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


def _first_table(studio: Studio, told: Sequence[TableSummary]) -> str:
    """Return the table that a visitor sees first: the largest of the first design that has one here, else the first by name."""
    there = [table for table in told if table.status not in ("MISSING", "UNKNOWN")]
    for name in (*(each.name for each in studio.declared), None):
        own = [table for table in there if table.designed and name in (None, table.design)]
        if own:
            return max(own, key=lambda table: (table.bytes, -there.index(table))).name
    rest = there or list(told)
    return min(rest, key=lambda table: (not table.designed, table.name)).name if rest else ""


async def _load_table(studio: Studio, name: str, asking: asyncio.Semaphore) -> TableSummary | None:
    """Return what is known of a table; None: it is not there, or no longer."""
    design = studio.table_design(name)
    try:
        async with asking:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
    except ResourceNotFoundFault:
        return None
    except TavolaError as error:
        return _undescribed_table(name, design, problem_of(error))
    return summarise_table(described, design)


def summarise_table(described: dict[str, Any], design: TableDesign | None) -> TableSummary:
    """Return what DescribeTable and the design say of a table."""
    # Of a table that is being deleted AWS tells little more than its name.
    types = {
        each["AttributeName"]: each["AttributeType"] for each in described.get("AttributeDefinitions", ())
    }
    labels = {} if design is None else {index.name: index.label for index in design.indexes}
    indexes = [
        _index(each, types, labels, local=local)
        for members, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for each in described.get(members, ())
        if "KeySchema" in each
    ]
    billing = described.get("BillingModeSummary", {}).get("BillingMode")
    stream = described.get("StreamSpecification", {}).get("StreamEnabled", False)
    return TableSummary(
        name=described["TableName"],
        status=described["TableStatus"],
        keys=_keys(described.get("KeySchema", ()), types),
        indexes=tuple(sorted(indexes, key=lambda index: index.name)),
        items=described.get("ItemCount", 0),
        bytes=described.get("TableSizeBytes", 0),
        stream=stream,
        billing="on-demand" if billing == "PAY_PER_REQUEST" else "provisioned",
        designed=design is not None,
        label=described["TableName"] if design is None else design.label,
        entities=() if design is None else tuple(entity.name for entity in design.entities),
        design="",
        command="",
    )


def _keys(schema: Sequence[dict[str, Any]], types: dict[str, Any]) -> tuple[TableKeyAttribute, ...]:
    return tuple(
        TableKeyAttribute(each["AttributeName"], types[each["AttributeName"]], each["KeyType"])
        for each in schema
        if each["AttributeName"] in types
    )


def _index(
    each: dict[str, Any], types: dict[str, Any], labels: dict[str, str], *, local: bool
) -> IndexSummary:
    projection = each["Projection"]
    return IndexSummary(
        name=each["IndexName"],
        local=local,
        keys=_keys(each["KeySchema"], types),
        projection=projection.get("ProjectionType", "ALL"),
        included=tuple(projection.get("NonKeyAttributes", ())),
        status=each.get("IndexStatus", "ACTIVE"),
        items=each.get("ItemCount", 0),
        bytes=each.get("IndexSizeBytes", 0),
        label=labels.get(each["IndexName"], each["IndexName"]),
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


def _missing_table(design: TableDesign, problem: Problem | None) -> TableSummary:
    return _undescribed_table(design.name, design, problem)


ENDPOINTS = (Endpoint("GET", "/session", load_session),)
