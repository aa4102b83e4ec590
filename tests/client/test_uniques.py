"""Unique values: no two items of an entity share one, whichever operation writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Barrier, Thread
from typing import Any

import pytest

from tavola import (
    ConditionFailed,
    Connection,
    ItemExists,
    ItemMissing,
    LockConflict,
    ManualClock,
    ModelError,
    RetryPolicy,
    SeededEntropy,
    TransactionCancelled,
    TransactionItemExists,
    TransactionRefused,
    UniqueViolation,
    connect,
)
from tavola.client import unique_guards, writes
from tavola.model import UNIQUE_ATTRIBUTE
from tests.client.club import Club, Member, Person, Roll, Town, disagreements


def member(which: int = 1, /, **more: object) -> Member:
    """Return a member."""
    fields = {"club": "rowing", "member_id": f"m{which}", "email": f"m{which}@example.org"}
    return Member(**{**fields, **more})  # type: ignore[arg-type]


def key(number: int = 1, club: str = "rowing") -> Member.Key:
    """Return a member's key."""
    return Member.Key(club=club, member_id=f"m{number}")


@pytest.fixture
def club(opened: Callable[..., Connection]) -> Connection:
    """A connection with the club's tables."""
    found = opened()
    found.create_tables(Club, Town)
    return found


def raw_items(db: Connection) -> list[dict[str, Any]]:
    """Return everything in the club's table."""
    items: list[dict[str, Any]] = db.call("Scan", {"TableName": db.context.name_of(Club)})["Items"]
    return items


# Taken.


def test_a_value_has_one_owner(club: Connection) -> None:
    """A second item with the value is refused by every kind of write, and the first does not change."""
    club.create(member(1, email="a"))
    club.create(member(2))

    with pytest.raises(UniqueViolation) as created:
        club.create(member(3, email="a"))
    with pytest.raises(UniqueViolation):
        club.put(member(3, email="a"))
    with pytest.raises(UniqueViolation):
        club.put(member(2, email="a"))
    with pytest.raises(UniqueViolation):
        club.update(key(2), Member.email.set("a"))

    error = created.value
    assert (error.field, error.value) == ("email", "a")
    assert error.owner == {"pk": {"S": "CLUB#rowing"}, "sk": {"S": "MEMBER#m1"}}
    assert str(error) == (
        "Member club='rowing', member_id='m3': another item has the same email, which must be unique; see .value and .owner"
    )
    assert [m.email for m in club.query(Member.InClub(club="rowing"))] == ["a", "m2@example.org"]
    assert not disagreements(club, Member)


def test_several_items_may_lack_a_value(club: Connection) -> None:
    """Any number of items may have no value."""
    for number in range(3):
        club.create(member(number))

    assert club.count(Member.InClub(club="rowing")) == 3
    assert not disagreements(club, Member)


def test_a_value_can_be_unique_within_others(club: Connection) -> None:
    """Items that differ in a field of `within` may share the value; a change of that field can bring them together."""
    club.create(member(1, handle="ace", number=7))
    club.create(member(2, handle="ace", team="second"))
    club.create(member(3, club="chess", email="x", handle="ace", number=7))

    with pytest.raises(UniqueViolation) as moved:
        club.update(key(2), Member.team.set("first"))
    with pytest.raises(UniqueViolation):
        club.update(key(2), Member.number.set(7))
    club.update(key(1), Member.team.set("third"))
    club.update(key(2), Member.team.set("first"))

    assert moved.value.field == "handle"
    assert not disagreements(club, Member)


def test_an_item_may_have_its_own_value_again(club: Connection) -> None:
    """Writing an item with its own values is not a conflict and needs no transaction."""
    club.put(member(1, number=7))
    with club.measure() as spent:
        club.put(member(1, number=7, nickname="x"))
        club.update(key(1), Member.nickname.set("y"))

    assert spent.operations == {"GetItem": 1, "PutItem": 1, "UpdateItem": 1}
    assert club.update(key(1), Member.email.set("m1@example.org")).nickname == "y"
    assert not disagreements(club, Member)


# Released.


@pytest.mark.parametrize("way", ["update", "remove", "put", "delete", "delete entity"])
def test_a_released_value_can_be_taken(club: Connection, way: str) -> None:
    """A value is free once its item has another one, has none, or is deleted."""
    first = club.create(member(1, email="a", number=7))
    match way:
        case "update":
            changed = club.update(key(1), Member.email.set("b"), Member.number.set(8))
            assert (changed.email, changed.number) == ("b", 8)
        case "remove":
            assert club.update(key(1), Member.number.remove(), Member.email.set("b")).number is None
        case "put":
            club.put(member(1, email="b"))
        case "delete":
            assert club.delete(key(1)) == first
        case _:
            assert club.delete(first) == first

    club.create(member(2, email="a", number=7))

    assert not disagreements(club, Member)


def test_deleting_nothing_is_no_error(club: Connection) -> None:
    """A delete of a missing item returns None."""
    assert club.delete(key(9)) is None


def test_refusals_of_other_kinds_stay_what_they_are(club: Connection) -> None:
    """An existing or missing item or a failed condition raises the usual error, and nothing is written."""
    club.create(member(1, nickname="n"))

    with pytest.raises(ItemExists) as there:
        club.create(member(1, email="other"))
    with pytest.raises(ItemMissing):
        club.update(key(9), Member.email.set("z"))
    with pytest.raises(ConditionFailed):
        club.update(key(1), Member.email.set("z"), when=Member.nickname == "other")
    with pytest.raises(ConditionFailed):
        club.put(member(1, email="z"), when=Member.nickname.not_exists())
    with pytest.raises(ConditionFailed):
        club.delete(key(1), when=Member.nickname == "other")

    assert there.value.found == member(1, nickname="n")
    assert club.get(key(1)) == member(1, nickname="n")
    assert not disagreements(club, Member)


def test_an_update_can_make_the_item(club: Connection) -> None:
    """With create=True the values of an item that an update makes are taken too."""
    made = club.update(key(1), Member.email.set("a"), create=True)

    assert made == member(1, email="a")
    assert not disagreements(club, Member)
    with pytest.raises(UniqueViolation):
        club.update(key(2), Member.email.set("a"), create=True)
    assert club.get(key(2)) is None


def test_a_value_out_of_another_field(club: Connection) -> None:
    """A unique field set from another field of the item is guarded as well."""
    club.create(member(1, nickname="ace"))
    club.update(key(1), Member.handle.set(Member.nickname))

    assert not disagreements(club, Member)
    with pytest.raises(UniqueViolation):
        club.create(member(2, handle="ace"))


# In transactions.


def test_values_can_be_swapped(club: Connection) -> None:
    """Two items exchange their values in one transaction, also in a ring of three."""
    for number in (1, 2, 3):
        club.create(member(number, email=f"e{number}", number=number))

    with club.transaction() as tx:
        tx.update(key(1), Member.email.set("e2"))
        tx.update(key(2), Member.email.set("e1"))
    with club.transaction() as tx:
        tx.update(key(1), Member.number.set(2))
        tx.put(member(2, email="e1", number=3))
        tx.update(key(3), Member.number.set(1))

    found = list(club.query(Member.InClub(club="rowing")))
    assert [(m.email, m.number) for m in found] == [("e2", 2), ("e1", 3), ("e3", 1)]
    assert not disagreements(club, Member)


def test_a_value_changes_hands_in_a_transaction(club: Connection) -> None:
    """A value that one item releases can be taken by another in the same transaction."""
    club.create(member(1, email="a"))

    with club.transaction() as tx:
        tx.delete(key(1))
        tx.create(member(2, email="a"))

    assert club.get(key(1)) is None
    assert not disagreements(club, Member)


def test_a_value_that_is_taken_cancels_with_its_reason(club: Connection) -> None:
    """The intent with a taken value has the reason; the other intents are not done."""
    club.create(member(1, email="a"))
    tx = club.transaction()
    taken = tx.create(member(2, email="a"))
    fine = tx.create(member(3))

    with pytest.raises(TransactionCancelled) as caught:
        tx.commit()

    reason = caught.value.failed[taken]
    assert (reason.kind, reason.item) == ("unique", None)
    assert isinstance(reason.error, UniqueViolation)
    assert reason.error.field == "email"
    assert fine not in caught.value.failed
    assert not isinstance(caught.value, TransactionItemExists)
    assert club.get(key(3)) is None
    assert not disagreements(club, Member)


def test_one_value_in_two_intents_is_refused_at_once(club: Connection) -> None:
    """The error names the intents, and no request is sent."""
    tx = club.transaction()
    tx.create(member(1, email="a"))
    tx.create(member(2, email="a"))

    with club.measure() as spent, pytest.raises(TransactionRefused, match="would have the same email"):
        tx.commit()

    assert spent.calls == 0


def test_guards_count_among_the_hundred(club: Connection) -> None:
    """A transaction that guards make too large is refused with what it comes to."""
    tx = club.transaction()
    for number in range(51):
        tx.create(member(number))

    with pytest.raises(TransactionRefused, match="has 102 actions, including those on guards"):
        tx.commit()


# Out of sight.


def test_guards_are_not_seen(club: Connection) -> None:
    """Queries, scans, counts and collections return entities alone, in tables with and without a tag."""
    club.create(member(1, handle="a", number=1))
    club.create(Person(person_id="p1", email="a"))

    assert [m.member_id for m in club.scan(Member)] == ["m1"]
    assert [type(each) for each in club.scan_table(Club)] == [Member]
    assert club.count(Member.InClub(club="rowing")) == 1
    assert len(club.collect(Roll(club="rowing")).members) == 1
    assert [p.person_id for p in club.scan(Person)] == ["p1"]
    assert [type(each) for each in club.scan_table(Town)] == [Person]
    assert sum(UNIQUE_ATTRIBUTE in item for item in raw_items(club)) == 3
    assert len({item["sk"]["S"] for item in raw_items(club)}) == 4  # an index by the sort key stays spread


def test_a_key_that_looks_like_a_guards_is_refused(club: Connection) -> None:
    """Where the table's key is a field itself, a value that begins as guards do is refused."""
    club.create(Person(person_id="p1", email="a"))

    with pytest.raises(ModelError, match="starts with the prefix of guards"):
        club.put(Person(person_id="UNIQUE#Person#email#a", email="b"))


@pytest.mark.parametrize(
    "value",
    ["", "#", "a#b", "UNIQUE#Member#email#a", "é", "\x00", "x" * 5000, "y" * 1024, "%s{0}", "a ", " a", "A"],
)
def test_any_text_can_be_unique(club: Connection, value: str) -> None:
    """Any string can be a unique value; only an equal string conflicts with it."""
    club.create(member(1, email="a"))
    club.create(member(2, email=value, handle=value or None))
    club.create(member(3, email=f"{value}#"))

    with pytest.raises(UniqueViolation):
        club.create(member(4, email=value))
    club.delete(key(2))
    club.create(member(4, email=value))

    assert not disagreements(club, Member)


# Expiry.


def test_a_guard_ends_with_its_owner(club: Connection, clock: ManualClock) -> None:
    """Guards expire with their item, also if its expiry changes, and expired values can be taken."""
    soon = datetime.fromtimestamp(clock.now() + 100, UTC)
    later = datetime.fromtimestamp(clock.now() + 1000, UTC)
    club.create(member(1, email="a", number=1, ends=soon))
    club.create(member(2, email="b", ends=soon))

    club.update(key(1), Member.ends.set(later))
    ends = {
        item["ends"]["N"]
        for item in raw_items(club)
        if item.get("_owner", {}).get("M", {}).get("sk") == {"S": "MEMBER#m1"}
    }
    agreed = disagreements(club, Member)
    clock.advance(200)
    club.create(member(3, email="b"))
    with pytest.raises(UniqueViolation):
        club.create(member(4, email="a"))

    assert ends == {str(int(later.timestamp()))}
    assert not agreed
    assert club.get(key(2)) is None
    # Deleting the expired item does not release the value, which has a new owner.
    assert club.delete(key(2)) is None
    with pytest.raises(UniqueViolation):
        club.create(member(5, email="b"))


def test_an_expired_item_can_be_written_again(club: Connection, clock: ManualClock) -> None:
    """An expired item can be created, put or updated again, with its old values or others."""
    soon = datetime.fromtimestamp(clock.now() + 100, UTC)
    for number in (1, 2, 3):
        club.create(member(number, number=number, ends=soon))
    clock.advance(200)

    club.create(member(1, number=1))
    club.put(member(2, email="new"))
    club.update(key(3), Member.email.set("newer"), create=True)

    assert [m.number for m in club.query(Member.InClub(club="rowing"))] == [1, None, None]
    for email in ("m2@example.org", "m3@example.org"):
        club.create(member(len(email), member_id=email, email=email))


# Other writers.


def test_items_from_before_are_adopted(club: Connection) -> None:
    """Items written without guards can be changed and deleted; a shared value stays with its owner."""
    name = club.context.name_of(Club)
    club.create(member(1, email="a"))
    for number in (2, 3):
        stray = {"pk": "CLUB#rowing", "sk": f"MEMBER#m{number}", "club": "rowing", "member_id": f"m{number}",
                 "email": "a", "team": "first", "_entity": "Member"}  # fmt: skip
        club.call("PutItem", {"TableName": name, "Item": {k: {"S": v} for k, v in stray.items()}})

    assert club.update(key(2), Member.email.set("b")).email == "b"
    assert club.delete(key(3)) is not None
    assert not disagreements(club, Member)
    with pytest.raises(UniqueViolation):
        club.create(member(4, email="a"))


def test_locks_hold_beside_unique_values(club: Connection) -> None:
    """A write of an entity with a lock and a unique value is refused with the error of the one that fails."""
    person = club.create(Person(person_id="p1", email="a"))
    same = club.get(Person.Key(person_id="p1"))
    assert same is not None
    person.email = "b"
    club.put(person)

    same.email = "c"
    with pytest.raises(LockConflict) as lost:
        club.put(same)
    with pytest.raises(LockConflict):
        club.delete(same)
    with pytest.raises(LockConflict):
        club.update(same, Person.email.set("d"))

    assert lost.value.found == Person(person_id="p1", email="b", revision=2)
    assert person.revision == 2
    assert not disagreements(club, Person)


@pytest.mark.parametrize("verb", ["put_many", "delete_many"])
def test_a_batch_refuses_them(club: Connection, verb: str) -> None:
    """A batch cannot write guards, so it refuses entities with unique fields."""
    with pytest.raises(ModelError, match="unique"):
        getattr(club, verb)([member(1)])


# At once.

KINDS = ["memory", "http"]


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Any:
    """A connection for several threads, on the backend that the test names."""
    kind = request.param
    target = "memory:" if kind == "memory" else request.getfixturevalue("served")
    db = connect(target, table_prefix=f"u{id(request)}-", retry_policy=RetryPolicy(base_s=0.001))
    db.create_tables(Club)
    yield db
    db.delete_tables(Club)
    db.close()


def together(count: int, work: Callable[[int], None]) -> None:
    """Do work in threads that begin at once."""
    barrier = Barrier(count)

    def one(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("shared", KINDS, indirect=True)
@pytest.mark.parametrize("verb", ["create", "put"])
def test_of_many_at_once_one_has_the_value(shared: Connection, verb: str) -> None:
    """Of many concurrent writers of one value exactly one succeeds, and guards and owners agree."""
    won: list[int] = []
    lost: list[int] = []

    def claim(number: int) -> None:
        try:
            getattr(shared, verb)(member(number, email="wanted"))
        except UniqueViolation:
            lost.append(number)
        else:
            won.append(number)

    together(8, claim)

    assert (len(won), len(lost)) == (1, 7)
    assert [m.member_id for m in shared.scan(Member)] == [f"m{won[0]}"]
    assert not disagreements(shared, Member)


def wander(db: Connection, number: int, steps: int) -> None:
    """Write members of a few ids with a few values, in every way."""
    entropy = SeededEntropy(number)
    for _ in range(steps):
        which, how, email, handle = entropy.bytes(4)
        target, address = which % 4, f"e{email % 4}"
        try:
            match how % 6:
                case 0:
                    db.create(member(target, email=address))
                case 1:
                    db.put(member(target, email=address, handle=f"h{handle % 3}"))
                case 2:
                    db.update(key(target), Member.email.set(address))
                case 3:
                    db.update(
                        key(target), Member.team.set(f"t{handle % 2}"), Member.handle.set(f"h{handle % 3}")
                    )
                case 4:
                    db.delete(key(target))
                case _:
                    with db.transaction() as tx:
                        tx.update(key(target), Member.email.set(address))
                        tx.put(member((target + 1) % 4, email=f"e{handle % 4}"))
        except (UniqueViolation, ItemExists, ItemMissing, TransactionCancelled, TransactionRefused):
            continue


@pytest.mark.parametrize("shared", KINDS, indirect=True)
def test_guards_and_owners_agree_whatever_happens_at_once(shared: Connection) -> None:
    """After any writes at once, each value of an item has its guard and each guard its item."""
    together(6, lambda number: wander(shared, number, 25))

    assert not disagreements(shared, Member)


@pytest.mark.parametrize("shared", ["memory"], indirect=True)
def test_the_checker_sees_a_forgotten_guard(shared: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of guards and owners finds what a client would leave behind: the planted fault."""
    moved = unique_guards.diff_guards
    monkeypatch.setattr(writes, "diff_guards", lambda old, new: (moved(old, new)[0], []))
    shared.create(member(1, email="a"))
    shared.update(key(1), Member.email.set("b"))
    left = disagreements(shared, Member)
    monkeypatch.setattr(writes, "diff_guards", lambda old, new: ([], moved(old, new)[1]))
    shared.update(key(1), Member.email.set("c"))

    assert [each.partition(" has no ")[2] for each in left] == [str(("UNIQUE#Member#email#a",) * 2)]
    assert len(disagreements(shared, Member)) == 2
