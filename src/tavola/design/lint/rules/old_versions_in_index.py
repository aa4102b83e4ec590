"""Old, immutable versions stay in an index by status.

Why: An immutable version keeps the status it was written with. If version 1 says *pending*, a query for
pending items returns it forever, and more with every version.

Example: Immutable `VERSION#{version}` items, each with `GSI2PK = STATUS#{status}`.

Instead: Index only the current version (`members` of a marker field, or a sparse key that the next version's
write removes), or keep the current status in a separate item next to the versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.heat import STATES
from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"

_VERSIONS = frozenset({"version", "revision", "rev", "generation"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the indexes by status that hold all versions of an immutable entity."""
    for table, entity, key in context.all_keys():
        versioned = entity.key is not None and any(
            _VERSIONS & set(split_words(name)) for name in entity.key.fields
        )
        if key.index is None or not entity.immutable or key.members or key.sparse or not versioned:
            continue
        states = [name for source in key.sources for name in source.fields if STATES & set(split_words(name))]
        if states:
            yield Defect(
                context.key_place(table, entity, key),
                f"Every version of {entity.name} stays in {key.index} with the {join_names(states)} it was written with",
                "Index only the current version (members= or a sparse key)",
            )
