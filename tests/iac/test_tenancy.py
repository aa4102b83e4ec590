"""Tenancy: nothing stands under a tenant's name that another wrote, and no name leads to a longer one's; on the engine in strict mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola import (
    AccessDeniedFault,
    AccessPattern,
    Attr,
    Connection,
    Credentials,
    Engine,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    connect,
    sort,
)
from tavola.clock import SYSTEM_CLOCK
from tavola.iac.policies import derive_policies, render_policy
from tavola.iam import DirectoryFile
from tavola.model.document import design_of
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.iac.probing import ACCOUNT, REGION
from tests.server.directories import WRITER, user, write_directory


class Desk(Table, name="desk"):
    by_day = Gsi(pk="g1pk", sk="g1sk")
    by_region = Gsi(pk=("region", "owner"))


class Ticket(
    Entity,
    table=Desk,
    writes=(
        WritePattern("a ticket is opened", "put"),
        WritePattern("a text changes", "update", changes=("text",)),
        WritePattern("a day changes", "update", changes=("day",)),
        WritePattern("a ticket goes", "delete"),
    ),
):
    tenant: Attr[str] = attr(tenant=True)
    ticket_id: Attr[str]
    day: Attr[str]
    text: Attr[str]

    class Key(PrimaryKey["Ticket"], pk="T#{tenant}", sk="{ticket_id}", access=AccessPattern("a ticket")):
        tenant: str
        ticket_id: str

    class Days(Query["Ticket"], on=Desk.by_day, pk="DAY#{tenant}", sk="{day}"):
        tenant: str
        day: Sort[str] = sort()


class Note(
    Entity,
    table=Desk,
    writes=(WritePattern("a note is left", "put"), WritePattern("notes are loaded", "put", items=20)),
):
    tenant: Attr[str] = attr(tenant=True)
    note_id: Attr[str]
    text: Attr[str]

    class Key(PrimaryKey["Note"], pk="N#{tenant}", sk="{note_id}", access=AccessPattern("a note")):
        tenant: str
        note_id: str


class Place(Entity, table=Desk, writes=(WritePattern("a place opens", "put"),)):
    owner: Attr[str] = attr(tenant=True)
    place_id: Attr[str]
    region: Attr[str]

    class Key(PrimaryKey["Place"], pk="P#{owner}", sk="{place_id}", access=AccessPattern("a place")):
        owner: str
        place_id: str

    class Of(Query["Place"], on=Desk.by_region):
        region: str
        owner: str


class Dash(Entity, table=Desk, writes=(WritePattern("a dash", "put"),)):
    tenant: Attr[str] = attr(tenant=True)
    kind: Attr[str]

    class Key(PrimaryKey["Dash"], pk="D#{tenant:raw}-{kind}", sk="D", access=AccessPattern("a dash")):
        tenant: str
        kind: str


(POLICY,) = (each for each in derive_policies(design_of(Desk), tls=False) if each.role == "tenant")
TENANTS = ("ac", "acme", "acme-eu")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[dict[str, Connection]]:
    """Connections of tenants to a strict server, by name, and of an administrator."""
    document = render_policy(POLICY, region=REGION, account=ACCOUNT)
    keys = {name: (f"AKIDA{name.upper().replace('-', '')}", f"{name}/secret") for name in TENANTS}
    users = {
        f"u-{name}": user(key, document) | {"tags": {"tenant": name, "owner": name}}
        for name, key in keys.items()
    }
    directory = write_directory(tmp_path / "iam.json", **users)
    callers = StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK)
    with Engine.open() as engine, running(engine, safeguards=Safeguards(callers=callers)) as endpoint:
        found = {
            name: connect(endpoint.url, region=REGION, credentials=Credentials(*key))
            for name, key in {**keys, "admin": WRITER}.items()
        }
        found["admin"].create_tables(Desk)
        found["admin"].create(Ticket(tenant="ac", ticket_id="1", day="1", text="own"))
        found["admin"].create(Dash(tenant="acme-eu", kind="x"))
        yield found
        for db in found.values():
            db.close()


PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "put of a ticket": (
        "PutItem",
        {"Item": {"pk": {"S": "T#ac"}, "sk": {"S": "p"}, "g1pk": {"S": "DAY#acme"}, "g1sk": {"S": "2"}}},
    ),
    "put of a note": (
        "PutItem",
        {"Item": {"pk": {"S": "N#ac"}, "sk": {"S": "p"}, "g1pk": {"S": "DAY#acme"}, "g1sk": {"S": "2"}}},
    ),
    "put by own attributes": (
        "PutItem",
        {"Item": {"pk": {"S": "N#ac"}, "sk": {"S": "p"}, "region": {"S": "eu"}, "owner": {"S": "acme"}}},
    ),
    "update of a ticket": (
        "UpdateItem",
        {
            "Key": {"pk": {"S": "T#ac"}, "sk": {"S": "1"}},
            "UpdateExpression": "SET g1pk = :key",
            "ExpressionAttributeValues": {":key": {"S": "DAY#acme"}},
        },
    ),
}


@pytest.mark.parametrize("way", PLANTED)
def test_nobody_plants_an_item_under_anothers_name(there: dict[str, Connection], way: str) -> None:
    """A write that could say in an index that an item is another's is denied, whatever partition it is in."""
    operation, request = PLANTED[way]

    with pytest.raises(AccessDeniedFault):
        there["ac"].call(operation, {"TableName": "desk", **request})
    assert there["acme"].query(Ticket.Days(tenant="acme")).items == []


def test_nobody_plants_by_a_batch(there: dict[str, Connection]) -> None:
    """IAM cannot hold a batch to attributes, so a tenant has none in a table that is asked by tenants' indexes."""
    item = {"pk": {"S": "N#ac"}, "sk": {"S": "p"}, "g1pk": {"S": "DAY#acme"}, "g1sk": {"S": "2"}}

    with pytest.raises(AccessDeniedFault):
        there["ac"].call("BatchWriteItem", {"RequestItems": {"desk": [{"PutRequest": {"Item": item}}]}})


def test_what_plants_nothing_is_allowed(there: dict[str, Connection]) -> None:
    """A tenant leaves notes, changes what is in no key of another's asking, and deletes its own."""
    tenant = there["ac"]
    tenant.create(Note(tenant="ac", note_id="1", text="mine"))
    assert tenant.get(Note.Key(tenant="ac", note_id="1")) is not None
    tenant.update(Ticket.Key(tenant="ac", ticket_id="1"), Ticket.text.set("changed"))

    assert [found.text for found in tenant.query(Ticket.Days(tenant="ac")).items] == ["changed"]
    tenant.delete(Ticket.Key(tenant="ac", ticket_id="1"))


def test_a_name_does_not_lead_to_a_longer_one(there: dict[str, Connection]) -> None:
    """Where a key does not end a tenant's name, `acme` cannot be told from `acme-eu`: neither is let in."""
    for name in ("acme", "acme-eu"):
        with pytest.raises(AccessDeniedFault):
            there[name].get(Dash.Key(tenant="acme-eu", kind="x"))


def test_what_is_left_out_is_told() -> None:
    """Each pattern that a tenant is not given is named, with why."""
    notes = " | ".join(POLICY.notes)

    assert (
        "Ticket 'a ticket is opened' is not allowed: IAM cannot see which tenant a write puts into g1pk"
        in notes
    )
    assert "Note 'notes are loaded' is not allowed: IAM cannot restrict the attributes of a batch" in notes
    assert (
        "Place 'a place opens' is not allowed: IAM cannot see which tenant a write puts into owner" in notes
    )
    assert "Dash by 'D#{tenant:raw}-{kind}' is not allowed: '-' follows the tenant" in notes
    assert "a text changes" not in notes
    assert "Ticket 'a day changes' is not allowed" in notes  # the client writes an index key whole
