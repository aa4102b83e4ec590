"""An ignore of what is not there."""

from tavola.model.document import Ignore
from tests.design.builders import design, entity, gsi, table, text

_BY_EMAIL = gsi("by_email", "GSI1PK")
_USER = entity("User", text("user_id"), pk="USER#{user_id}")
_IGNORES = [Ignore("unused-index", "Shop.by_email", "a job asks it")]

SELECT = ["unused-index", "unused-ignore"]
FOUND = design(table(_USER), ignores=_IGNORES)
PLACES = ["Shop.by_email"]
CLEAN = design(table(_USER, indexes=[_BY_EMAIL]), ignores=_IGNORES)
