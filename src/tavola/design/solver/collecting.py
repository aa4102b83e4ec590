"""Collecting: entities that one query fetches together, and how their sort keys lie so that a query reads no more.

Entities of collections that overlap share a partition. A collection of some of them alone is a stretch of it: its
members' sort keys begin with a word of their own, where no two collections cut across each other.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from tavola.design.solver.questions import Question
from tavola.design.solver.wording import word_of


@dataclass(frozen=True, slots=True)
class Collecting:
    """Who shares a partition with whom, and what the sort keys of each begin with."""

    groups: tuple[tuple[str, ...], ...]
    paths: dict[str, tuple[str, ...]]  # of each entity, the words before its fields
    prefixes: dict[str, tuple[str, ...]]  # of each question, the words that all its members begin with

    def group(self, entity: str) -> int | None:
        """Return the number of an entity's group, None if it has its partition for itself."""
        return next((at for at, group in enumerate(self.groups) if entity in group), None)

    def literal(self, entity: str, delimiter: str) -> str:
        """Return what the sort keys of an entity begin with; empty where it needs no word."""
        return delimiter.join(self.paths.get(entity, ()))

    def prefix(self, question: Question, delimiter: str) -> str:
        """Return what the sort keys of a question's members begin with, and no others in the partition."""
        return delimiter.join(self.prefixes.get(question.name, ()))


def collecting(told: Iterable[tuple[str, Question]], constant: Container[str] = ()) -> Collecting:
    """Return how the members of some questions lie together; `constant` are those whose sort key is a word alone."""
    questions = list({question.name: question for _, question in told}.values())
    groups: list[tuple[str, ...]] = []
    for question in questions:
        joined = [group for group in groups if set(group) & set(question.entities)]
        names = dict.fromkeys((*question.entities, *(name for group in joined for name in group)))
        groups = [group for group in groups if group not in joined] + [tuple(names)]
    paths: dict[str, tuple[str, ...]] = {}
    prefixes: dict[str, tuple[str, ...]] = {}
    for group in groups:
        inside = [q for q in questions if set(q.entities) <= set(group)]
        parts = sorted((q for q in inside if len(q.entities) < len(group)), key=lambda q: -len(q.entities))
        nested = [q for q in parts if all(_apart_or_within(q, other) for other in parts)]
        heads: dict[str, str] = {}
        for question in nested:
            first = word_of(question.entities[0])
            heads[question.name] = first if first not in heads.values() else word_of(question.name)
        for name in group:
            path = [heads[question.name] for question in nested if name in question.entities]
            own = word_of(name)
            paths[name] = tuple(path) if name in constant and path and path[-1] == own else (*path, own)
        for question in nested:
            prefix = tuple(heads[q.name] for q in nested if set(question.entities) <= set(q.entities))
            text = "#".join(prefix)
            if not any(
                "#".join(paths[name]).startswith(text) for name in group if name not in question.entities
            ):
                prefixes[question.name] = prefix
    return Collecting(tuple(groups), paths, prefixes)


def _apart_or_within(one: Question, other: Question) -> bool:
    left, right = set(one.entities), set(other.entities)
    return left <= right or right <= left or not left & right
