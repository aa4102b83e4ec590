"""Needs as the solver reads them, each field resolved in the entities that have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tavola.design.errors import SolverError
from tavola.design.solver.assumed_rates import AssumedRates
from tavola.design.solver.conditions import NeedReading, read_need
from tavola.design.solver.names import class_name
from tavola.model.document import AccessPattern, Design, EntityDesign, Membership, Need, TableDesign, needs_of


@dataclass(frozen=True, slots=True)
class SolverQuestion:
    """One need: its entities, the fields it compares with =, its order, and the fields it returns."""

    name: str  # of the pattern or collection that answers it
    need: str  # the need's name in the design
    entities: tuple[str, ...]
    fixed: tuple[tuple[str, ...], ...]  # for each entity, its fields compared with =, in the same order
    order: tuple[str, ...] = ()  # sort order of the answer; a field with a range comes first
    members: tuple[Membership, ...] = ()  # constants that limit the items, such as status = "open"
    present: frozenset[str] = frozenset()  # other fields that every returned item has
    result_fields: frozenset[str] | None = None  # the returned fields; None returns whole items
    single: bool = False
    access: AccessPattern | None = None
    ranged: str | None = None  # the field of `order` with a range
    filtered: tuple[str, ...] = ()  # fields whose conditions no key can decide: the application filters

    @property
    def has_several_entities(self) -> bool:
        """Whether one query returns items of several entities."""
        return len(self.entities) > 1

    @property
    def consistent(self) -> bool:
        """Whether it must be strongly consistent."""
        return self.access is not None and self.access.consistent

    @property
    def title(self) -> str:
        """The title of the access pattern, or the name."""
        return self.name if self.access is None else self.access.title

    @property
    def identifies(self) -> bool:
        """Whether its fields identify one item."""
        return self.single and not self.has_several_entities and not self.members and bool(self.fixed[0])

    def equal_fields(self, entity: str) -> tuple[str, ...]:
        """Return the fields of an entity that it compares with =."""
        return self.fixed[self.entities.index(entity)]


@dataclass(frozen=True, slots=True)
class SolverInput:
    """The input of the solver: entities with the table each comes from, questions, and assumptions."""

    entities: Mapping[str, EntityDesign]
    homes: Mapping[str, TableDesign | None]  # None for an entity declared without a table
    questions: tuple[SolverQuestion, ...]
    notes: tuple[str, ...]
    assumed_rates: AssumedRates = field(default_factory=AssumedRates)

    def identities(self, entity: str) -> tuple[frozenset[str], ...]:
        """Return each set of fields that identifies one item of an entity."""
        fixed_fields = (
            frozenset(q.fixed[0]) for q in self.questions if q.entities == (entity,) and q.identifies
        )
        return tuple(dict.fromkeys(fixed_fields))


def read_input(design: Design) -> SolverInput:
    """Return the entities and questions of a design, with or without keys; refuse needs that no key can serve."""
    homes: dict[str, TableDesign | None] = {}
    entities: dict[str, EntityDesign] = {}
    for table in design.tables:
        for entity in table.entities:
            homes[entity.name] = replace(table, foreign=False)
            entities[entity.name] = _with_sortable_numbers(entity) if table.foreign else entity
    known = {view.name: view for view in design.views} | entities
    needs = needs_of(design)
    if not known:
        raise SolverError(
            "", "the design has no entities; declare entities, and access patterns with Need(…)"
        )
    if not needs:
        raise SolverError("", "the design has no access patterns; declare them with Need(…) or query classes")
    for need in needs:
        for name in need.entities:
            if name not in known:
                raise SolverError(
                    f"Need {need.name}", f"unknown entity {name!r}; choose one of {', '.join(sorted(known))}"
                )
            if name not in entities:
                entities[name], homes[name] = known[name], None
    notes: list[str] = []
    names = _Names(design, entities)
    readings = [
        (need, read_need(need, design, [entities[name] for name in need.entities], notes)) for need in needs
    ]
    questions = _mark_single_items([_question(need, reading, names) for need, reading in readings], notes)
    assumed_rates = AssumedRates.find_missing(entities, [q.access for q in questions])
    entities = {name: assumed_rates.add_to_entity(entity) for name, entity in entities.items()}
    questions = _merge_duplicates(
        [replace(q, access=assumed_rates.add_to_access(q.need, q.access)) for q in questions]
    )
    unrated = [q.need for q in questions if q.access is None or q.access.per_second is None]
    notes += assumed_rates.notes(entities, unrated)
    return SolverInput(entities, homes, tuple(questions), tuple(notes), assumed_rates)


def _with_sortable_numbers(entity: EntityDesign) -> EntityDesign:
    """Return an entity of a foreign table with numeric fields encoded as Tavola encodes them, in sort order."""
    fields = tuple(
        replace(field_design, key_kind="int" if field_design.type == "int" else "decimal")
        if field_design.tags == ("N",) and field_design.key_kind == "text"
        else field_design
        for field_design in entity.fields
    )
    return replace(entity, fields=fields)


class _Names:
    """Class names for the patterns and collections, unique in their scope."""

    def __init__(self, design: Design, entities: Mapping[str, EntityDesign]) -> None:
        outside = {*entities, *(view.name for view in design.views), *(t.label for t in design.tables)}
        self.together = set(outside)
        self.inside = {name: {"Key", *(f.name for f in entity.fields)} for name, entity in entities.items()}
        self.keyed: set[str] = set()

    def of(self, need: Need) -> str:
        """Return a class name for the pattern or collection that answers a need."""
        if len(need.entities) > 1:
            name = class_name(need.name, self.together)
            self.together.add(name)
            return name
        (owner,) = need.entities
        text = need.name.removeprefix(f"{owner}.")
        if need.single and text == "Key" and owner not in self.keyed:
            self.keyed.add(owner)
            return text
        name = class_name(text, self.inside[owner])
        self.inside[owner].add(name)
        return name


def _question(need: Need, reading: NeedReading, names: _Names) -> SolverQuestion:
    access = need.access
    if reading.filtered:
        access = access or AccessPattern(need.name)
        access = replace(access, filters=tuple(dict.fromkeys((*access.filters, *reading.filtered))))
    return SolverQuestion(
        names.of(need),
        need.name,
        need.entities,
        reading.fixed,
        reading.order,
        reading.members,
        reading.present,
        reading.result_fields,
        need.single,
        access,
        reading.ranged,
        reading.filtered,
    )


def _mark_single_items(questions: list[SolverQuestion], notes: list[str]) -> list[SolverQuestion]:
    """Return the questions, with those marked as single whose fields identify one item: they need no order."""
    identities = {(q.entities, frozenset(q.fixed[0])) for q in questions if q.identifies}
    marked = []
    for question in questions:
        is_single = (
            not question.has_several_entities
            and not question.members
            and not question.single
            and question.present <= {*question.order, *question.fixed[0]}
            and (question.entities, frozenset(question.fixed[0])) in identities
        )
        if not is_single:
            marked.append(question)
            continue
        filtered = question.filtered
        if question.ranged is not None:
            filtered = (*filtered, question.ranged)
            notes.append(
                f"Need {question.need}: its fields identify one item, which is fetched by key; {question.ranged} is checked after "
                "reading, so reads of items that do not match are charged too."
            )
        present = frozenset[str]()
        marked.append(
            replace(question, single=True, order=(), present=present, ranged=None, filtered=filtered)
        )
    return marked


def _merge_duplicates(questions: list[SolverQuestion]) -> list[SolverQuestion]:
    """Return the questions without those that identify the same item as another and have no access pattern."""
    merged: list[SolverQuestion] = []
    for question in questions:
        twin = next(
            (
                position
                for position, other in enumerate(merged)
                if other.identifies and question.identifies and other.entities == question.entities
                and set(other.fixed[0]) == set(question.fixed[0])
            ),
            None,
        )  # fmt: skip
        if twin is None:
            merged.append(question)
        elif merged[twin].access is None:
            merged[twin] = question
        elif question.access is not None:
            merged.append(question)
    return merged
