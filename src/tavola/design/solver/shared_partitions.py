"""Arrange entities that one query fetches together, so that the query reads nothing else.

Entities of overlapping collections share a partition. A collection of only some of them is a range of that partition: the sort keys of
its members begin with a common word, as long as no two collections intersect partially.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tavola.design.solver.names import key_word
from tavola.design.solver.questions import SolverQuestion


@dataclass(frozen=True, slots=True)
class SharedPartitions:
    """Which entities share a partition, and what their sort keys begin with."""

    groups: tuple[tuple[str, ...], ...]
    paths: dict[str, tuple[str, ...]]  # for each entity, the words before its fields
    # For each question, the words that the sort keys of all its members begin with
    prefixes: dict[str, tuple[str, ...]]

    def group(self, entity: str) -> int | None:
        """Return the number of an entity's group; None if it has its own partition."""
        return next((position for position, group in enumerate(self.groups) if entity in group), None)

    def literal(self, entity: str, delimiter: str) -> str:
        """Return the literal that an entity's sort keys begin with; empty if it needs none."""
        return delimiter.join(self.paths.get(entity, ()))

    def prefix(self, question: SolverQuestion, delimiter: str) -> str:
        """Return the prefix that only the sort keys of a question's members have in the partition."""
        return delimiter.join(self.prefixes.get(question.name, ()))


def share_partitions(
    questions_by_entity: Iterable[tuple[str, SolverQuestion]], constant: Container[str] = ()
) -> SharedPartitions:
    """Return how the members of some questions share partitions. The sort key of entities in `constant` is a word alone."""
    questions = list({question.name: question for _, question in questions_by_entity}.values())
    groups: list[tuple[str, ...]] = []
    for question in questions:
        overlapping = [group for group in groups if set(group) & set(question.entities)]
        names = dict.fromkeys((*question.entities, *(name for group in overlapping for name in group)))
        groups = [group for group in groups if group not in overlapping] + [tuple(names)]
    paths: dict[str, tuple[str, ...]] = {}
    prefixes: dict[str, tuple[str, ...]] = {}
    for group in groups:
        questions_inside = [q for q in questions if set(q.entities) <= set(group)]
        partial = sorted(
            (q for q in questions_inside if len(q.entities) < len(group)), key=lambda q: -len(q.entities)
        )
        nested = [q for q in partial if all(_apart_or_within(q, other) for other in partial)]
        heads: dict[str, str] = {}
        for question in nested:
            first = key_word(question.entities[0])
            heads[question.name] = first if first not in heads.values() else key_word(question.name)
        for name in group:
            path = [heads[question.name] for question in nested if name in question.entities]
            entity_word = key_word(name)
            paths[name] = (
                tuple(path) if name in constant and path and path[-1] == entity_word else (*path, entity_word)
            )
        for question in nested:
            prefix = tuple(heads[q.name] for q in nested if set(question.entities) <= set(q.entities))
            text = "#".join(prefix)
            if not any(
                "#".join(paths[name]).startswith(text) for name in group if name not in question.entities
            ):
                prefixes[question.name] = prefix
    return SharedPartitions(tuple(groups), paths, prefixes)


def _apart_or_within(one: SolverQuestion, other: SolverQuestion) -> bool:
    left, right = set(one.entities), set(other.entities)
    return left <= right or right <= left or not left & right
