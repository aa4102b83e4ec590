"""Common design mistakes and how Tavola handles them; docs/explanation/pitfalls.md describes each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    ModelError,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    sort,
)

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


class Watch(Table):
    """A table with a sparse index of escalations and an index that projects some attributes."""

    escalations = Gsi(pk="e_pk", sk="e_sk")
    engineers = Gsi(pk="n_pk", sk="n_sk")
    slim = Gsi(pk="s_pk", sk="s_sk", projection=("title",))


class Case(Entity, table=Watch):
    """A case that may be escalated to an engineer."""

    case_id: Attr[str]
    title: Attr[str]
    body: Attr[str] = attr(default="")
    area: Attr[str] = attr(default="net")
    engineer: Attr[str | None] = attr(default=None)
    escalated_at: Attr[datetime | None] = attr(default=None)

    class Key(PrimaryKey["Case"], pk="CASE#{case_id}", sk="CASE"):
        case_id: str

    class Escalated(
        Query["Case"],
        on=Watch.escalations,
        pk="ESCALATED",
        sk="{escalated_at}#{case_id}",
        sparse=True,
        shards=4,
    ):
        escalated_at: Sort[datetime] = sort()
        case_id: Sort[str] = sort()

    class OfEngineer(
        Query["Case"], on=Watch.engineers, pk="ENGINEER#{engineer}", sk="{escalated_at}", sparse=True
    ):
        engineer: str
        escalated_at: Sort[datetime] = sort()

    class InArea(Query["Case"], on=Watch.slim, pk="AREA#{area}", sk="{case_id}", hydrate=True):
        area: str
        case_id: Sort[str] = sort()


@pytest.fixture
def watch(opened: object) -> Connection:
    """Six cases, the odd ones escalated to two engineers in turn."""
    db: Connection = opened()  # type: ignore[operator]
    db.create_tables(Watch)
    for n in range(6):
        db.put(Case(case_id=f"c{n}", title=f"case {n}", body="b" * n))
        if n % 2:
            engineer = "eve" if n == 3 else "ada"
            when = AT + timedelta(hours=n)
            db.update(Case.Key(case_id=f"c{n}"), Case.engineer.set(engineer), Case.escalated_at.set(when))
    return db


def test_escalations_are_queried_newest_first_and_by_engineer(watch: Connection) -> None:
    """Pitfall 4:

    all escalations newest first, and one engineer's; no query needs a range of partition keys.
    """
    newest = watch.query(Case.Escalated(), newest_first=True)
    since = watch.query(Case.Escalated().escalated_at.gte(AT + timedelta(hours=3)))

    assert [case.case_id for case in newest] == ["c5", "c3", "c1"]
    assert [case.case_id for case in since] == ["c3", "c5"]
    assert [case.case_id for case in watch.query(Case.OfEngineer(engineer="ada"))] == ["c1", "c5"]
    watch.update(Case.Key(case_id="c5"), Case.escalated_at.remove(), Case.engineer.remove())
    assert [case.case_id for case in watch.query(Case.Escalated())] == ["c1", "c3"]
    assert [case.case_id for case in watch.query(Case.OfEngineer(engineer="ada"))] == ["c1"]


def test_unprojected_attributes_are_fetched(watch: Connection) -> None:
    """Pitfall 5: a query of such an index returns whole entities by fetching the rest, never partial ones."""
    found = list(watch.query(Case.InArea(area="net")))

    assert [case.body for case in found] == ["b" * n for n in range(6)]


def test_a_pattern_with_unprojected_fields_is_refused() -> None:
    """Pitfall 5: a pattern that would return partial entities is refused at declaration, with remedies."""

    class Small(Table):
        slim = Gsi(pk="s_pk", sk="s_sk", projection="KEYS_ONLY")

    with pytest.raises(ModelError, match=r"Note\.ByArea: slim does not project text; .*hydrate=True"):

        class Note(Entity, table=Small):
            note_id: Attr[str]
            area: Attr[str]
            text: Attr[str]

            class Key(PrimaryKey["Note"], pk="NOTE#{note_id}", sk="NOTE"):
                note_id: str

            class ByArea(Query["Note"], on=Small.slim, pk="AREA#{area}", sk="{note_id}"):
                area: str
                note_id: Sort[str] = sort()


def test_a_key_part_with_the_delimiter_meets_no_other(watch: Connection) -> None:
    """Pitfall 19: `a#b` with `c` and `a` with `b#c` are two partitions."""

    class Pairs(Table):
        by_pair = Gsi(pk="p_pk", sk="p_sk")

    class Pair(Entity, table=Pairs):
        pair_id: Attr[str]
        left: Attr[str]
        right: Attr[str]

        class Key(PrimaryKey["Pair"], pk="PAIR#{pair_id}", sk="PAIR"):
            pair_id: str

        class Of(Query["Pair"], on=Pairs.by_pair, pk="{left}#{right}", sk="{pair_id}"):
            left: str
            right: str
            pair_id: Sort[str] = sort()

    watch.create_tables(Pairs)
    watch.put(Pair(pair_id="1", left="a#b", right="c"))
    watch.put(Pair(pair_id="2", left="a", right="b#c"))

    assert [p.pair_id for p in watch.query(Pair.Of(left="a#b", right="c"))] == ["1"]
    assert [p.pair_id for p in watch.query(Pair.Of(left="a", right="b#c"))] == ["2"]


def test_the_tenth_version_comes_after_the_ninth(watch: Connection) -> None:
    """Pitfall 20: numbers in a key sort as numbers, so the latest version is the latest from the tenth on."""

    class Papers(Table):
        pass

    class Draft(Entity, table=Papers):
        paper: Attr[str]
        version: Attr[int]

        class Key(PrimaryKey["Draft"], pk="PAPER#{paper}", sk="VERSION#{version}"):
            paper: str
            version: int

        class Of(Query["Draft"], on=Key):
            paper: str
            version: Sort[int] = sort()

    watch.create_tables(Papers)
    watch.put_many([Draft(paper="p", version=n) for n in range(1, 13)])

    assert [d.version for d in watch.query(Draft.Of(paper="p"), newest_first=True, limit=3)] == [12, 11, 10]
    assert [d.version for d in watch.query(Draft.Of(paper="p").version.lt(3))] == [1, 2]
