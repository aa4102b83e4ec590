"""Generated policies, put on the engine in strict mode, allow exactly the applications' patterns and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tavola import AccessDeniedFault, Connection, Credentials, Engine, connect
from tavola.apps.service_desk import model as service_desk
from tavola.apps.support_desk import model as support_desk
from tavola.apps.terraform_review import model as terraform_review
from tavola.clock import SYSTEM_CLOCK
from tavola.iac.policies import derive_policies, render_policy
from tavola.iam import DirectoryFile
from tavola.model.document import Design, design_of
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tests.iac import shop
from tests.iac.asking import Application
from tests.iac.probing import ACCOUNT, ELSEWHERE, REGION, Probes, Seen, Watched, keys_of, surprises
from tests.server.directories import WRITER, user, write_directory

pytestmark = pytest.mark.slow  # thousands of calls of a strict server: `make slow` runs it

APPLICATIONS = {
    "service_desk": (service_desk, Application((service_desk.ServiceTickets,))),
    "support_desk": (
        support_desk,
        Application(support_desk.TABLES, (support_desk.TicketFeedback, support_desk.FullTicket)),
    ),
    "terraform_review": (terraform_review, Application((terraform_review.Reviews,))),
    "shop": (shop, Application((shop.Shop,), views={shop.Product: shop.Price})),
}
ROLES = ("reader", "writer", "service")
FIRST = {"reader": 1, "writer": 1000, "service": 2000}  # the numbers of the items that a role works on


@cache
def design(name: str) -> Design:
    """Return the design of an application."""
    return design_of(APPLICATIONS[name][0])


def documents(name: str) -> dict[str, dict[str, Any]]:
    """Return the policies of an application, by role."""
    return {
        policy.role: render_policy(policy, region=REGION, account=ACCOUNT)
        for policy in derive_policies(design(name), tls=False)  # the server here speaks plain HTTP
    }


@cache
def seen(name: str, role: str) -> Seen:
    """Return what the patterns of a role ask of an engine that lets everything through."""
    application = APPLICATIONS[name][1]
    found = Seen(keys_of(design(name)))
    with Engine.open() as engine:
        with connect(engine, region=REGION, account=ACCOUNT) as db:
            db.create_tables(*application.tables)
            for first in sorted({1, FIRST[role]}):
                application.fill(db, first)
        _work(Connection(Watched(engine, found)), application, role)
    return found


def _work(db: Connection, application: Application, role: str) -> None:
    if role in ("reader", "service"):
        application.read(db)
    if role in ("writer", "service"):
        application.write(db, FIRST[role])


@contextmanager
def strict(
    name: str, policies: Mapping[str, dict[str, Any]], folder: Path, tags: Mapping[str, str] | None = None
) -> Iterator[dict[str, Connection]]:
    """Give a connection for each role to a strict server with the application's tables; `admin` may do everything."""
    application = APPLICATIONS[name][1]
    keys = {role: (f"AKIDA{role.upper()}", f"{role}/secret") for role in policies}
    users = {
        f"a-{role}": user(keys[role], policy) | {"tags": dict(tags or {})}
        for role, policy in policies.items()
    }
    directory = write_directory(folder / "iam.json", **users)
    with Engine.open() as engine:
        guarded = Safeguards(callers=StrictCallers(DirectoryFile(directory), SYSTEM_CLOCK))
        with running(engine, safeguards=guarded) as endpoint:
            found = {
                role: connect(endpoint.url, region=REGION, credentials=Credentials(*key))
                for role, key in {**keys, "admin": WRITER}.items()
            }
            admin = found["admin"]
            admin.create_tables(*application.tables)
            for first in FIRST.values():
                application.fill(admin, first)
            _make_elsewhere(admin, design(name))
            try:
                yield found
            finally:
                for db in found.values():
                    db.close()


def _make_elsewhere(admin: Connection, told: Design) -> None:
    settings = told.tables[0].settings
    names = settings.key_names
    admin.call(
        "CreateTable",
        {
            "TableName": ELSEWHERE,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
            ],
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        },
    )


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_role_may_do_its_patterns_and_nothing_else(name: str, tmp_path: Path) -> None:
    """Every declared pattern is done under its policy; every other operation, table, index, key and attribute is denied."""
    policies = {role: document for role, document in documents(name).items() if role in ROLES}
    with strict(name, policies, tmp_path) as connections:
        for role in policies:
            _work(connections[role], APPLICATIONS[name][1], role)
            probes = Probes(design(name), connections["admin"])

            assert surprises(connections[role], probes, seen(name, role)) == []


Statement = dict[str, Any]


def _more_actions(statement: Statement) -> None:
    statement["Action"].append("dynamodb:DeleteItem")


def _any_action(statement: Statement) -> None:
    statement["Action"] = ["dynamodb:*"]


def _any_index(statement: Statement) -> None:
    statement["Resource"] = [
        f"{arn}/index/*" if "/index/" not in arn else f"{arn.split('/index/')[0]}/index/*"
        for arn in statement["Resource"]
    ]


def _any_table(statement: Statement) -> None:
    statement["Resource"] = [f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/*"]


def _unconditional(statement: Statement) -> None:
    statement.pop("Condition", None)


def _shorter_prefix(statement: Statement) -> None:
    for told in statement.get("Condition", {}).values():
        if "dynamodb:LeadingKeys" in told and isinstance(told["dynamodb:LeadingKeys"], list):
            told["dynamodb:LeadingKeys"] = ["*"]


def _outside(statement: Statement) -> None:
    statement["Condition"].pop("StringEquals")


@pytest.mark.parametrize(
    ("holds", "widen"),
    [
        ("dynamodb:GetItem", _more_actions),
        ("dynamodb:GetItem", _any_action),
        ("index/shelves", _any_index),
        ("index/listing", _any_table),
        ("index/listing", _unconditional),
        ("dynamodb:GetItem", _shorter_prefix),
        ("dynamodb:EnclosingOperation", _outside),
    ],
)
def test_a_policy_that_is_too_wide_is_found(
    holds: str, widen: Callable[[Statement], None], tmp_path: Path
) -> None:
    """One action, wildcard or condition too many in one statement shows among the probes."""
    policy = deepcopy(documents("shop")["service"])
    widen(next(each for each in policy["Statement"] if holds in json.dumps(each)))
    with strict("shop", {"service": policy}, tmp_path) as connections:
        probes = Probes(design("shop"), connections["admin"])
        found = surprises(connections["service"], probes, seen("shop", "service"))

    assert found
    assert all(each.startswith("allowed: ") for each in found)


def test_a_policy_that_is_too_narrow_is_found(tmp_path: Path) -> None:
    """Without one of its statements a service cannot do its patterns."""
    policy = deepcopy(documents("support_desk")["service"])
    policy["Statement"] = policy["Statement"][1:]
    with (
        strict("support_desk", {"service": policy}, tmp_path) as connections,
        pytest.raises(AccessDeniedFault),
    ):
        _work(connections["service"], APPLICATIONS["support_desk"][1], "service")


def test_a_tenant_works_on_its_own_alone(tmp_path: Path) -> None:
    """What its tag leads is read and written; another's, also one whose name begins alike, and all else is denied."""
    with strict(
        "shop", {"tenant": documents("shop")["tenant"]}, tmp_path, tags={"tenant": "1"}
    ) as connections:
        tenant = connections["tenant"]
        (customer,) = tenant.get_together(shop.Customer.Key(tenant="1", customer_id="1"))
        assert customer is not None
        assert tenant.query(shop.Customer.Named(tenant="1")).items == [customer]
        assert tenant.get(shop.Note.Key(tenant="1", note_id="1")) is not None
        assert tenant.query(shop.Note.All(tenant="1")).items
        tenant.create(shop.Note(tenant="1", note_id="new", text="mine"))
        for other in ("2", "11", "", "*"):
            with pytest.raises(AccessDeniedFault):
                tenant.get_together(shop.Customer.Key(tenant=other, customer_id="1"))
            with pytest.raises(AccessDeniedFault):
                tenant.query(shop.Customer.Named(tenant=other))
            with pytest.raises(AccessDeniedFault):
                tenant.query(shop.Note.All(tenant=other or "x"))
            with pytest.raises(AccessDeniedFault):
                tenant.create(shop.Note(tenant=other or "x", note_id="new", text="not mine"))
        nothing = Seen(())

        assert surprises(tenant, Probes(design("shop"), connections["admin"]), nothing) == []


def test_whoever_has_no_tag_is_nobody(tmp_path: Path) -> None:
    """Without the tag that says whose they are, a tenant's policy allows nothing."""
    with strict("shop", {"tenant": documents("shop")["tenant"]}, tmp_path) as connections:
        with pytest.raises(AccessDeniedFault):
            connections["tenant"].query(shop.Note.All(tenant="1"))


KEPT = ("GetItem", "BatchGetItem", "Query", "ConditionCheckItem", "PutItem", "UpdateItem")


def test_a_consumer_reads_its_stream_and_keeps_what_it_names(tmp_path: Path) -> None:
    """The role of a stream's consumer follows the stream and keeps its own entity; it sees no other item and no other table."""
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/shop"
    role = "consumer-counts"
    with strict("shop", {role: documents("shop")[role]}, tmp_path) as connections:
        assert list(connections[role].subscribe(shop.Shop, from_="start", follow=False))
        stream = connections["admin"].call("DescribeTable", {"TableName": "shop"})["Table"]["LatestStreamArn"]
        follows = Seen(())
        follows.allowances = {
            *(
                (action, stream, "", "", False)
                for action in ("DescribeStream", "GetShardIterator", "GetRecords")
            ),
            ("ListStreams", f"{arn}/stream/*", "", "", False),
            ("DescribeTable", arn, "", "", False),
            *((action, arn, "COUNTER#", "", False) for action in KEPT),
        }

        assert surprises(connections[role], Probes(design("shop"), connections["admin"]), follows) == []


def test_a_founder_makes_the_tables_and_sees_no_item(tmp_path: Path) -> None:
    """Whoever deploys makes tables, indexes and settings; items, other tables and an end of a table are denied."""
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/shop"
    with strict("shop", {"deployer": documents("shop")["deployer"]}, tmp_path) as connections:
        deployer, admin = connections["deployer"], connections["admin"]
        admin.delete_tables(shop.Shop)
        deployer.create_tables(shop.Shop)
        assert deployer.apply_changes(shop.Shop, drop=True).changes == ()
        makes = Seen(())
        makes.allowances = {
            (action, arn, "", "", False)
            for action in (
                "CreateTable", "DescribeTable", "UpdateTable", "TagResource", "UntagResource", "ListTagsOfResource",
                "UpdateTimeToLive", "DescribeTimeToLive", "UpdateContinuousBackups", "DescribeContinuousBackups",
            )
        }  # fmt: skip

        assert surprises(deployer, Probes(design("shop"), admin), makes) == []


def test_a_keeper_makes_backups_and_takes_none_away(tmp_path: Path) -> None:
    """Backups are made, listed and looked at; they are neither deleted nor restored, and no item is seen."""
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/shop"
    with strict("shop", {"backup": documents("shop")["backup"]}, tmp_path) as connections:
        backup, admin = connections["backup"], connections["admin"]
        made = backup.call("CreateBackup", {"TableName": "shop", "BackupName": "nightly"})["BackupDetails"]
        backup.call("DescribeBackup", {"BackupArn": made["BackupArn"]})
        backup.call("ListBackups", {"TableName": "shop"})
        keeps = Seen(())
        keeps.allowances = {
            *(
                (action, arn, "", "", False)
                for action in ("CreateBackup", "DescribeTable", "DescribeContinuousBackups")
            ),
            ("DescribeBackup", f"{arn}/backup/01489602797149-73d8d5bc", "", "", False),
            ("ListBackups", "*", "", "", False),
        }

        assert surprises(backup, Probes(design("shop"), admin), keeps) == []
