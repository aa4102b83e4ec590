"""Attributes called status and name."""

from tests.design.builders import design, entity, table, text


def _users(*fields, foreign=True):
    return design(
        table(entity("User", text("user_id"), *fields, pk="USER#{user_id}"), tag=None, foreign=foreign)
    )


FOUND = _users(text("name"), text("Status"))
PLACES = ["Shop"]
CLEAN = _users(text("full_name"))
ALSO_CLEAN = {"Tavola gives every name a placeholder": _users(text("name"), foreign=False)}
