"""A many-to-many relation is read from both sides, but its items can be found from one side only.

Why: A relation item is stored in the partition of one side. To find it from the other side, an inverted index
swaps the key. If some writes omit the index key, the index misses these relations and the two sides disagree.

Example: A follow is `PK = USER#alice`, `SK = FOLLOWS#bob`. Some follows have `GSI1PK = USER#bob`, others do
not.

Instead: Write the index key on every relation item, or define the index on the table's own key attributes in
reverse (`Gsi(pk="SK", sk="PK")`), which every item has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.lint.item_keys import is_reverse_lookup, linked_fields, source_outline
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names, join_titles
from tavola.model.document import EntityDesign, TableDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the link entities that are read from an end for which all or some items lack a key."""
    for need in context.design.needs:
        paths = context.access_paths(need)
        if (
            need.route is None
            and is_reverse_lookup(context, need)
            and (not paths or paths[0].operation == "scan")
        ):
            home = context.entities_by_name[need.entities[0]]
            pair = linked_fields(home[1])
            assert pair is not None, "is_reverse_lookup found a link"
            yield Defect(
                context.need_place(need),
                f"{home[1].name} has the key ({pair[0]}, {pair[1]}) and is also read by {pair[1]}, but no key begins with it",
                f"Add an inverted index: partition key {pair[1]}, sort key {pair[0]}",
            )
    for table in context.design.tables:
        yield from _find_partial_keys(context, table)


def _find_partial_keys(context: LintContext, table: TableDesign) -> Iterator[Defect]:
    """Yield keys that only some items of one kind of link have: two entities with one key, or two puts of one entity."""
    if not table.foreign:
        return
    for one, two in combinations(table.entities, 2):
        if linked_fields(one) is None or linked_fields(two) is None or _outline(one) != _outline(two):
            continue
        mine, its = ({key.index for key in entity.keys} for entity in (one, two))
        for index in sorted(str(name) for name in mine ^ its):
            lacking = two if index in mine else one
            having = one if lacking is two else two
            yield Defect(
                context.entity_place(table, lacking),
                f"Has the same key format as {having.name} but not the key of {index}, so {index} misses these relations",
                f"Write the key of {index} on every relation item",
            )
    for entity in table.entities:
        puts = [write for write in entity.writes if write.kind == "put"]
        for key in entity.keys:
            names = {source.attribute for source in key.sources if source.template is not None}
            with_it = [write for write in puts if names and names <= set(write.rewrites)]
            for write in puts if with_it else ():
                if linked_fields(entity) is not None and write not in with_it:
                    yield Defect(
                        context.write_place(table, entity, write),
                        f"Omits {join_names(sorted(names))}, which {join_titles([with_it[0].title])} writes, so {key.index} misses these relations",
                        f"Write {join_names(sorted(names))} here as well",
                    )


def _outline(entity: EntityDesign) -> tuple[tuple[str, ...], ...]:
    return () if entity.key is None else tuple(map(source_outline, entity.key.sources))
