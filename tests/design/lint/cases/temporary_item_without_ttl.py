"""Requests that are remembered for ever."""

from tests.design.builders import delete, design, entity, moment, number, put, table, text


def _table(name, pk, *fields, **more):
    return design(
        table(
            entity(name, *fields, pk=pk, writes=[put(per_second=5, item_bytes=600), *more.get("writes", ())]),
            ttl="ttl",
        )
    )


FOUND = _table("RequestKey", "IDEMPOTENCY#{request_id}", text("request_id"), text("answer"))
PLACES = ["RequestKey"]
CLEAN = _table("RequestKey", "IDEMPOTENCY#{request_id}", text("request_id"), number("ttl"))
ALSO = {
    "a login": _table("Session", "SESSION#{session_id}", text("session_id"), text("user_id")),
    "an answer": _table("CachedAnswer", "A#{question}", text("question"), text("answer")),
}
ALSO_CLEAN = {
    "a lesson": _table(
        "TrainingSession",
        "TRAINING#{session_id}",
        text("session_id"),
        text("customer_id"),
        moment("starts_at"),
    ),
    "a log of logins": _table(
        "LoginEvent", "USER#{user_id}#LOGIN#{at}", text("user_id"), moment("at"), text("ip")
    ),
    "a log of sessions": _table("Session", "SESSION#{user_id}#{at}", text("user_id"), moment("at")),
    "a session of a conference": _table(
        "Session", "SESSION#{session_id}", text("session_id"), text("room"), moment("starts_at")
    ),
    "somebody deletes them": _table(
        "Session", "SESSION#{session_id}", text("session_id"), text("user_id"), writes=[delete("log out")]
    ),
    "nothing of the kind": _table("Order", "ORDER#{order_id}", text("order_id")),
}
