"""Organisation chart: who reports to whom, kept in two ways.

As edges, a chart is walked: a query for each node, up or down, and a report is moved by writing one edge. As a hierarchy, each unit's sort key is the
way to it, so that a whole branch is one query; moving a branch writes every unit in it. Which is right depends on what is done more.
"""

from __future__ import annotations

from collections.abc import Awaitable

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, measured
from tavola.patterns import Edges, Node, Reached, Tree, TreeWork

CHART = (
    ("head-00", "head-01"),
    ("head-00", "head-02"),
    ("head-01", "lead-11"),
    ("head-01", "lead-12"),
    ("head-02", "lead-21"),
    ("lead-11", "eng-111"),
    ("lead-11", "eng-112"),
    ("lead-21", "eng-211"),
)
BRANCHES = (
    "europe",
    "europe/italy",
    "europe/italy/milan",
    "europe/italy/rome",
    "europe/italy-north",
    "asia",
    "asia/japan",
)
TREE = "units"


class Chart(Table, name="gallery-chart", pk="PK", sk="SK"):
    """Reports, and units."""

    inverted = Gsi(pk="SK", sk="PK")
    by_parent = Gsi(pk="GSI2PK", sk="GSI2SK")


class Report(Entity, table=Chart, writes=(WritePattern("A report", "put", per_second=1, item_bytes=140),)):
    """That one reports to another."""

    manager: Attr[str]
    report: Attr[str]

    class Key(PrimaryKey["Report"], pk="MANAGER#{manager}", sk="REPORT#{report}"):
        manager: str
        report: str

    class Reports(
        Query["Report"],
        on=Key,
        access=AccessPattern("Who reports to somebody", per_second=5, items=8, item_bytes=140),
    ):
        manager: str
        report: Sort[str] = sort()

    class Managers(
        Query["Report"],
        on=Chart.inverted,
        access=AccessPattern("To whom somebody reports", per_second=5, items=1, item_bytes=140),
    ):
        report: str
        manager: Sort[str] = sort()


class Unit(Node, table=Chart, writes=(WritePattern("A unit", "put", per_second=1, item_bytes=200),)):
    """A unit at its place in the company."""

    head: Attr[str]

    class Key(PrimaryKey["Unit"], pk="TREE#{tree}", sk="UNIT#{path}"):
        tree: str
        path: str

    class Under(
        Query["Unit"],
        on=Key,
        access=AccessPattern("A unit with all below it", per_second=5, items=20, item_bytes=200),
    ):
        tree: str
        path: Sort[str] = sort()

    class Children(
        Query["Unit"],
        on=Chart.by_parent,
        pk="TREE#{tree}#{parent}",
        sk="{path}",
        access=AccessPattern("The units directly below one", per_second=5, items=5, item_bytes=200),
    ):
        tree: str
        parent: str
        path: Sort[str] = sort()


class ChartWork(TreeWork, table=Chart):
    """A move of a branch, while it is under way."""

    class Key(PrimaryKey["ChartWork"], pk="TREE#{tree}", sk="WORK"):
        tree: str


def chart() -> tuple[Entity, ...]:
    """Return nine people's reports, and seven units."""
    made: list[Entity] = [Report(manager=manager, report=report) for manager, report in CHART]
    for path in BRANCHES:
        parent, _, _ = path.rpartition("/")
        depth = path.count("/") + 1
        made.append(Unit(tree=TREE, path=path, parent=parent or "/", depth=depth, head=f"head-{depth:02}"))
    return tuple(made)


def reports(db: AsyncConnection) -> Edges[AsyncConnection, Report]:
    """Return the chart as edges."""
    return Edges(db, Report, out=Report.Reports, into=Report.Managers)


def units(db: AsyncConnection) -> Tree[AsyncConnection, Unit, ChartWork]:
    """Return the chart as a hierarchy."""
    return Tree(db, Unit, ChartWork, under=Unit.Under, children=Unit.Children)


async def walks(db: AsyncConnection) -> tuple[Told, ...]:
    """Walk the edges down and up."""
    edges = reports(db)
    return (
        await measured(db, "Everybody below head-01, level by level", _reached(edges.below("head-01"))),
        await measured(db, "The managers of eng-111, the nearest first", _reached(edges.above("eng-111"))),
        await measured(db, "Two levels below head-00", _reached(edges.below("head-00", depth=2))),
    )


async def _reached(walk: Awaitable[list[Reached[Report]]]) -> list[tuple[int, str]]:
    return [(each.depth, each.node) for each in await walk]


async def branches(db: AsyncConnection) -> tuple[Told, ...]:
    """Read a branch with one query, the units directly below, and the way up."""
    tree = units(db)
    return (
        await measured(db, "All of europe", tree.subtree(TREE, "europe")),
        await measured(db, "europe/italy, and not europe/italy-north", tree.subtree(TREE, "europe/italy")),
        await measured(db, "Directly below europe", tree.children(TREE, "europe")),
        await measured(db, "The way to europe/italy/rome", tree.ancestors(TREE, "europe/italy/rome")),
    )


async def move(db: AsyncConnection) -> tuple[Told, ...]:
    """Move a branch and back: every unit in it is written."""
    tree = units(db)
    await _put_back(db)
    try:
        there = await measured(
            db, "europe/italy goes to asia/italy", tree.move(TREE, "europe/italy", "asia/italy")
        )
        found = await measured(db, "All of asia then", tree.subtree(TREE, "asia"))
        await tree.move(TREE, "asia/italy", "europe/italy")
    except BaseException:
        await _put_back(db)
        raise
    return there, found, await measured(db, "All of asia in the end", tree.subtree(TREE, "asia"))


async def _put_back(db: AsyncConnection) -> None:
    """Put the units where they belong, whatever a move that broke off has left."""
    moved = [unit async for unit in await db.query(Unit.Under(tree=TREE).path.begins_with("asia/italy"))]
    await db.delete_many([ChartWork.Key(tree=TREE), *moved])
    await db.put_many([each for each in chart() if isinstance(each, Unit)])


SAMPLE = Sample(
    name="org-chart",
    title="Organisation chart",
    shows="The same chart as edges that are walked and as a hierarchy that is read with one query.",
    source="Common patterns: adjacency list, organisational hierarchies",
    tables=(Chart,),
    entities=chart,
    demonstrations=(
        Demonstration("walks", "Edges: down and up", walks),
        Demonstration("branches", "Hierarchy: a branch is a query", branches),
        Demonstration("move", "Hierarchy: moving a branch", move, writes=True),
    ),
)
