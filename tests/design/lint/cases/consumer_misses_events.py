"""A function that counts by changes alone."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, table, text


def _read_by(ttl=None, **more):
    return design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"),
            consumers=[Consumer("numbers", **more)],
            stream="NEW_AND_OLD_IMAGES",
            ttl=ttl,
        )
    )


_OPEN = {"status": {"S": ["open"]}}

_KEEPS = {"writes": ("Number",)}

FOUND = _read_by(events=("MODIFY",), **_KEEPS)
PLACES = ["numbers"]
CLEAN = _read_by(**_KEEPS)
ALSO = {
    "changes and ends": _read_by(events=("MODIFY", "REMOVE"), **_KEEPS),
    "what expires stays counted": _read_by("ttl", events=("INSERT", "MODIFY"), needs_old=True, **_KEEPS),
    "a filter without one of its kinds": _read_by(
        events=("INSERT", "REMOVE"), filters=({"eventName": ["INSERT", "MODIFY"]},)
    ),
    "a filter by an image that an end has not": _read_by(
        events=("INSERT", "MODIFY", "REMOVE"), filters=({"dynamodb": {"NewImage": _OPEN}},)
    ),
    "a filter by what a beginning has not": _read_by(
        events=("INSERT",), filters=({"dynamodb": {"OldImage": _OPEN}},)
    ),
    "numbers are text": _read_by(
        filters=({"dynamodb": {"NewImage": {"total": {"N": [{"numeric": [">", 10]}]}}}},)
    ),
}
ALSO_CLEAN = {
    "mails on a change of status": _read_by(
        events=("MODIFY",), needs_old=True, filters=({"eventName": ["MODIFY"]},)
    ),
    "an audit of differences": _read_by(events=("INSERT", "MODIFY"), needs_old=True),
    "mails for new ones": _read_by(events=("INSERT",), filters=({"eventName": ["INSERT"]},)),
    "an index of what is there": _read_by("ttl", events=("INSERT", "MODIFY")),
    "each kind by its own image": _read_by(
        events=("INSERT", "MODIFY", "REMOVE"),
        filters=(
            {"dynamodb": {"NewImage": _OPEN}},
            {"eventName": ["REMOVE"], "dynamodb": {"OldImage": _OPEN}},
        ),
    ),
    "all but": _read_by(events=("INSERT",), filters=({"eventName": [{"anything-but": ["REMOVE"]}]},)),
    "an image that is not there": _read_by(
        events=("REMOVE",), filters=({"dynamodb": {"NewImage": {"status": {"S": [{"exists": False}]}}}},)
    ),
    "an attribute called numeric": _read_by(
        filters=({"dynamodb": {"NewImage": {"numeric": {"S": ["yes"]}}}},)
    ),
}
