"""Old versions that never change stay in an index by status.

Why: An immutable version says what was true when it was written. Version 1 says *pending* for ever, so the pending ones are asked for and
finished ones come back, more with every version.

Example: `VERSION#{version}` items, immutable, with `GSI2PK = STATUS#{status}` on each.

Instead: Let one item answer for the thing: the current version alone carries the index key (`members` of a marker, or a sparse key
that the next version's write takes away), or a small item beside the versions holds the state.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import STATES
from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names
from tavola.model.document import EntityDesign

SEVERITY: Severity = "error"

_VERSIONS = frozenset({"version", "revision", "rev", "generation"})


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the indexes by status that hold all versions of an immutable entity."""
    for table, entity, key in context.all_keys():
        if (
            key.index is None
            or not entity.immutable
            or key.members
            or key.sparse
            or not _is_versioned(entity)
        ):
            continue
        states = [name for source in key.sources for name in source.fields if STATES & set(split_words(name))]
        if states:
            yield Finding(
                "version-in-status-index",
                SEVERITY,
                context.key_place(table, entity, key),
                f"each version of {entity.name} stays in {key.index} under the {join_names(states)} it was written with",
                "let the current version alone carry this key, by members= or a sparse key",
            )


def _is_versioned(entity: EntityDesign) -> bool:
    return entity.key is not None and any(_VERSIONS & set(split_words(name)) for name in entity.key.fields)
