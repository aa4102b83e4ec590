"""Writes that others race with, that make items, and that bring values which a field would not hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, StringConstraints, ValidationError, field_validator, model_validator

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    LockConflict,
    ModelError,
    PrimaryKey,
    Query,
    QueryRefused,
    Sort,
    Table,
    UniqueViolation,
    attr,
    sort,
)
from tavola.model import ItemUnreadable, ValueNotStorable
from tavola.protocol.faults import InternalServerFault, ValidationFault


class Colour(Enum):
    """An enum."""

    RED = "red"


class Yard(Table):
    """A table with an index of templates and one of the items' own attributes."""

    by_state = Gsi(pk="g1pk", sk="g1sk")
    by_email = Gsi(pk="g2pk", sk="g2sk")
    queue_of = Gsi(pk=("queue", "state"), sk=("rank", "due"))


def _now() -> datetime:
    _now.calls += 1  # type: ignore[attr-defined]
    return datetime(2026, 9, 1, tzinfo=UTC).replace(microsecond=_now.calls)  # type: ignore[attr-defined]


_now.calls = 0  # type: ignore[attr-defined]


class Job(Entity, table=Yard):
    """A job in both indexes, all but its queue with a default."""

    job_id: Attr[str]
    queue: Attr[str]
    state: Attr[str] = attr(default="open")
    rank: Attr[int] = attr(default=1)
    other: Attr[int] = attr(default=0)
    note: Attr[str | None] = attr(default=None)
    due: Attr[datetime] = attr(default_factory=_now)

    class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
        job_id: str

    class ByState(Query["Job"], on=Yard.by_state, pk="STATE#{state}", sk="{rank}#{due}"):
        state: str
        rank: Sort[int] = sort()
        due: Sort[datetime] = sort()

    class In(Query["Job"], on=Yard.queue_of):
        queue: str
        state: str
        rank: Sort[int] = sort()
        due: Sort[datetime] = sort()


class Member(Entity, table=Yard):
    """A member whose email is one in small letters, and unique."""

    member_id: Attr[str]
    email: Attr[Annotated[str, StringConstraints(to_lower=True)]] = attr(unique=True)
    pending: Attr[str | None] = attr(default=None)
    name: Attr[str] = attr(default="nobody")
    age: Attr[Annotated[int, Field(ge=0)]] = attr(default=0)

    @field_validator("name")
    @classmethod
    def stripped(cls, value: str) -> str:
        """Take blanks off, and refuse a name that is a number."""
        if value.isdigit():
            raise ValueError("a name is no number")
        return value.strip()

    class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
        member_id: str

    class ByEmail(Query["Member"], on=Yard.by_email, pk="EMAIL#{email}", sk="{name}"):
        email: str
        name: Sort[str] = sort()


class Counted(Entity, table=Yard):
    """A counter with a lock."""

    name: Attr[str]
    value: Attr[int] = attr(default=0)
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Counted"], pk="COUNTED#{name}", sk="COUNTED"):
        name: str


class Plain(Entity, table=Yard):
    """An entity without index, lock or condition."""

    name: Attr[str]
    value: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Plain"], pk="PLAIN#{name}", sk="PLAIN"):
        name: str


KEY = Job.Key(job_id="1")


@pytest.fixture
def yard(opened: Callable[..., Connection]) -> Connection:
    """A connection with the yard's table."""
    found = opened()
    found.create_tables(Yard)
    return found


def tapped(db: Connection, tap: Callable[[str, dict[str, Any]], Any]) -> None:
    """Call `tap` before every call of a connection;

    the request it returns is sent first, an exception is raised.
    """
    backend: Any = db.backend
    call = backend.call
    waits = type(backend).__name__.startswith("Async")

    def turned(operation: str, request: dict[str, Any]) -> Any:
        extra = tap(operation, request)
        if not waits:
            if isinstance(extra, tuple):
                call(*extra)
            return call(operation, request)

        async def later() -> Any:
            if isinstance(extra, tuple):
                await call(*extra)
            return await call(operation, request)

        return later()

    backend.call = turned
    if hasattr(backend, "call_all"):
        backend.call_all = lambda calls: [turned(*each) for each in calls]


def raw(db: Connection, item: str, *removed: str, **values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an update of an item such as JOB#1 that bypasses the model."""
    sets = "SET " + ", ".join(f"#{name} = :{name}" for name in values) if values else ""
    removes = "REMOVE " + ", ".join(f"#{name}" for name in removed) if removed else ""
    request: dict[str, Any] = {
        "TableName": db.context.name_of(Yard),
        "Key": {"pk": {"S": item}, "sk": {"S": item.partition("#")[0]}},
        "ExpressionAttributeNames": {f"#{name}": name for name in (*removed, *values)},
        "UpdateExpression": f"{sets} {removes}",
    }
    if values:
        request["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    return "UpdateItem", request


def overtaken(db: Connection, item: str, **values: dict[str, Any]) -> None:
    """Let another writer set attributes of an item between its next read and the write that follows."""
    done: list[bool] = []

    def tap(operation: str, request: dict[str, Any]) -> Any:
        if operation not in ("UpdateItem", "TransactWriteItems") or done:
            return None
        done.append(True)
        return raw(db, item, **values)

    tapped(db, tap)


def faults(db: Connection) -> Any:
    """Return the faults of the index keys."""
    return db.verify_keys(Yard).problems


@pytest.mark.parametrize(
    "change",
    [
        Job.rank.set(Job.other + 1),
        Job.rank.set(Job.other),
        Job.rank.set_if_absent(Job.other),  # type: ignore[arg-type]  # that it is taken is between us and it
    ],
    ids=["sum", "copy", "once"],
)
def test_a_key_made_of_another_field_is_never_stale(yard: Connection, change: Any) -> None:
    """A change that copies another field is conditional on the value that was read."""
    yard.put(Job(job_id="1", queue="q", other=10))
    yard.call(*raw(yard, "JOB#1", "rank"))
    overtaken(yard, "JOB#1", other={"N": "99"})

    yard.update(KEY, change)

    assert yard.get(KEY).other == 99  # type: ignore[union-attr]
    assert not faults(yard)


def test_in_a_transaction_too(yard: Connection) -> None:
    """The same where the update is one of several."""
    yard.put(Job(job_id="1", queue="q", other=10))
    overtaken(yard, "JOB#1", other={"N": "99"})

    with yard.transaction() as tx:
        tx.update(KEY, Job.rank.set(Job.other + 1))
        tx.create(Plain(name="x"))

    assert yard.get(KEY).rank == 100  # type: ignore[union-attr]
    assert not faults(yard)


def test_a_unique_value_from_another_field_is_the_one_that_is_written(yard: Connection) -> None:
    """The guard has the value that the other field has at write time, so no two items share it."""
    yard.put(Member(member_id="1", email="a", pending="b"))
    overtaken(yard, "MEMBER#1", pending={"S": "c"})

    yard.update(Member.Key(member_id="1"), Member.email.set(Member.pending))  # type: ignore[arg-type]

    assert yard.get(Member.Key(member_id="1")).email == "c"  # type: ignore[union-attr]
    yard.create(Member(member_id="2", email="b"))
    with pytest.raises(UniqueViolation):
        yard.create(Member(member_id="3", email="c"))


def test_an_absent_field_reads_as_its_default(yard: Connection) -> None:
    """A condition that a field is absent implies its default, so the item stays in the index."""
    yard.put(Job(job_id="1", queue="q"))
    yard.call(*raw(yard, "JOB#1", "state"))

    yard.update(KEY, Job.rank.set(5), when=Job.state.not_exists())

    assert [job.rank for job in yard.query(Job.ByState(state="open"))] == [5]
    assert not faults(yard)


def test_a_default_that_is_made_is_not_known(yard: Connection) -> None:
    """If a field with a default factory is absent, its key is unknown and not invented."""
    yard.put(Job(job_id="1", queue="q"))
    yard.call(*raw(yard, "JOB#1", "due", "g1pk", "g1sk"))

    yard.update(KEY, Job.rank.set(5), when=Job.due.not_exists())

    (stored,) = yard.call("Scan", {"TableName": yard.context.name_of(Yard)})["Items"]
    assert not stored.keys() & {"due", "g1pk", "g1sk"}


def test_an_item_that_an_update_makes_is_in_every_index(yard: Connection) -> None:
    """With create, defaults that feed an index are stored, one that is made once for ever; an index by the item's own attributes has it."""
    yard.update(KEY, Job.queue.set("q"), create=True)

    made = yard.get(KEY)
    assert made is not None
    assert made == yard.get(KEY)
    assert (made.state, made.rank) == ("open", 1)
    assert list(yard.query(Job.In(queue="q", state="open"))) == [made]
    assert list(yard.query(Job.ByState(state="open"))) == [made]
    assert not faults(yard)


def test_defaults_overwrite_nothing(yard: Connection) -> None:
    """With create, an existing item retains its values and gains the missing ones, with their keys."""
    at = datetime(2030, 1, 1, tzinfo=UTC)
    yard.put(Job(job_id="1", queue="q", state="done", rank=7, due=at))
    yard.update(KEY, Job.queue.set("r"), create=True)
    assert yard.get(KEY) == Job(job_id="1", queue="r", state="done", rank=7, due=at)

    yard.call(*raw(yard, "JOB#1", "due", "g1pk", "g1sk"))
    yard.update(KEY, Job.queue.set("s"), create=True)

    assert [job.queue for job in yard.query(Job.ByState(state="done"))] == ["s"]
    assert not faults(yard)


@pytest.mark.parametrize("together", [False, True])
def test_an_update_creates_no_unreadable_item(yard: Connection, together: bool) -> None:
    """Required fields are in the key or among the changes;

    otherwise no request is sent, and the error names the field.
    """
    sent: list[str] = []
    tapped(yard, lambda operation, request: sent.append(operation))
    writer: Any = yard.transaction() if together else yard

    with pytest.raises(ModelError, match=r"Job\.queue: it is required") as refused:
        writer.update(KEY, Job.rank.add(1), create=True)

    assert refused.value.place == "Job.queue"
    assert sent == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda: Member.age.set(-5), "Member.age: -5 does not fit it: Input should be greater than or equal to 0"),
        (lambda: Member.age.set_if_absent(-5), "Member.age: -5 does not fit it"),
        (lambda: Member.name.set("7"), "Member.name: '7' does not fit it: Value error, a name is no number"),
        (lambda: Member.age.set("x"), "Member.age: 'x' is of type str; give an int"),  # type: ignore[arg-type]
        (lambda: Member.age.add(Decimal("0.5")), "Member.age: Decimal('0.5') is of type Decimal; give an int"),
        (lambda: Member.email.set(None), "Member.email: the field is required"),  # type: ignore[arg-type]
        (Member.email.remove, "Member.email: the field is required"),  # type: ignore[misc]
    ],
)  # fmt: skip
def test_a_change_brings_what_the_field_can_hold(change: Any, problem: str) -> None:
    """A value outside the field's type is refused when the change is built, with the field and the reason."""
    with pytest.raises(ModelError) as refused:
        change()

    assert str(refused.value).startswith(problem)


def test_a_change_is_normalised_as_an_entity_is(yard: Connection) -> None:
    """Values in updates, keys, comparisons and unique fields are normalised as in an entity."""
    yard.put(Member(member_id="1", email="A@x"))
    found = yard.update(Member.Key(member_id="1"), Member.email.set("BOB@x"), Member.name.set(" bob "))

    assert (found.email, found.name) == ("bob@x", "bob")
    assert [m.name for m in yard.query(Member.ByEmail(email="BOB@x").name.eq("bob "))] == ["bob"]
    assert [m.name for m in yard.query(Member.ByEmail(email="bob@x").name.between(" b", " c"))] == ["bob"]
    assert yard.update(Member.Key(member_id="1"), Member.age.set(3), when=Member.email == "Bob@X").age == 3
    assert not faults(yard)
    with pytest.raises(UniqueViolation):
        yard.update(Member.Key(member_id="2"), Member.email.set("BOB@X"), create=True)


def test_a_bound_may_lie_outside_what_a_field_can_hold() -> None:
    """A comparison accepts any value of the type: greater than -1 is valid, though no item holds -1."""
    assert (Member.age > -1) is not None
    assert Member.age.is_in(-1, 1) is not None


def test_a_key_is_of_values_that_are_stored() -> None:
    """A key or a query with a value that no item could have is refused."""
    with pytest.raises(ValueNotStorable, match=r"Member\.name: '7' does not fit it"):
        Member.ByEmail(email="a").name.eq("7")


class Looking(Entity, table=Yard):
    """An entity with a validator that looks at another field."""

    name: Attr[str]
    low: Attr[int] = attr(default=0)
    high: Attr[Annotated[int, Field(le=9)]] = attr(default=9)

    @field_validator("high")
    @classmethod
    def above(cls, value: int, info: Any) -> int:
        """Refuse a value below the other field."""
        if value < info.data["low"]:
            raise ValueError("high is below low")
        return value

    class Key(PrimaryKey["Looking"], pk="LOOKING#{name}", sk="LOOKING"):
        name: str


def test_a_validator_that_looks_at_others_leaves_the_type_to_judge() -> None:
    """A validator that needs other fields cannot judge a change alone; the constraints of the type still do."""
    assert Looking.high.set(5) is not None
    with pytest.raises(ValueNotStorable, match="less than or equal to 9"):
        Looking.high.set(10)


def test_an_entity_is_valid_after_an_assignment() -> None:
    """An assignment of an invalid value is refused."""
    member = Member(member_id="1", email="a")
    member.email = "B"

    with pytest.raises(ValidationError):
        member.age = -1

    assert (member.email, member.age) == ("b", 0)


class Derived(Entity):
    """An entity whose validator sets a field itself."""

    first: Attr[str]
    whole: Attr[str] = attr(default="")

    @model_validator(mode="after")
    def derive_whole(self) -> Derived:
        """Derive the whole from the first part."""
        self.whole = f"{self.first}!"
        return self


def test_a_validator_may_set_fields() -> None:
    """Fields set by an entity's own validators are stored without running the validators again."""
    entity = Derived(first="a")
    entity.first = "b"

    assert entity.whole == "b!"


def test_an_invalid_sum_is_reported_when_it_is_read(yard: Connection) -> None:
    """A sum is unknown beforehand; an item that became unreadable is reported with its table and key."""
    yard.put(Member(member_id="1", email="a"))

    with pytest.raises(ItemUnreadable) as found:
        yard.update(Member.Key(member_id="1"), Member.age.add(-1))

    assert (found.value.table, found.value.key) == ("Yard", {"pk": {"S": "MEMBER#1"}, "sk": {"S": "MEMBER"}})
    assert str(found.value).endswith("(in Yard, pk='MEMBER#1', sk='MEMBER')")


def test_an_invalid_stored_value_is_reported_by_an_update(yard: Connection) -> None:
    """A stored attribute of another type raises ItemUnreadable with its key, not a pydantic error."""
    yard.put(Member(member_id="1", email="a"))
    yard.call(*raw(yard, "MEMBER#1", name={"N": "5"}))

    with pytest.raises(
        ItemUnreadable, match=r"a stored item does not match it: Input should be a valid string \(in Yard,"
    ):
        yard.update(Member.Key(member_id="1"), Member.email.set("b"))


@pytest.mark.parametrize("field", [Job.rank, Job.other])
def test_a_sum_with_what_is_absent_is_dynamodbs_refusal(yard: Connection, field: Any) -> None:
    """The error is the same, whether or not an index depends on the field."""
    yard.put(Job(job_id="1", queue="q"))

    with pytest.raises(ValidationFault, match="refers to an attribute that does not exist in the item"):
        yard.update(KEY, field.set(Job.note + 1))  # type: ignore[operator]


class Place(BaseModel):
    """A place in a document."""

    colour: Colour
    seen: datetime


class Deep(Entity):
    """An entity with types inside types."""

    colours: Attr[set[Colour]]
    times: Attr[list[datetime]]
    shades: Attr[dict[str, Colour]]
    place: Attr[Place]
    pair: Attr[tuple[int, datetime]]
    free: Attr[Any]


AT = datetime(2026, 9, 1, tzinfo=UTC)


def value_of(made: Any) -> Any:
    """Return the one value in a change or condition."""
    node = (
        made.action.value
        if hasattr(made, "action")
        else (getattr(made.node, "operands", None) or [0, made.node.right])[1]
    )
    return node.value


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: Deep.colours.contains(Colour.RED), {"S": "red"}),
        (lambda: Deep.times.contains(AT), {"S": "2026-09-01T00:00:00.000000Z"}),
        (lambda: Deep.times[0].set(AT), {"S": "2026-09-01T00:00:00.000000Z"}),
        (lambda: Deep.shades["a"].eq(Colour.RED), {"S": "red"}),
        (lambda: Deep.place["colour"].set(Colour.RED), {"S": "red"}),
        (lambda: Deep.place["seen"].lt(AT), {"S": "2026-09-01T00:00:00.000000Z"}),
        (lambda: Deep.pair[1].set(AT), {"S": "2026-09-01T00:00:00.000000Z"}),
        (lambda: Deep.free["x"].set(5), {"N": "5"}),
    ],
)  # fmt: skip
def test_parts_of_documents_are_written_as_their_types_are(made: Any, value: Any) -> None:
    """A member or element is encoded as inside its field."""
    assert value_of(made()) == value


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda: Deep.free["x"].set(0.5), "Deep.free['x']: 0.5 is a float"),
        (lambda: Deep.times[0].set("x"), "Deep.times[0]: 'x' is of type str"),  # type: ignore[arg-type]
        (lambda: Deep.colours.add(set()), "Deep.colours: an empty set is stored as a missing attribute"),
        (lambda: Deep.colours.discard(set()), "Deep.colours: an empty set is stored as a missing attribute"),
        (lambda: Deep.colours.set_if_absent(set()), "Deep.colours: an empty set is stored as a missing attribute"),
        (lambda: Deep.colours.is_in(set()), "Deep.colours: an empty set is stored as a missing attribute"),
    ],
)  # fmt: skip
def test_an_invalid_part_is_refused_with_its_path(made: Any, problem: str) -> None:
    """An invalid value of a part, and an empty set where DynamoDB requires members, are refused by the client."""
    with pytest.raises(ModelError) as refused:
        made()

    assert str(refused.value).startswith(problem)


def test_an_empty_set_is_absence() -> None:
    """Equality with an empty set tests for absence, as it is stored; inequality tests for presence."""
    assert (Deep.colours == set()).node.function == "attribute_not_exists"  # type: ignore[union-attr]
    assert (Deep.colours != set()).node.function == "attribute_exists"  # type: ignore[union-attr]


def test_a_range_that_is_no_range_finds_nothing(yard: Connection) -> None:
    """Reversed bounds and empty strings match nothing, for a template key and for an attribute."""
    yard.put(Job(job_id="1", queue="q"))

    assert list(yard.query(Job.ByState(state="open").rank.between(5, 1))) == []
    assert list(yard.query(Job.In(queue="q", state="open").rank.between(5, 1))) == []
    assert list(yard.query(Job.In(queue="", state="open"))) == []


def test_a_lock_that_one_lost_to_oneself(yard: Connection) -> None:
    """An update returns the new entity; a write of the old one is refused with that explanation."""
    old = yard.put(Counted(name="a"))
    new = yard.update(old, Counted.value.add(1))

    with pytest.raises(LockConflict, match=r"by an update\(\) whose result was not used"):
        yard.update(old, Counted.value.add(1))

    assert yard.update(new, Counted.value.add(1)).value == 2


def test_a_batch_does_not_delete_past_a_lock(yard: Connection) -> None:
    """An entity with a lock is deleted only if unchanged, which a batch cannot check;

    a delete by key is allowed.
    """
    entity = yard.put(Counted(name="a"))

    with pytest.raises(ModelError, match=r"call delete\(\) for each one, or delete by key"):
        yard.delete_many([entity])
    yard.delete_many([Counted.Key(name="a")])

    assert yard.get(Counted.Key(name="a")) is None


def fail_once(db: Connection, operation: str) -> list[str]:
    """Execute the next call of an operation but raise a service error;

    return the list of operations called.
    """
    backend: Any = db.backend
    call = backend.call
    operations: list[str] = []
    waits = type(backend).__name__.startswith("Async")

    def fail(name: str) -> None:
        operations.append(name)
        if operations.count(operation) == 1 and name == operation:
            raise InternalServerFault("Internal server error")

    def turned(name: str, request: dict[str, Any]) -> Any:
        if waits:
            return later(name, request)
        answer = call(name, request)
        fail(name)
        return answer

    async def later(name: str, request: dict[str, Any]) -> Any:
        answer = await call(name, request)
        fail(name)
        return answer

    backend.call = turned
    if hasattr(backend, "call_all"):
        backend.call_all = lambda calls: [turned(*each) for each in calls]
    return operations


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("UpdateItem", lambda db: db.update(Plain.Key(name="a"), Plain.value.add(1))),
        ("UpdateItem", lambda db: db.update(Plain.Key(name="a"), Plain.value.set(2))),
        ("UpdateItem", lambda db: db.update(Plain.Key(name="a"), Plain.value.add(1), create=True)),
        ("PutItem", lambda db: db.create(Plain(name="b"))),
        ("PutItem", lambda db: db.put(Counted(name="c"))),
        ("PutItem", lambda db: db.put(Plain(name="a"), when=Plain.value == 1)),
        ("DeleteItem", lambda db: db.delete(Plain.Key(name="a"), when=Plain.value == 1)),
    ],
)
def test_a_write_that_may_not_be_done_twice_is_not(yard: Connection, operation: str, write: Any) -> None:
    """After a service error the outcome is unknown: counters and conditional writes are not retried."""
    yard.put(Plain(name="a", value=1))
    operations = fail_once(yard, operation)

    with pytest.raises(InternalServerFault):
        write(yard)

    assert operations.count(operation) == 1


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("PutItem", lambda db: db.put(Plain(name="a", value=2))),
        ("DeleteItem", lambda db: db.delete(Plain.Key(name="a"))),
        ("GetItem", lambda db: db.get(Plain.Key(name="a"))),
        ("BatchWriteItem", lambda db: db.put_many([Plain(name="a"), Plain(name="b")])),
    ],
)
def test_an_idempotent_request_is_retried(yard: Connection, operation: str, write: Any) -> None:
    """An idempotent write, and any read, is retried after a service error."""
    yard.put(Plain(name="a", value=1))
    operations = fail_once(yard, operation)

    write(yard)

    assert operations.count(operation) == 2


def test_a_transaction_is_retried_with_its_token(yard: Connection) -> None:
    """A transaction that failed after its execution is retried with its token, and not executed again."""
    yard.put(Plain(name="a", value=1))
    operations = fail_once(yard, "TransactWriteItems")

    with yard.transaction() as tx:
        tx.update(Plain.Key(name="a"), Plain.value.add(1))

    assert operations.count("TransactWriteItems") == 2
    assert yard.get(Plain.Key(name="a")) == Plain(name="a", value=2)


def test_a_question_for_none_is_still_refused() -> None:
    """None has no order and is in no key."""
    with pytest.raises(QueryRefused):
        Member.age.lt(None)  # type: ignore[arg-type]
