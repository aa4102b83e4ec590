"""An ignore that says no reason."""

from tavola.model.document import Ignore
from tests.design.builders import design, entity, table, text

_SHOP = table(entity("User", text("user_id"), pk="USER#{user_id}"))

FOUND = design(_SHOP, ignores=[Ignore("unused-index", "User", " ")])
PLACES = ["User"]
CLEAN = design(_SHOP, ignores=[Ignore("unused-index", "User", "a job asks it")])
