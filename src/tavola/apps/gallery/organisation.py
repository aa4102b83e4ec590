"""Organisation: a company and its users in one partition, and the cost of filters.

One query returns the company with all its users. Filtering the same partition for active users reads and pays for every user and
discards most. An index whose sort key begins with the status reads only the matching users; when a user's status changes, the user
moves within the index and keeps its own key.
"""

from __future__ import annotations

from typing import Literal

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_collect, run_query

UserStatus = Literal["active", "invited", "left"]


class CompanyDirectory(tv.Table, name="gallery-directory", pk="PK", sk="SK"):
    """Companies and their users."""

    by_status = tv.Gsi(pk="GSI1PK", sk="GSI1SK")


class Org(tv.Entity, table=CompanyDirectory):
    """A company."""

    org_id: tv.Attr[str]
    plan: tv.Attr[str]

    class Key(tv.PrimaryKey["Org"], pk="ORG#{org_id}", sk="METADATA"):
        org_id: str


class OrgUser(
    tv.Entity,
    table=CompanyDirectory,
    writes=(
        tv.WritePattern("A user", "put", per_second=1, item_bytes=700),
        tv.WritePattern("A user's status", "update", ("status",), per_second=1, item_bytes=700),
    ),
):
    """A user of a company."""

    org_id: tv.Attr[str]
    user_id: tv.Attr[str]
    status: tv.Attr[UserStatus] = tv.attr(default="active")
    bio: tv.Attr[str]

    class Key(tv.PrimaryKey["OrgUser"], pk="ORG#{org_id}", sk="USER#{user_id}"):
        org_id: str
        user_id: str

    class InOrg(
        tv.Query["OrgUser"],
        on=Key,
        access=tv.AccessPattern("A company's users", per_second=5, items=60, item_bytes=700),
    ):
        org_id: str
        user_id: tv.Sort[str] = tv.sort()

    # tavola: ignore[mutable-index-key] a user changes status once or twice and is queried by it ten times a second
    class ByStatus(
        tv.Query["OrgUser"],
        on=CompanyDirectory.by_status,
        pk="ORG#{org_id}",
        sk="STATUS#{status}#USER#{user_id}",
        access=tv.AccessPattern("A company's users of a status", per_second=10, items=6, item_bytes=700),
    ):
        org_id: str
        status: tv.Sort[UserStatus] = tv.sort()
        user_id: tv.Sort[str] = tv.sort()


class OrgFile(
    tv.Collection,
    pk="ORG#{org_id}",
    access=tv.AccessPattern("A company with its users", per_second=2, items=61, item_bytes=700),
):
    """A company with all its users."""

    org_id: str
    org: Org | None = tv.member()
    users: list[OrgUser] = tv.member()


def members() -> tuple[tv.Entity, ...]:
    """Return a company of sixty users, six of them active, and a company of two."""
    entities: list[tv.Entity] = [Org(org_id="org-1", plan="team"), Org(org_id="org-2", plan="free")]
    for number in range(60):
        status: UserStatus = "active" if number % 10 == 0 else "left" if number % 3 else "invited"
        entities.append(OrgUser(org_id="org-1", user_id=f"user-{number:02}", status=status, bio=_bio(number)))
    entities += [
        OrgUser(org_id="org-2", user_id=f"user-{number:02}", bio=_bio(number)[:80]) for number in (1, 2)
    ]
    return tuple(entities)


def _bio(number: int) -> str:
    text = (
        f"Works on release {number % 7 + 1}; asks for reviews early, and answers the desk in the afternoons. "
    )
    return (text * 8)[:500]


SAMPLE = Sample(
    "organisation",
    "Organisation",
    summary="An item collection read with one query, and the cost of a filter compared with a key.",
    source="Patterns and best practices: single-table design, filter expressions",
    tables=(CompanyDirectory,),
    entities=members,
)


@SAMPLE.demonstrate("together", "Read a company with its users")
async def read_company(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Read companies with their users."""
    return (
        await run_collect(db, "org-2 and its users", OrgFile(org_id="org-2")),
        await run_collect(db, "org-1 and its users", OrgFile(org_id="org-1")),
    )


@SAMPLE.demonstrate("filter-trap", "Compare a filter with a key")
async def filter_trap(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query active users with a filter, then by key."""
    filtered = OrgUser.InOrg(org_id="org-1").where(OrgUser.status.eq("active"))
    return (
        await run_query(db, "With a filter: all users are read, most are discarded", filtered),
        await run_query(
            db, "By key: only active users are read", OrgUser.ByStatus(org_id="org-1").status.eq("active")
        ),
    )


@SAMPLE.demonstrate("leaves", "Change a status", writes=True)
async def deactivate_user(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Change a user's status: the index follows. Then change it back."""
    active = OrgUser.ByStatus(org_id="org-1").status.eq("active")
    key = OrgUser.Key(org_id="org-1", user_id="user-10")
    await db.update(key, OrgUser.status.set("active"))
    before = await run_query(db, "Active before", active)
    try:
        left = await db.explain.update(key, OrgUser.status.set("left"), run=True)
        units = left.consumed
        moved = StepResult(
            "The update: one write to the item and two to the index",
            (left.result,),
            units.reads if units else 0,
            units.writes if units else 0,
            request=str(left),
        )
        return before, moved, await run_query(db, "Active after", active)
    finally:
        await db.update(key, OrgUser.status.set("active"))
