"""Organisation: a company and its users in one partition, and the trap of filters.

One query fetches the company with all its users. Asking the same partition for the active ones with a filter reads, and pays for, everybody, and throws
most away. The order of an index that begins with the status reads those who are wanted; and as it is an index, a user whose status
changes moves within it, while the user's own key stays.
"""

from __future__ import annotations

from typing import Literal

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Collection,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    found,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, fetched

Standing = Literal["active", "invited", "left"]


class Directory(Table, name="gallery-directory", pk="PK", sk="SK"):
    """Companies and their users."""

    by_status = Gsi(pk="GSI1PK", sk="GSI1SK")


class Org(Entity, table=Directory):
    """A company."""

    org_id: Attr[str]
    plan: Attr[str]

    class Key(PrimaryKey["Org"], pk="ORG#{org_id}", sk="METADATA"):
        org_id: str


class OrgUser(
    Entity,
    table=Directory,
    writes=(
        WritePattern("A user", "put", per_second=1, item_bytes=700),
        WritePattern("A user's status", "update", ("status",), per_second=1, item_bytes=700),
    ),
):
    """A user of a company."""

    org_id: Attr[str]
    user_id: Attr[str]
    status: Attr[Standing] = attr(default="active")
    bio: Attr[str]

    class Key(PrimaryKey["OrgUser"], pk="ORG#{org_id}", sk="USER#{user_id}"):
        org_id: str
        user_id: str

    class InOrg(
        Query["OrgUser"],
        on=Key,
        access=AccessPattern("A company's users", per_second=5, items=60, item_bytes=700),
    ):
        org_id: str
        user_id: Sort[str] = sort()

    # tavola: ignore[mutable-index-key] a user changes status once or twice, and is asked for by it ten times a second
    class ByStatus(
        Query["OrgUser"],
        on=Directory.by_status,
        pk="ORG#{org_id}",
        sk="STATUS#{status}#USER#{user_id}",
        access=AccessPattern("A company's users of a status", per_second=10, items=6, item_bytes=700),
    ):
        org_id: str
        status: Sort[Standing] = sort()
        user_id: Sort[str] = sort()


class OrgFile(
    Collection,
    pk="ORG#{org_id}",
    access=AccessPattern("A company with its users", per_second=2, items=61, item_bytes=700),
):
    """A company with all its users."""

    org_id: str
    org: Org | None = found()
    users: list[OrgUser] = found()


def members() -> tuple[Entity, ...]:
    """Return a company of sixty users, of whom six are active, and one of two."""
    made: list[Entity] = [Org(org_id="org-1", plan="team"), Org(org_id="org-2", plan="free")]
    for number in range(60):
        status: Standing = "active" if number % 10 == 0 else "left" if number % 3 else "invited"
        made.append(OrgUser(org_id="org-1", user_id=f"user-{number:02}", status=status, bio=_bio(number)))
    made += [OrgUser(org_id="org-2", user_id=f"user-{number:02}", bio=_bio(number)[:80]) for number in (1, 2)]
    return tuple(made)


def _bio(number: int) -> str:
    text = (
        f"Works on release {number % 7 + 1}; asks for reviews early, and answers the desk in the afternoons. "
    )
    return (text * 8)[:500]


async def together(db: AsyncConnection) -> tuple[Told, ...]:
    """Fetch companies with their users."""
    return (
        await fetched(db, "org-2 and its users", OrgFile(org_id="org-2")),
        await fetched(db, "org-1 and its users", OrgFile(org_id="org-1")),
    )


async def filter_trap(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for the active users with a filter, then by a key that says so."""
    filtered = OrgUser.InOrg(org_id="org-1").where(OrgUser.status.eq("active"))
    return (
        await asked(db, "The trap: everybody is read, a filter throws most away", filtered),
        await asked(db, "The design: the key says it", OrgUser.ByStatus(org_id="org-1").status.eq("active")),
    )


async def a_user_leaves(db: AsyncConnection) -> tuple[Told, ...]:
    """Change a user's status, and see the index follow; then change it back."""
    active = OrgUser.ByStatus(org_id="org-1").status.eq("active")
    key = OrgUser.Key(org_id="org-1", user_id="user-10")
    await db.update(key, OrgUser.status.set("active"))
    before = await asked(db, "Active before", active)
    try:
        left = await db.explain.update(key, OrgUser.status.set("left"), run=True)
        units = left.consumed
        moved = Told(
            "The change: one write of the item, two in the index, out of one place and into another",
            (left.result,),
            units.reads if units else 0,
            units.writes if units else 0,
            request=str(left),
        )
        return before, moved, await asked(db, "Active after", active)
    finally:
        await db.update(key, OrgUser.status.set("active"))


SAMPLE = Sample(
    name="organisation",
    title="Organisation",
    shows="An item collection read with one query, and what a filter reads, returns and costs beside a key.",
    source="Patterns and best practices: single-table design, and the gotcha of filter expressions",
    tables=(Directory,),
    entities=members,
    demonstrations=(
        Demonstration("together", "A company with its users", together),
        Demonstration("filter-trap", "The filter trap", filter_trap),
        Demonstration("leaves", "A status changes, and the index follows", a_user_leaves, writes=True),
    ),
)
