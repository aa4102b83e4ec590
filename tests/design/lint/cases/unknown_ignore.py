"""An ignore of a rule that there is not."""

from tavola.model.document import Ignore
from tests.design.builders import design, entity, table, text

_SHOP = table(entity("User", text("user_id"), pk="USER#{user_id}"))

FOUND = design(_SHOP, ignores=[Ignore("unused-indices", "Shop", "a job asks it")])
PLACES = ["Shop"]
CLEAN = design(_SHOP, ignores=[Ignore("unused-index", "Shop", "a job asks it")])
