"""A function that compares with an image which the stream does not carry."""

from tavola.model.document import Consumer
from tests.design.builders import design, entity, table, text


def _stream(view, *consumers, **more):
    return design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}"), consumers=consumers, stream=view, **more
        )
    )


_OPEN = {"status": {"S": ["open"]}}
_NUMBERS = Consumer("numbers", needs_old=True)
_NEW = Consumer("new", filters=({"dynamodb": {"NewImage": _OPEN}},))
_OLD = Consumer("old", filters=({"dynamodb": {"OldImage": _OPEN}},))

FOUND = _stream("NEW_IMAGE", _NUMBERS)
PLACES = ["numbers"]
CLEAN = _stream("OLD_IMAGE", _NUMBERS)
ALSO = {
    "no stream": _stream(None, Consumer("mail")),
    "a filter by the new image": _stream("KEYS_ONLY", _NEW),
    "a filter by the old image": _stream("NEW_IMAGE", _OLD),
    "a replica": _stream("NEW_IMAGE", replicas=("eu-west-1",)),
    "a replica without a stream": _stream(None, replicas=("eu-west-1",)),
}
ALSO_CLEAN = {
    "both images": _stream("NEW_AND_OLD_IMAGES", _NUMBERS, _NEW, _OLD, replicas=("eu-west-1",)),
    "keys are enough": _stream("KEYS_ONLY", Consumer("mail")),
    "nobody reads": _stream(None),
}
