"""No key serves an access pattern.

Why: DynamoDB finds items by the complete partition key of the table or an index, with equality. An access
pattern that provides no such key has to read the whole table.

Example: `Need("tickets of a product", Ticket, "product")`, while no index has `product` as its partition key.

Instead: Add the index that the finding suggests, or overload an existing index, then declare the query on it.
For entities without keys, `tavola solve` proposes keys and indexes for all access patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.item_keys import is_reverse_lookup
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import describe_conditions, describe_key_for, join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs without a route that would take a scan."""
    for need in context.design.needs:
        bare = [name for name in need.entities if name in context.unplaced_entities]
        if bare and need.route is None:
            conditions = f" by {describe_conditions(need.where)}" if need.where else ""
            yield Defect(
                context.need_place(need),
                f"No key serves {join_names(need.entities)}{conditions}: {join_names(bare)} {'has' if len(bare) == 1 else 'have'} no keys",
                "Run `tavola solve` to get keys and indexes, or declare a table, a key and the query",
            )
            continue
        homes = {owner[0].name for name in need.entities if (owner := context.entities_by_name.get(name))}
        if (
            need.route is not None
            or len(homes) != 1
            or any(name not in context.entities_by_name for name in need.entities)
        ):
            continue  # covered by other rules
        paths = context.access_paths(need)
        if paths and paths[0].operation != "scan":
            continue
        if any(path.obstacle for path in paths) or is_reverse_lookup(context, need):
            continue  # a key nearly serves it; the rule for that defect reports it
        reads = join_names(need.entities)
        query = (
            f"{reads} by {describe_conditions(need.where)}"
            if need.where
            else f"a query for all {reads} items"
        )
        keys = join_names(sorted({name for path in paths for name in path.missing}), "or")
        lacks = f"; existing keys require {keys}" if keys else ""
        yield Defect(
            context.need_place(need),
            f"No key serves {query}{lacks}",
            f"Add {describe_key_for(need)}, and declare the query on it",
        )
