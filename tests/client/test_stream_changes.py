"""A table's stream as changes of entities: their contents and their routing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    ManualClock,
    ModelError,
    PrimaryKey,
    Table,
    attr,
    connect,
    upgrade,
)
from tavola.client.routers import ChangeUnrouted, Router
from tavola.client.stream_changes import (
    AnyChange,
    EntityChange,
    ImageMissing,
    RawChange,
    changes_of,
)
from tavola.client.streams import RecordMalformed
from tests.client.conftest import START_S
from tests.client.desk import Desk, Feedback, Session, Ticket
from tests.client.streams import AT, read_changes, ticket

IMAGE: dict[str, Any] = {
    "pk": {"S": "SESSION#s"},
    "sk": {"S": "SESSION"},
    "_entity": {"S": "Session"},
    "session_id": {"S": "s"},
    "agent": {"S": "ada"},
    "expires": {"N": "1800000000"},
}
KEYS = {name: IMAGE[name] for name in ("pk", "sk")}


def only(changes: list[AnyChange]) -> Any:
    """Return the single change of a list."""
    (found,) = changes
    return found


# Contents of a change


def test_a_change_has_both_entities_and_the_fields_that_differ(db: Connection) -> None:
    """Inserted, modified and removed: the entity before and after, the changed fields, the key and the time."""
    db.put(ticket())
    db.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"), Ticket.replies.add(1))
    db.delete(Ticket.Key(ticket_id="t1"))

    inserted, modified, removed = read_changes(db)

    assert isinstance(inserted, EntityChange)
    assert (inserted.kind, inserted.old, inserted.new) == ("inserted", None, ticket())
    assert isinstance(modified, EntityChange)
    assert (modified.old, modified.new) == (ticket(), ticket(status="closed", replies=1))
    assert modified.changed == {"status", "replies"}
    assert modified.became("status", "closed")
    assert not modified.became("status", "open")
    assert (removed.kind, removed.new, removed.expired) == ("removed", None, False)
    assert isinstance(removed, EntityChange)
    assert removed.changed == {name for name, value in removed.old.__dict__.items() if value is not None}
    assert [repr(c.key) for c in (inserted, modified, removed)] == ["Ticket.Key(ticket_id='t1')"] * 3
    assert int(inserted.sequence) < int(modified.sequence) < int(removed.sequence)
    assert inserted.at.tzinfo is UTC
    assert inserted.origin.stream is not None
    assert inserted.origin.shard is not None


def test_an_item_of_no_entity_is_delivered_raw(db: Connection) -> None:
    """An item outside the design is delivered as DynamoDB stores it, never dropped."""
    item = {"pk": {"S": "ALIEN"}, "sk": {"S": "X"}, "n": {"N": "1"}}
    name = db.context.name_of(Desk)
    db.call("PutItem", {"TableName": name, "Item": item})

    change = only(read_changes(db))

    assert isinstance(change, RawChange)
    assert (change.kind, change.old, change.new) == ("inserted", None, item)
    assert change.problem is None


def test_an_item_that_its_entity_cannot_read_comes_with_the_reason(db: Connection) -> None:
    """A ticket without what a ticket needs is raw, with the entity and why, and does not stop the stream."""
    db.put(ticket())
    name = db.context.name_of(Desk)
    key = {"pk": {"S": "TICKET#t1"}, "sk": {"S": "METADATA"}}
    bad = {"S": "sometimes"}
    for value in (bad, {"S": "open"}):
        db.call(
            "UpdateItem",
            {
                "TableName": name,
                "Key": key,
                "UpdateExpression": "SET #s = :s",
                "ExpressionAttributeNames": {"#s": "status"},
                "ExpressionAttributeValues": {":s": value},
            },
        )

    _, broken, repaired = read_changes(db)

    assert isinstance(broken, RawChange)
    assert broken.entity is Ticket
    assert broken.new is not None
    assert broken.new["status"] == bad
    assert "status" in str(broken.problem)
    assert broken.found is None
    assert isinstance(repaired, RawChange)
    assert repaired.found == ticket()


def test_an_item_overwritten_by_another_entity_went_and_came(db: Connection) -> None:
    """One record of two entities is a removal of the one and an insertion of the other, under one number."""
    db.put(ticket())
    item = {**IMAGE, "pk": {"S": "TICKET#t1"}, "sk": {"S": "METADATA"}}  # as no program of this design would
    db.call("PutItem", {"TableName": db.context.name_of(Desk), "Item": item})

    _, gone, come = read_changes(db)

    assert (gone.kind, gone.old, gone.new) == ("removed", ticket(), None)
    assert (come.kind, come.old) == ("inserted", None)
    assert isinstance(come.new, Session)
    assert gone.sequence == come.sequence


def test_the_guards_of_unique_values_are_no_changes(opened: Callable[..., Connection]) -> None:
    """Changes of the guards of unique values are not delivered."""

    class Club(Table, stream="NEW_AND_OLD_IMAGES"):
        pass

    class Member(Entity, table=Club):
        member_id: Attr[str]
        mail: Attr[str] = attr(unique=True)

        class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
            member_id: str

    db = opened()
    db.create_tables(Club)
    db.put(Member(member_id="1", mail="a@b"))

    assert only(read_changes(db, Club)).new == Member(member_id="1", mail="a@b")


def test_old_schemas_are_upgraded(opened: Callable[..., Connection]) -> None:
    """An image of an earlier version of an entity comes as the present one, old and new alike."""

    class Cellar(Table, stream="NEW_AND_OLD_IMAGES"):
        pass

    class Bottle(Entity, table=Cellar, version=2):
        bottle_id: Attr[str]
        millilitres: Attr[int]

        class Key(PrimaryKey["Bottle"], pk="BOTTLE#{bottle_id}", sk="BOTTLE"):
            bottle_id: str

        @staticmethod
        @upgrade(1)
        def _in_millilitres(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "millilitres": int(item["litres"] * 1000)}

    db = opened()
    db.create_tables(Cellar)
    old = {
        "pk": {"S": "BOTTLE#b"},
        "sk": {"S": "BOTTLE"},
        "_entity": {"S": "Bottle"},
        "bottle_id": {"S": "b"},
    }
    db.call("PutItem", {"TableName": db.context.name_of(Cellar), "Item": {**old, "litres": {"N": "0.75"}}})
    db.put(Bottle(bottle_id="b", millilitres=700))

    inserted, modified = read_changes(db, Cellar)

    assert inserted.new == Bottle(bottle_id="b", millilitres=750)
    assert isinstance(modified, EntityChange)
    assert modified.old == inserted.new
    assert modified.changed == {"millilitres"}


def test_a_deletion_by_time_to_live_is_marked_expired() -> None:
    """A deletion by the service is expired; a caller's delete is not."""
    clock = ManualClock(START_S)
    with connect("memory:", clock=clock, ttl_interval_s=60) as db:
        db.create_tables(Desk)
        over = datetime.fromtimestamp(START_S + 10, UTC)
        db.put(Session(session_id="s1", agent="ada", expires=over))
        db.put(Session(session_id="s2", agent="eve", expires=over))
        db.delete(Session.Key(session_id="s2"))
        clock.advance(3_600)
        db.call("ListTables")

        removed = [change for change in read_changes(db) if change.kind == "removed"]

    assert {repr(c.key): c.expired for c in removed if isinstance(c, EntityChange)} == {
        "Session.Key(session_id='s2')": False,
        "Session.Key(session_id='s1')": True,
    }


def record(name: str = "MODIFY", **more: Any) -> dict[str, Any]:
    """Return a record as Lambda delivers it."""
    change = {
        "Keys": KEYS,
        "SequenceNumber": "100000000000000000001",
        "ApproximateCreationDateTime": 1_790_000_000.5,
    }
    return {"eventID": "e1", "eventName": name, "dynamodb": {**change, **more.pop("dynamodb", {})}, **more}


@pytest.mark.parametrize(
    ("identity", "expired"),
    [
        ({"type": "Service", "principalId": "dynamodb.amazonaws.com"}, True),
        ({"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}, True),
        ({"type": "User", "principalId": "ada"}, False),
        (None, False),
    ],
)
def test_expiry_is_recognized_by_the_user_identity(identity: Any, expired: bool) -> None:
    """Lambda and GetRecords spell the identity in different cases;

    both are recognized, others are not an expiry.
    """
    event = record("REMOVE", userIdentity=identity, dynamodb={"OldImage": IMAGE})

    assert only(list(changes_of(Desk, event))).expired is expired


def test_events_of_every_shape_are_accepted() -> None:
    """A Lambda event, a GetRecords response, a list of records and one record yield the same changes."""
    one = record(dynamodb={"NewImage": IMAGE, "OldImage": IMAGE}, eventSourceARN="arn:x")
    shapes: list[Any] = [{"Records": [one]}, {"Records": (one,), "NextShardIterator": "x"}, [one], one]

    found = [only(list(changes_of(Desk, shape))) for shape in shapes]

    assert found[1:] == found[:-1]
    assert found[0].origin.stream == "arn:x"
    assert found[0].at == datetime.fromtimestamp(1_790_000_000.5, UTC)


def test_records_parsed_by_botocore_are_accepted() -> None:
    """A boto3 client returns datetimes and bytes where the wire has numbers and base64."""

    class Safe(Table, tag=None):
        pass

    class Secret(Entity, table=Safe):
        name: Attr[str]
        content: Attr[bytes]
        parts: Attr[list[bytes]] = attr(default_factory=list)

        class Key(PrimaryKey["Secret"], pk="SECRET#{name}", sk="SECRET"):
            name: str

    keys: dict[str, Any] = {"pk": {"S": "SECRET#s"}, "sk": {"S": "SECRET"}}
    binary = {
        "content": {"B": b"\x00\xff"},
        "parts": {"L": [{"B": b"\x01"}]},
        "other": {"M": {"x": {"BS": [b"y"]}}},
    }
    parsed = {
        "eventName": "INSERT",
        "dynamodb": {
            "Keys": keys,
            "NewImage": {**keys, "name": {"S": "s"}, **binary},
            "SequenceNumber": "1",
            "ApproximateCreationDateTime": AT,
        },
    }

    change = only(list(changes_of(Safe, parsed)))

    assert change.new == Secret(name="s", content=b"\x00\xff", parts=[b"\x01"])
    assert change.at == AT
    assert b64encode(b"\x00\xff").decode() == "AP8="


def test_a_keys_only_record_identifies_the_entity_and_its_key() -> None:
    """In a KEYS_ONLY stream the entity is found by its key templates;

    the changed fields are unknown and not guessed.
    """
    change = only(list(changes_of(Desk, record(dynamodb={"StreamViewType": "KEYS_ONLY"}))))

    assert isinstance(change, EntityChange)
    assert change.entity is Session
    assert repr(change.key) == "Session.Key(session_id='s')"
    assert (change.old, change.new) == (None, None)
    with pytest.raises(ImageMissing, match=r"KEYS_ONLY.*NEW_AND_OLD_IMAGES"):
        _ = change.changed


@pytest.mark.parametrize("event", [{}, {"records": []}, [{"eventName": "INSERT"}], [{"dynamodb": {}}]])
def test_an_event_of_another_source_is_refused(event: Any) -> None:
    """The error names the source."""
    with pytest.raises(RecordMalformed, match="not an event of a DynamoDB stream"):
        list(changes_of(Desk, event))


def test_changes_are_matched() -> None:
    """`match` distinguishes changes by entity, kind and cause."""

    def said(change: AnyChange) -> str:
        match change:
            case EntityChange(new=Session() as session, kind="inserted"):
                return f"welcome {session.agent}"
            case EntityChange(old=Session() as session, expired=True):
                return f"timed out {session.agent}"
            case EntityChange(entity=entity):
                return entity.__name__
            case RawChange():
                return "raw"

    service = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    events = [
        record("INSERT", dynamodb={"NewImage": IMAGE}),
        record("REMOVE", dynamodb={"OldImage": IMAGE}, userIdentity=service),
        record("REMOVE", dynamodb={"OldImage": IMAGE}),
        record("INSERT", dynamodb={"Keys": {"pk": {"S": "x"}}, "NewImage": {"pk": {"S": "x"}}}),
    ]

    assert [said(c) for c in changes_of(Desk, events)] == ["welcome ada", "timed out ada", "Session", "raw"]


# Router


def routed(changes: list[str]) -> Router:
    """Return a router that notes what it gets."""
    router = Router(Desk)

    @router.on(Ticket)
    def on_ticket(change: EntityChange[Ticket]) -> None:
        changes.append(f"ticket {change.kind}")

    @router.on(Session, "removed")
    def on_goodbye(change: EntityChange[Session]) -> None:
        changes.append("session removed")

    @router.on(Entity, "inserted")
    def on_any(change: EntityChange[Entity]) -> None:
        if change.entity is Feedback:
            raise ValueError("not that")
        changes.append(f"{change.entity.__name__} came")

    return router


def test_a_router_calls_by_entity_and_kind(db: Connection) -> None:
    """A change is passed to the functions for its entity, its bases and its kind, in declaration order."""
    seen: list[str] = []
    db.put(ticket())
    db.put(Session(session_id="s", agent="a", expires=AT + timedelta(days=500)))
    db.delete(Session.Key(session_id="s"))
    router = routed(seen)

    for change in read_changes(db):
        router.dispatch(change)

    assert seen == ["ticket inserted", "Ticket came", "Session came", "session removed"]


def test_a_router_is_a_lambda_function(db: Connection) -> None:
    """The first change that fails ends it: it is raised, or reported if the router is created for a mapping that reads that."""
    seen: list[str] = []
    router = routed(seen)
    image = {
        "_entity": {"S": "Feedback"},
        "ticket_id": {"S": "t"},
        "customer_id": {"S": "c"},
        "score": {"N": "1"},
    }
    feedback = {**image, "pk": {"S": "TICKET#t"}, "sk": {"S": "FEEDBACK"}}
    good = record("INSERT", dynamodb={"NewImage": IMAGE})
    bad = record("INSERT", dynamodb={"NewImage": feedback, "SequenceNumber": "100000000000000000002"})

    assert router.handler({"Records": [good]}, None) is None
    with pytest.raises(ValueError, match="not that") as raised:
        router.handler({"Records": [good, bad, good]}, None)
    assert any("100000000000000000002" in note for note in raised.value.__notes__)
    assert seen == ["Session came", "Session came"]

    router.report_batch_item_failures = True
    assert router.handler({"Records": [good]}, None) == {"batchItemFailures": []}
    assert router.handler({"Records": [good, bad, good]}, None) == {
        "batchItemFailures": [{"itemIdentifier": "100000000000000000002"}]
    }
    assert seen == ["Session came"] * 4


def test_a_router_loses_nothing_silently(db: Connection) -> None:
    """An item of no entity is an error unless a handler for such items is registered."""
    alien = record("INSERT", dynamodb={"Keys": {"pk": {"S": "x"}}, "NewImage": {"pk": {"S": "x"}}})
    change = only(list(changes_of(Desk, alien)))
    router = Router(Desk)
    with pytest.raises(ChangeUnrouted, match="no entity of this design"):
        router.dispatch(change)
    seen: list[RawChange] = []
    router.raw(seen.append)

    router.dispatch(change)

    assert seen == [change]


def test_a_router_refuses_entities_of_other_tables() -> None:
    """An entity of another table has no changes in this table's stream."""

    class Elsewhere(Table):
        pass

    class Foreign(Entity, table=Elsewhere):
        name: Attr[str]

        class Key(PrimaryKey["Foreign"], pk="S#{name}", sk="S"):
            name: str

    with pytest.raises(ModelError, match="Foreign: it is stored in another table than Desk"):
        Router(Desk).on(Foreign)
