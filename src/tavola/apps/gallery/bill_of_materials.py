"""Bill of materials: what is made of what, how much of it, and where a part is used.

Parts are edges with a quantity. Exploding a product multiplies along each way and adds up over all ways; a part that is made of itself is found and
named instead of walked for ever. Quantities are decimals, for half a litre of glue is a quantity too.
"""

from __future__ import annotations

from decimal import Decimal

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
    attr,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, measured
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


class Materials(Table, name="gallery-materials", pk="PK", sk="SK"):
    """Products and their parts."""

    inverted = Gsi(pk="SK", sk="PK")


class Part(Entity, table=Materials, writes=(WritePattern("A part", "put", per_second=1, item_bytes=140),)):
    """That a whole has so much of a part."""

    whole: Attr[str]
    part: Attr[str]
    quantity: Attr[Decimal] = attr(default=Decimal(1))

    class Key(PrimaryKey["Part"], pk="WHOLE#{whole}", sk="PART#{part}"):
        whole: str
        part: str

    class Of(
        Query["Part"],
        on=Key,
        access=AccessPattern("What a whole is made of", per_second=5, items=12, item_bytes=140),
    ):
        whole: str
        part: Sort[str] = sort()

    class UsedIn(
        Query["Part"],
        on=Materials.inverted,
        access=AccessPattern("What a part is used in", per_second=2, items=12, item_bytes=140),
    ):
        part: str
        whole: Sort[str] = sort()


def bill() -> tuple[Part, ...]:
    """Return two products that share parts."""
    return tuple(Part(whole=whole, part=part, quantity=Decimal(count)) for whole, part, count in PARTS)


def parts(db: AsyncConnection) -> Edges[AsyncConnection, Part]:
    """Return the bill as edges."""
    return Edges(db, Part, out=Part.Of, into=Part.UsedIn)


async def explosion(db: AsyncConnection) -> tuple[Told, ...]:
    """Tell what products are made of, all the way down."""
    edges = parts(db)
    return (
        await measured(db, "One bicycle", edges.explode("bicycle", "quantity")),
        await measured(db, "Ten of them", edges.explode("bicycle", "quantity", times=10)),
        await measured(db, "Its parts alone", edges.out("bicycle")),
    )


async def where_used(db: AsyncConnection) -> tuple[Told, ...]:
    """Tell in what a part is used, all the way up."""
    edges = parts(db)
    above = await edges.above("spoke")
    return (
        await measured(db, "Bolts go into", edges.into("bolt")),
        Told("Spokes end up in", tuple((each.depth, each.node) for each in above)),
    )


async def cycle(db: AsyncConnection) -> tuple[Told, ...]:
    """Make a tube of a bicycle, which cannot be, and see it named; then take it away."""
    edges = parts(db)
    await edges.link(Part(whole="tube", part="bicycle"))
    try:
        await edges.explode("bicycle", "quantity")
        told = Told("A bicycle of tubes of bicycles")
    except CycleFound as found:
        told = Told("A bicycle of tubes of bicycles", refused=str(found))
    finally:
        await edges.unlink("tube", "bicycle")
    return (told,)


SAMPLE = Sample(
    name="bill-of-materials",
    title="Bill of materials",
    shows="An adjacency list with quantities: exploded down, asked upwards, cycles named.",
    source="Common patterns: adjacency list, bill of materials",
    tables=(Materials,),
    entities=bill,
    demonstrations=(
        Demonstration("explosion", "What it is made of", explosion),
        Demonstration("where-used", "Where a part is used", where_used),
        Demonstration("cycle", "A part that is made of itself", cycle, writes=True),
    ),
)
