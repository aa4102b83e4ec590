"""Decide which entities share a table, and name it.

Entities of one table stay together, and entities of two tables stay apart unless one query needs both: a table's stream, TTL and backups
are shared by its entities. Entities without a table are grouped if they are queried together, written together, or refer to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tavola.design.solver.names import find_free_name, snake, table_label
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.model.document import TableDesign

_REASONS_MAX = 3
_COMMON_NAMES = frozenset(  # identifying fields that do not say what they identify
    {"id", "uuid", "key", "name", "code", "number", "slug", "title", "type", "kind", "at", "date"}
)


@dataclass(frozen=True, slots=True)
class TableGroup:
    """Entities that will share a table."""

    label: str
    home: TableDesign | None
    entities: tuple[str, ...]
    reason: str  # why they are together, or alone


def group_entities(subject: SolverInput) -> tuple[TableGroup, ...]:
    """Return which entities share a table, in the order of their first entities."""
    groups: list[list[str]] = [[name] for name in subject.entities]
    reasons: dict[str, list[str]] = {}

    def join(names: Sequence[str], reason: str) -> None:
        joined = [group for group in groups if set(group) & set(names)]
        if len(joined) < 2:
            return
        merged = [name for name in subject.entities if any(name in group for group in joined)]
        groups[:] = [group for group in groups if group not in joined] + [merged]
        reasons[merged[0]] = [*(why for group in joined for why in reasons.get(group[0], ())), reason]

    by_table: dict[str, list[str]] = {}
    for name, table in subject.homes.items():
        if table is not None:
            by_table.setdefault(table.name, []).append(name)
    for names in by_table.values():
        join(names, "they share a table now, with its stream, TTL and backups")
    for question in subject.questions:
        if question.has_several_entities:
            join(question.entities, f"{question.title!r} reads them together")
    loose = [name for name, table in subject.homes.items() if table is None]
    transactions: dict[str, list[str]] = {}
    for name in loose:
        for write in subject.entities[name].writes:
            if write.together:
                transactions.setdefault(write.together, []).append(name)
    for title, names in transactions.items():
        join(names, f"{title!r} writes them in one transaction")
    for one in loose:
        for other in loose:
            reference_fields = _reference(subject, one, other) if one != other else ()
            if reference_fields:
                join((one, other), f"{other} refers to {one} by {', '.join(reference_fields)}")
    order = {name: position for position, name in enumerate(subject.entities)}
    taken = set(subject.entities)
    table_groups = []
    for group in sorted(groups, key=lambda names: order[names[0]]):
        home = next((table for name in group if (table := subject.homes[name]) is not None), None)
        # Questions become classes inside an entity, and those refer to the table by its label.
        classes = {question.name for question in subject.questions}
        label = (
            table_label(group[0], {*taken, *classes}) if home is None else find_free_name(home.label, taken)
        )
        taken.add(label)
        separate = (
            "no access pattern or transaction combines it with other entities"
            if len(subject.entities) > 1
            else "the design has one entity"
        )
        why = list(reasons.get(group[0], [separate]))
        reason = "; ".join(
            why[:_REASONS_MAX]
            + ([f"and {len(why) - _REASONS_MAX} more reasons"] if len(why) > _REASONS_MAX else [])
        )
        table_groups.append(TableGroup(label, home, tuple(group), reason))
    return tuple(table_groups)


def _reference(subject: SolverInput, one: str, other: str) -> tuple[str, ...]:
    """Return the fields of `other` that refer to `one`; empty if it has none.

    Identifying fields that both entities have for themselves are no reference, nor are common names such as `id` or `name`;
    `invoice_id` is one.
    """
    identity, own = (_identity(subject.questions, name) for name in (one, other))
    fields = {field.name for field in subject.entities[other].fields}
    if len(identity) == 1:
        prefixed = f"{snake(one)}_{next(iter(identity))}"
        if prefixed in fields:
            return (prefixed,)
    prefixed_by_entity = all(name.startswith(f"{snake(one)}_") for name in identity)
    if (
        not identity
        or not identity <= fields
        or identity <= _COMMON_NAMES
        or (identity == own and not prefixed_by_entity)
    ):
        return ()
    return tuple(sorted(identity))


def _identity(questions: Sequence[SolverQuestion], entity: str) -> frozenset[str]:
    identities: list[tuple[str, ...]] = [
        question.fixed[0] for question in questions if question.identifies and question.entities == (entity,)
    ]
    shortest: tuple[str, ...] = min(identities, key=len, default=())
    return frozenset(shortest)
