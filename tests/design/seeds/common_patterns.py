"""The samples of the two documents on patterns that do what the same documents warn of, or that break."""

from __future__ import annotations

from tavola.model import SHARD
from tavola.model.document import Given, Need, Route, Shards
from tests.design.builders import (
    access,
    choice,
    collection,
    date,
    design,
    entity,
    gsi,
    key,
    moment,
    number,
    put,
    query,
    table,
    text,
)
from tests.design.seeds.defects import Defect

INVERTED = gsi("GSI1", "GSI1PK", "GSI1SK")
PROFILE = entity(
    "Profile",
    text("user"),
    text("name"),
    pk="USER#{user}",
    sk="USER#{user}",
    primary={"per_second": 10, "items": 1, "item_bytes": 200},
)
FOLLOW = entity(
    "Follow",
    text("user"),
    text("followed"),
    text("since", nullable=True),
    pk="USER#{user}",
    sk="FOLLOWS#{followed}",
    keys=[key(INVERTED, "USER#{followed}", "FOLLOWER#{user}")],
    patterns=[
        query("Following", None, "user", "followed", per_second=10, items=20, item_bytes=100),
        query("Followers", INVERTED, "followed", "user", per_second=10, items=20, item_bytes=100),
    ],
    writes=[
        put("follow somebody", per_second=5, item_bytes=100),  # as Alice follows Bob and Carol
        put("follow, with the inverted key", per_second=5, item_bytes=100, rewrites=("GSI1PK", "GSI1SK")),
    ],
)
SOCIAL = table(PROFILE, FOLLOW, label="Social", indexes=[INVERTED], foreign=True)

ORGANISATION = entity(
    "Organisation",
    text("org"),
    text("name"),
    text("plan"),
    pk="ORG#{org}",
    sk="METADATA",
    primary={"per_second": 5, "items": 1, "item_bytes": 300},
)
MEMBER = entity(
    "Member",
    text("org"),
    text("user"),
    text("name"),
    text("email"),
    choice("status", "active", "invited", "gone"),
    pk="ORG#{org}",
    sk="USER#{user}",
)
ORGANISATIONS = table(
    ORGANISATION,
    MEMBER,
    label="Organisations",
    collections=[
        collection(
            "OrganisationWithUsers",
            "ORG#{org}",
            "Organisation",
            "Member",
            per_second=5,
            items=50,
            item_bytes=200,
        )
    ],
    foreign=True,
)

OVERLOADED = gsi("GSI1", "GSI1PK", "GSI1SK")
MARKET = table(
    entity(
        "Customer", text("customer_id"), text("email"), pk="USER#{customer_id}", sk="USER#{customer_id}",
        keys=[key(OVERLOADED, "EMAIL#{email}", "USER#{customer_id}")],
        patterns=[query("ByEmail", OVERLOADED, "email", "customer_id", per_second=5, items=1, item_bytes=200)],
    ),
    entity(
        "Sale", text("sale_id"), choice("status", "pending", "shipped", "delivered"), text("day"),
        pk="ORDER#{sale_id}", sk="ORDER#{sale_id}",
        keys=[key(OVERLOADED, "STATUS#{status}", "ORDER#{day}#{sale_id}")],
        patterns=[query("ByStatus", OVERLOADED, "status", ("day", "sale_id"), per_second=1, items=50, item_bytes=200)],
        writes=[put("sell", per_second=5, item_bytes=200)],
    ),
    entity(
        "Product", text("product_id"), text("category", distinct=40), text("name"), pk="PRODUCT#{product_id}", sk="PRODUCT#{product_id}",
        keys=[key(OVERLOADED, "CATEGORY#{category}", "PRODUCT#{product_id}")],
        patterns=[query("OfCategory", OVERLOADED, "category", "product_id", per_second=5, items=50, item_bytes=200)],
    ),
    label="Market", indexes=[OVERLOADED], foreign=True,
)  # fmt: skip

READING = entity(
    "Reading",
    text("metric_name", distinct=100),
    text("day"),
    moment("timestamp", type="naive datetime"),
    number("value", type="float"),
    pk="METRIC#{metric_name}#{day}#SHARD#{" + SHARD + "}",
    sk="TS#{timestamp}",
    shards=Shards(10, "random"),
    writes=[put("write_metric", per_second=1_000, item_bytes=100)],
)
READINGS = table(READING, label="Readings", foreign=True)

ORDER = entity(
    "Order",
    text("customer_id"),
    text("day"),
    text("status"),
    text("order_id"),
    number("total", type="float"),
    pk="CUSTOMER#{customer_id}",
    sk="ORDER#{day}#{status}#{order_id}",
    patterns=[
        query(
            "OfCustomer",
            None,
            "customer_id",
            ("day", "status", "order_id"),
            per_second=10,
            items=20,
            item_bytes=200,
        )
    ],
)
ORDERS = table(ORDER, label="Shop", foreign=True)

REGION = gsi("TournamentRegionIndex", ["tournamentId", "region"], ["round", "bracket", "matchId"])
MATCH = entity(
    "Match",
    text("matchId"),
    text("tournamentId"),
    text("region"),
    text("round"),
    text("bracket"),
    pk="MATCH#{matchId}",
    sk="METADATA",
    keys=[key(REGION)],
    patterns=[
        query(
            "OfRegion",
            REGION,
            ("tournamentId", "region"),
            ("round", "bracket", "matchId"),
            per_second=10,
            items=20,
            item_bytes=300,
        )
    ],
)
TOURNAMENTS = table(MATCH, label="Tournaments", indexes=[REGION], foreign=True)

USERS = table(
    entity("User", text("user_id"), text("name"), pk="user_id", sk=None, primary={"per_second": 20, "items": 1, "item_bytes": 300}),
    label="Users", pk="user_id", sk=None, tag=None, foreign=True,
)  # fmt: skip
BOUGHT = table(
    entity(
        "Purchase", text("user_id"), text("order_id"), choice("status", "pending", "shipped"), date("placed"),
        pk="user_id", sk="order_id",
        patterns=[query("OfUser", None, "user_id", "order_id", per_second=20, items=10, item_bytes=300)],
        items=5_000_000,
    ),
    label="Orders", pk="user_id", sk="order_id", tag=None, foreign=True,
)  # fmt: skip

NEEDS = [
    Need(
        "matches of a tournament",
        "Match",
        ("tournamentId",),
        (),
        access("matches of a tournament", per_second=1, items=50),
        route=Route("query", REGION.name, (Given("tournamentId"),)),
    ),
    Need(
        "matches of a bracket",
        "Match",
        ("tournamentId", "region", "bracket"),
        (),
        access("matches of a bracket", per_second=1, items=50),
        route=Route("query", REGION.name, (Given("tournamentId"), Given("region"), Given("bracket"))),
    ),
    Need(
        "matches of a bracket, in late rounds",
        "Match",
        ("tournamentId", "region", Given("round", ">"), "bracket"),
        (),
        access("matches of a bracket, in late rounds", per_second=1, items=50),
        route=Route(
            "query",
            REGION.name,
            (Given("tournamentId"), Given("region"), Given("round", ">"), Given("bracket")),
        ),
    ),
    Need(
        "a user with the orders",
        ("User", "Purchase"),
        ("user_id",),
        (),
        access("a user with the orders", per_second=20, items=11),
    ),
    Need(
        "pending orders",
        "Purchase",
        ("status",),
        (),
        access("pending orders", per_second=1, items=5_000_000, returned=500, item_bytes=300),
        route=Route("scan", None, (), (Given("status"),)),
    ),
    Need(
        "active users of an organisation",
        "Member",
        ("org", "status"),
        (),
        access(
            "active users of an organisation",
            per_second=5,
            items=200,
            returned=3,
            item_bytes=200,
            filters=("status",),
        ),
        route=Route("query", None, (Given("pk"),), (Given("status"),)),
    ),
    Need(
        "readings of a day",
        "Reading",
        ("metric_name", "day"),
        ("timestamp",),
        access("readings of a day", per_second=0.1, items=10_000, item_bytes=100),
        route=Route("query", None, (Given("pk"),), queries=10),
    ),
]

DESIGN = design(SOCIAL, ORGANISATIONS, MARKET, READINGS, ORDERS, TOURNAMENTS, USERS, BOUGHT, needs=NEEDS)

DEFECTS = (
    Defect("missing-inverted-index", "Follow: follow somebody", 18),
    Defect("delimiter-collision", "Order.Key", 19),
    Defect("float-numbers", "Order.total", 13),
    Defect("float-numbers", "Reading.value", 13),
    Defect("naive-datetime", "Reading.timestamp", 10),
    Defect("reserved-words", "Tournaments", 15),
    Defect("incomplete-partition-key", "matches of a tournament"),
    Defect("sort-key-gap", "matches of a bracket"),
    Defect("range-before-equality", "matches of a bracket, in late rounds"),
    Defect("table-per-entity", "a user with the orders"),
    Defect("frequent-scan", "pending orders"),
    Defect("inefficient-filter", "active users of an organisation"),
)
