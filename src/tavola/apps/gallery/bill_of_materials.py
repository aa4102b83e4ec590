"""Bill of materials: the parts of a product with quantities, and the products that use a part.

Parts are edges with a quantity. Exploding a product multiplies quantities along each path and adds up all paths; a part that contains
itself is reported instead of being followed forever. Quantities are decimals, because half a litre of glue is a quantity too.
"""

from __future__ import annotations

from decimal import Decimal

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_measured
from tavola.patterns import CycleFound, Edges

PARTS = (
    ("bicycle", "wheel", "2"),
    ("bicycle", "frame", "1"),
    ("bicycle", "bolt", "6"),
    ("wheel", "spoke", "32"),
    ("wheel", "bolt", "1"),
    ("frame", "tube", "3"),
    ("frame", "glue-litre", "0.05"),
    ("tricycle", "wheel", "3"),
)


class Materials(tv.Table, name="gallery-materials", pk="PK", sk="SK"):
    """Products and their parts."""

    inverted = tv.Gsi(pk="SK", sk="PK")


class MaterialPart(
    tv.Entity, table=Materials, writes=(tv.WritePattern("A part", "put", per_second=1, item_bytes=140),)
):
    """The quantity of a part in a product or assembly."""

    whole: tv.Attr[str]
    part: tv.Attr[str]
    quantity: tv.Attr[Decimal] = tv.attr(default=Decimal(1))

    class Key(tv.PrimaryKey["MaterialPart"], pk="WHOLE#{whole}", sk="PART#{part}"):
        whole: str
        part: str

    class ByWhole(
        tv.Query["MaterialPart"],
        on=Key,
        access=tv.AccessPattern("Parts of a product", per_second=5, items=12, item_bytes=140),
    ):
        whole: str
        part: tv.Sort[str] = tv.sort()

    class UsedIn(
        tv.Query["MaterialPart"],
        on=Materials.inverted,
        access=tv.AccessPattern("Products that use a part", per_second=2, items=12, item_bytes=140),
    ):
        part: str
        whole: tv.Sort[str] = tv.sort()


def bill() -> tuple[MaterialPart, ...]:
    """Return two products that share parts."""
    return tuple(
        MaterialPart(whole=whole, part=part, quantity=Decimal(count)) for whole, part, count in PARTS
    )


def parts(db: tv.AsyncConnection) -> Edges[tv.AsyncConnection, MaterialPart]:
    """Return the bill as edges."""
    return Edges(db, MaterialPart, out=MaterialPart.ByWhole, into=MaterialPart.UsedIn)


SAMPLE = Sample(
    "bill-of-materials",
    "Bill of materials",
    summary="An adjacency list with quantities: explode a product, find the uses of a part, detect cycles.",
    source="Common patterns: adjacency list, bill of materials",
    tables=(Materials,),
    entities=bill,
)


@SAMPLE.demonstrate("explosion", "Explode a product")
async def explosion(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Explode a product into all its parts."""
    edges = parts(db)
    return (
        await run_measured(db, "One bicycle", edges.explode("bicycle", "quantity")),
        await run_measured(db, "Ten bicycles", edges.explode("bicycle", "quantity", times=10)),
        await run_measured(db, "Direct parts of a bicycle", edges.out("bicycle")),
    )


@SAMPLE.demonstrate("where-used", "Find uses of a part")
async def where_used(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Find the products that use a part, directly or indirectly."""
    edges = parts(db)
    above = await edges.above("spoke")
    return (
        await run_measured(db, "Direct uses of bolts", edges.into("bolt")),
        StepResult("All uses of spokes", tuple((visit.depth, visit.node) for visit in above)),
    )


@SAMPLE.demonstrate("cycle", "Detect a cycle", writes=True)
async def cycle(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Make a bicycle a part of its own tube: the cycle is reported. Then remove it."""
    edges = parts(db)
    await edges.link(MaterialPart(whole="tube", part="bicycle"))
    try:
        await edges.explode("bicycle", "quantity")
        result = StepResult("A part that contains itself")
    except CycleFound as found:
        result = StepResult("A part that contains itself", error=str(found))
    finally:
        await edges.unlink("tube", "bicycle")
    return (result,)
