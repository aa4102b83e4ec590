"""A function that counts into the table it reads."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, number, table, text


def _read_by(*, filters=(), writes=("Number",), tag="_entity"):
    return design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"),
            entity("Number", text("number_id"), number("value"), pk="N#{number_id}"),
            consumers=[Consumer("numbers", filters=filters, writes=writes)],
            stream="NEW_AND_OLD_IMAGES",
            tag=tag,
        )
    )


def _images(*tags):
    return {"NewImage": {"_entity": {"S": list(tags)}}}


FOUND = _read_by()
PLACES = ["numbers"]
CLEAN = _read_by(filters=({"dynamodb": _images("ticket")},))
ALSO = {
    "its own tag among others": _read_by(filters=({"dynamodb": _images("ticket", "number")},)),
    "one filter too wide": _read_by(filters=({"dynamodb": _images("ticket")}, {"eventName": ["MODIFY"]})),
}
ALSO_CLEAN = {
    "it writes elsewhere": _read_by(writes=()),
    "each kind by its own image": _read_by(
        filters=(
            {"dynamodb": _images("ticket")},
            {"eventName": ["REMOVE"], "dynamodb": {"OldImage": {"_entity": {"S": ["ticket"]}}}},
        )
    ),
    "by what cannot be judged": _read_by(
        filters=({"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "T#"}]}}}},)
    ),
    "by another attribute": _read_by(
        filters=({"dynamodb": {"NewImage": {"ticket_id": {"S": [{"exists": True}]}}}},)
    ),
}
