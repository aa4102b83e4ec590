"""Data in production, under AWS's own key."""

from tests.design.builders import design, entity, table, text

PRODUCTION = True


def _tickets(*, tenant=True, **more):
    return design(
        table(
            entity(
                "Ticket",
                text("customer_id", tenant=tenant),
                text("ticket_id"),
                pk="C#{customer_id}",
                sk="{ticket_id}",
            ),
            **more,
        )
    )


FOUND = _tickets()
PLACES = ["Shop"]
CLEAN = _tickets(encryption="alias/tickets")
ALSO = {"a file does not say whose data": _tickets(tenant=False, foreign=True)}
ALSO_CLEAN = {
    "nobody's data but ours": _tickets(tenant=False),
    "the deployment knows": _tickets(unknown=("encryption",)),
}
