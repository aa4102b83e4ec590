"""A relation is read from both ends, and its items can be found from one.

Why: An item that ties two things is in the partition of one of them. From the other end it is found by an index whose key is turned round, if every
such item carries it: one that some writes forget loses relations, and the two ends disagree.

Example: A follow is `PK = USER#alice`, `SK = FOLLOWS#bob`; some follows carry `GSI1PK = USER#bob` and others do not.

Instead: Let every tie have the index key, or let the index turn the table's key round (`Gsi(pk="SK", sk="PK")`), which nobody can forget.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.findings import Finding, Severity
from tavola.design.lint.relations import is_reverse_lookup, linked_fields
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names, join_titles
from tavola.model.document import EntityDesign, SourceDesign, TableDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
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
            assert pair is not None, "a tie that is asked from one end has two"
            yield Finding(
                "one-way-relation",
                SEVERITY,
                context.need_place(need),
                f"{home[1].name} is keyed by {pair[0]} and then {pair[1]}, and asked for by {pair[1]}: no key begins with it",
                f"add an index with the key turned round: {pair[1]}, then {pair[0]}",
            )
    for table in context.design.tables:
        yield from _find_partial_keys(context, table)


def _find_partial_keys(context: LintContext, table: TableDesign) -> Iterator[Finding]:
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
            yield Finding(
                "one-way-relation",
                SEVERITY,
                context.entity_place(table, lacking),
                f"it is keyed as {having.name} is and lacks the key of {index}, so that {index} misses some of these relations",
                f"write the key of {index} on every one",
            )
    for entity in table.entities:
        puts = [write for write in entity.writes if write.kind == "put"]
        for key in entity.keys:
            names = {source.attribute for source in key.sources if source.template is not None}
            with_it = [write for write in puts if names and names <= set(write.rewrites)]
            for write in puts if with_it else ():
                if linked_fields(entity) is not None and write not in with_it:
                    yield Finding(
                        "one-way-relation",
                        SEVERITY,
                        context.write_place(table, entity, write),
                        f"it leaves out {join_names(sorted(names))}, which {join_titles([with_it[0].title])} writes: {key.index} misses these relations",
                        f"write {join_names(sorted(names))} here too",
                    )


def _outline(entity: EntityDesign) -> tuple[tuple[str, ...], ...]:
    def told(source: SourceDesign) -> tuple[str, ...]:
        if source.template is None:
            return ("*",)
        return tuple(segment if isinstance(segment, str) else "*" for segment in source.template.segments)

    return () if entity.key is None else tuple(map(told, entity.key.sources))
