"""Plans that the writers are tested with; the renderings of the small ones are kept in golden/.

`python -m tools.infrastructure` writes golden/ again after an intended change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tavola import AccessPattern, Attr, Consumer, Entity, Gsi, Lsi, PrimaryKey, Query, Scaling, Table, attr
from tavola.apps.gallery import iot_series, tenancy, tournaments
from tavola.apps.service_desk import model as service_desk
from tavola.apps.support_desk import model as support_desk
from tavola.apps.terraform_review import model as terraform_review
from tavola.iac import (
    InfrastructurePlan,
    PlanOptions,
    cdk_files,
    plan_infrastructure,
    render_template,
    render_terraform,
)
from tavola.model.document import Design, design_of

GOLDEN = Path(__file__).parent / "golden"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:desk-failures"


class Orders(
    Table,
    name="shop.orders_2026",
    ttl="ends_at",
    stream="NEW_AND_OLD_IMAGES",
    recovery=True,
    recovery_days=7,
    encryption=KEY,
    table_class="STANDARD_INFREQUENT_ACCESS",
    deletion_protection=True,
    read_units=20,
    write_units=10,
    scaling=Scaling(read_max=400, write_max=200, read_min=20, write_min=10, target=65),
    tags={"Team": "shop", "Cost centre": "4711 «north»", "Note": 'He said "${no}" to 100 %{of} them'},
    consumers=(
        Consumer("mail", "shop.mail:handler", failures=TOPIC, max_age_s=3600, parallelization=4),
        Consumer("audit", failures="s3", starting="LATEST"),
        Consumer("bell", failures="sns"),
    ),
):
    """Orders, with every setting that a table has but replicas."""

    by_day = Gsi(pk=("shop", "day"), sk=("amount", "order_id"), projection=("customer",), name="by-day")
    by_customer = Gsi(pk="G1PK", sk="G1SK", projection="KEYS_ONLY", name="by_customer")
    by_amount = Lsi(sk="amount", name="by.amount")


class Order(Entity, table=Orders):
    """An order."""

    order_id: Attr[str]
    shop: Attr[str]
    day: Attr[str]
    amount: Attr[int]
    customer: Attr[str] = attr(tenant=True)

    class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER", access=AccessPattern("an order")):
        order_id: str

    class ByCustomer(
        Query["Order"], on=Orders.by_customer, pk="CUSTOMER#{customer}", sk="{order_id}", hydrate=True
    ):
        customer: str


class Stock(
    Table,
    name="shop-stock",
    encryption="alias/shop",
    recovery=True,
    read_units=5,
    write_units=5,
    replicas=("eu-central-1", "us-east-1"),
    tags={"Team": "shop"},
):
    """What is there, in three regions."""

    by_place = Gsi(pk="G1PK", sk="G1SK", name="by-place")


class Article(Entity, table=Stock):
    """An article."""

    article_id: Attr[str]
    place: Attr[str]

    class Key(PrimaryKey["Article"], pk="ARTICLE#{article_id}", sk="ARTICLE"):
        article_id: str

    class ByPlace(Query["Article"], on=Stock.by_place, pk="PLACE#{place}", sk="{article_id}"):
        place: str


EVERYTHING = design_of(Orders, Stock)
WHOLE = PlanOptions(endpoint=True, key="new")  # all that a plan can have

SAMPLES: Mapping[str, tuple[Design, PlanOptions]] = MappingProxyType(
    {
        "support_desk": (design_of(support_desk), WHOLE),
        "service_desk": (design_of(service_desk), PlanOptions()),
        "terraform_review": (design_of(terraform_review), WHOLE),
        "everything": (EVERYTHING, WHOLE),
        "tournaments": (design_of(tournaments), PlanOptions(alarms=False, policies=False)),
        "iot_series": (design_of(iot_series), PlanOptions(alarms=False)),
        "tenancy": (design_of(tenancy), PlanOptions(alarms=False)),
    }
)
REVIEWED = ("service_desk", "tournaments", "iot_series", "tenancy")  # small enough to read: kept in golden/


def plan_sample(name: str) -> InfrastructurePlan:
    """Return the plan of a sample."""
    design, options = SAMPLES[name]
    return plan_infrastructure(design, options)


def renderings(name: str) -> dict[str, str]:
    """Return the files that the writers make of a sample, by the names under which golden/ keeps them."""
    plan = plan_sample(name)
    return {
        f"{name}.yaml": render_template(plan),
        f"{name}.tf": render_terraform(plan),
        f"{name}_stack.txt": cdk_files(plan)["app.py"],  # not .py: it is not code of this repository
    }


def template(name: str) -> dict[str, dict[str, dict[str, object]]]:
    """Return a sample's template as plain data."""
    told: dict[str, dict[str, dict[str, object]]] = json.loads(render_template(plan_sample(name), "json"))
    return told
