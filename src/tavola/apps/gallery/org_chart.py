"""Organisation chart: reporting lines, stored in two ways.

As edges, a chart is traversed with one query per node, and moving a report writes one edge. As a hierarchy, each unit's sort key is its
path, so a whole branch is one query, but moving a branch writes every unit in it. Choose by what is done more often.
"""

from __future__ import annotations

from collections.abc import Awaitable

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_measured
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


class Chart(tv.Table, name="gallery-chart", pk="PK", sk="SK"):
    """Reports, and units."""

    inverted = tv.Gsi(pk="SK", sk="PK")
    by_parent = tv.Gsi(pk="GSI2PK", sk="GSI2SK")


class Report(
    tv.Entity, table=Chart, writes=(tv.WritePattern("A report", "put", per_second=1, item_bytes=140),)
):
    """A reporting line from a manager to a report."""

    manager: tv.Attr[str]
    report: tv.Attr[str]

    class Key(tv.PrimaryKey["Report"], pk="MANAGER#{manager}", sk="REPORT#{report}"):
        manager: str
        report: str

    class Reports(
        tv.Query["Report"],
        on=Key,
        access=tv.AccessPattern("A manager's direct reports", per_second=5, items=8, item_bytes=140),
    ):
        manager: str
        report: tv.Sort[str] = tv.sort()

    class Managers(
        tv.Query["Report"],
        on=Chart.inverted,
        access=tv.AccessPattern("A person's manager", per_second=5, items=1, item_bytes=140),
    ):
        report: str
        manager: tv.Sort[str] = tv.sort()


class Unit(Node, table=Chart, writes=(tv.WritePattern("A unit", "put", per_second=1, item_bytes=200),)):
    """A unit of the company."""

    head: tv.Attr[str]

    class Key(tv.PrimaryKey["Unit"], pk="TREE#{tree}", sk="UNIT#{path}"):
        tree: str
        path: str

    class Under(
        tv.Query["Unit"],
        on=Key,
        access=tv.AccessPattern("A unit with all its subunits", per_second=5, items=20, item_bytes=200),
    ):
        tree: str
        path: tv.Sort[str] = tv.sort()

    class Children(
        tv.Query["Unit"],
        on=Chart.by_parent,
        pk="TREE#{tree}#{parent}",
        sk="{path}",
        access=tv.AccessPattern("The direct subunits of a unit", per_second=5, items=5, item_bytes=200),
    ):
        tree: str
        parent: str
        path: tv.Sort[str] = tv.sort()


class ChartWork(TreeWork, table=Chart):
    """A move of a branch in progress."""

    class Key(tv.PrimaryKey["ChartWork"], pk="TREE#{tree}", sk="WORK"):
        tree: str


def chart() -> tuple[tv.Entity, ...]:
    """Return the reporting lines of nine people, and seven units."""
    entities: list[tv.Entity] = [Report(manager=manager, report=report) for manager, report in CHART]
    for path in BRANCHES:
        parent, _, _ = path.rpartition("/")
        depth = path.count("/") + 1
        entities.append(
            Unit(tree=TREE, path=path, parent=parent or "/", depth=depth, head=f"head-{depth:02}")
        )
    return tuple(entities)


def reports(db: tv.AsyncConnection) -> Edges[tv.AsyncConnection, Report]:
    """Return the chart as edges."""
    return Edges(db, Report, out=Report.Reports, into=Report.Managers)


def units(db: tv.AsyncConnection) -> Tree[tv.AsyncConnection, Unit, ChartWork]:
    """Return the chart as a hierarchy."""
    return Tree(db, Unit, ChartWork, under=Unit.Under, children=Unit.Children)


SAMPLE = Sample(
    "org-chart",
    "Organisation chart",
    summary="The same chart as edges to traverse and as a hierarchy that is read with one query.",
    source="Common patterns: adjacency list, organisational hierarchies",
    tables=(Chart,),
    entities=chart,
)


@SAMPLE.demonstrate("walks", "Edges: traverse down and up")
async def walks(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Traverse the edges down and up."""
    edges = reports(db)
    return (
        await run_measured(db, "All reports of head-01 by level", _depths_and_nodes(edges.below("head-01"))),
        await run_measured(
            db, "Managers of eng-111, nearest first", _depths_and_nodes(edges.above("eng-111"))
        ),
        await run_measured(
            db, "Two levels below head-00", _depths_and_nodes(edges.below("head-00", depth=2))
        ),
    )


async def _depths_and_nodes(walk: Awaitable[list[Reached[Report]]]) -> list[tuple[int, str]]:
    return [(visit.depth, visit.node) for visit in await walk]


@SAMPLE.demonstrate("branches", "Hierarchy: read a branch")
async def branches(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Read a branch with one query, its direct subunits, and the path to a unit."""
    tree = units(db)
    return (
        await run_measured(db, "All subunits of europe", tree.subtree(TREE, "europe")),
        await run_measured(
            db, "Subunits of europe/italy, without europe/italy-north", tree.subtree(TREE, "europe/italy")
        ),
        await run_measured(db, "Direct subunits of europe", tree.children(TREE, "europe")),
        await run_measured(db, "Path to europe/italy/rome", tree.ancestors(TREE, "europe/italy/rome")),
    )


@SAMPLE.demonstrate("move", "Hierarchy: move a branch", writes=True)
async def move(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Move a branch and back; every unit in it is written."""
    tree = units(db)
    await _restore(db)
    try:
        moved = await run_measured(
            db, "Move europe/italy to asia/italy", tree.move(TREE, "europe/italy", "asia/italy")
        )
        subunits = await run_measured(db, "All subunits of asia after the move", tree.subtree(TREE, "asia"))
        await tree.move(TREE, "asia/italy", "europe/italy")
    except BaseException:
        await _restore(db)
        raise
    return (
        moved,
        subunits,
        await run_measured(db, "All subunits of asia after moving back", tree.subtree(TREE, "asia")),
    )


async def _restore(db: tv.AsyncConnection) -> None:
    """Restore all units, whatever an aborted move has left."""
    moved = [unit async for unit in await db.query(Unit.Under(tree=TREE).path.begins_with("asia/italy"))]
    await db.delete_many([ChartWork.Key(tree=TREE), *moved])
    await db.put_many([entity for entity in chart() if isinstance(entity, Unit)])
