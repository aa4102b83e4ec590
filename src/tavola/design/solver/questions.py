"""Needs as the solver reads them, with every field resolved in the entities it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tavola.design.solver.conditions import NeedReading, read_need
from tavola.design.solver.errors import SolveRefused
from tavola.design.solver.weights import AssumedRates
from tavola.design.solver.wording import class_name
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    Membership,
    Need,
    TableDesign,
    needs_of,
)


@dataclass(frozen=True, slots=True)
class SolverQuestion:
    """One need: its entities, the fields it gives, its order, and the fields it returns."""

    name: str  # of the pattern or collection that will serve it
    need: str  # as the design calls it
    entities: tuple[str, ...]
    fixed: tuple[tuple[str, ...], ...]  # of each entity the fields given with equality, in one order
    order: tuple[str, ...] = ()  # the fields that the answer runs along, the one of a range first
    members: tuple[Membership, ...] = ()  # such items alone are wanted
    present: frozenset[str] = (
        frozenset()
    )  # fields that every item asked for has, besides those that are fixed
    wanted: frozenset[str] | None = None  # the fields that come back; None: whole items
    single: bool = False
    access: AccessPattern | None = None
    ranged: str | None = None  # the field of `order` of which a stretch is asked for
    filtered: tuple[
        str, ...
    ] = ()  # fields whose conditions no key decides: left to the application, and said

    @property
    def several(self) -> bool:
        """Whether it is of several entities at once."""
        return len(self.entities) > 1

    @property
    def consistent(self) -> bool:
        """Whether it must see every write before it."""
        return self.access is not None and self.access.consistent

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name if self.access is None else self.access.title

    @property
    def identifies(self) -> bool:
        """Whether its fields tell one item from all others, whatever else these are."""
        return self.single and not self.several and not self.members and bool(self.fixed[0])

    def equal(self, entity: str) -> tuple[str, ...]:
        """Return the fields of an entity that it fixes."""
        return self.fixed[self.entities.index(entity)]


@dataclass(frozen=True, slots=True)
class SolverInput:
    """The input of the solver: entities with the table each comes from, questions, and assumptions."""

    entities: Mapping[str, EntityDesign]
    homes: Mapping[str, TableDesign | None]  # None: it was declared without a table
    questions: tuple[SolverQuestion, ...]
    notes: tuple[str, ...]
    weights: AssumedRates = field(default_factory=AssumedRates)

    def identities(self, entity: str) -> tuple[frozenset[str], ...]:
        """Return the sets of fields that tell one item of an entity from all others."""
        told = [frozenset(q.fixed[0]) for q in self.questions if q.entities == (entity,) and q.identifies]
        return tuple(dict.fromkeys(told))


def read_input(design: Design) -> SolverInput:
    """Return the entities and questions of a design, with or without keys; refuse what no key could serve."""
    homes: dict[str, TableDesign | None] = {}
    entities: dict[str, EntityDesign] = {}
    for table in design.tables:
        for entity in table.entities:
            homes[entity.name] = replace(table, foreign=False)
            entities[entity.name] = _own(entity) if table.foreign else entity
    known = {view.name: view for view in design.views} | entities
    needs = needs_of(design)
    if not known:
        raise SolveRefused(
            "", "the design has no entity; declare what is stored, and what is asked with Need(…)"
        )
    if not needs:
        raise SolveRefused(
            "", "nothing is asked of the design; say what the application reads with Need(…) or query classes"
        )
    for need in needs:
        for name in need.entities:
            if name not in known:
                raise SolveRefused(
                    f"Need {need.name}", f"there is no entity {name!r}; there are {', '.join(sorted(known))}"
                )
            if name not in entities:
                entities[name], homes[name] = known[name], None
    notes: list[str] = []
    names = _Names(design, entities)
    readings = [
        (need, read_need(need, design, [entities[name] for name in need.entities], notes)) for need in needs
    ]
    questions = _of_one([_question(need, reading, names) for need, reading in readings], notes)
    weights = AssumedRates.of(entities, [q.access for q in questions])
    entities = {name: weights.entity(entity) for name, entity in entities.items()}
    questions = _merged([replace(q, access=weights.access(q.need, q.access)) for q in questions])
    silent = [q.need for q in questions if q.access is None or q.access.per_second is None]
    notes += weights.notes(entities, silent)
    return SolverInput(entities, homes, tuple(questions), tuple(notes), weights)


def _own(entity: EntityDesign) -> EntityDesign:
    """Return an entity whose keys other code has written, as Tavola writes them: numbers in their order."""
    fields = tuple(
        replace(found, key_kind="int" if found.type == "int" else "decimal")
        if found.tags == ("N",) and found.key_kind == "text"
        else found
        for found in entity.fields
    )
    return replace(entity, fields=fields)


class _Names:
    """The names of the classes that will ask, each once where it must be."""

    def __init__(self, design: Design, entities: Mapping[str, EntityDesign]) -> None:
        outside = {*entities, *(view.name for view in design.views), *(t.label for t in design.tables)}
        self.together = set(outside)
        self.inside = {name: {"Key", *(f.name for f in entity.fields)} for name, entity in entities.items()}
        self.keyed: set[str] = set()

    def of(self, need: Need) -> str:
        """Return a name for the class that asks a need."""
        if len(need.entities) > 1:
            found = class_name(need.name, self.together)
            self.together.add(found)
            return found
        (owner,) = need.entities
        text = need.name.removeprefix(f"{owner}.")
        if need.single and text == "Key" and owner not in self.keyed:
            self.keyed.add(owner)
            return text
        found = class_name(text, self.inside[owner])
        self.inside[owner].add(found)
        return found


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
        reading.wanted,
        need.single,
        access,
        reading.ranged,
        reading.filtered,
    )


def _of_one(questions: list[SolverQuestion], notes: list[str]) -> list[SolverQuestion]:
    """Return questions in which those are single that give all that tells one item from others: it needs no order."""
    identities = {(q.entities, frozenset(q.fixed[0])) for q in questions if q.identifies}
    told = []
    for question in questions:
        one = (
            not question.several
            and not question.members
            and not question.single
            and question.present <= {*question.order, *question.fixed[0]}
            and (question.entities, frozenset(question.fixed[0])) in identities
        )
        if not one:
            told.append(question)
            continue
        filtered = question.filtered
        if question.ranged is not None:
            filtered = (*filtered, question.ranged)
            notes.append(
                f"Need {question.need}: what it gives tells one item, which is fetched by its key; {question.ranged} is "
                "looked at after reading, and a read that finds it otherwise is paid for too."
            )
        present = frozenset[str]()
        told.append(replace(question, single=True, order=(), present=present, ranged=None, filtered=filtered))
    return told


def _merged(questions: list[SolverQuestion]) -> list[SolverQuestion]:
    """Return questions without those that name the same item as another one, and are never asked."""
    kept: list[SolverQuestion] = []
    for question in questions:
        twin = next(
            (
                at
                for at, each in enumerate(kept)
                if each.identifies and question.identifies and each.entities == question.entities
                and set(each.fixed[0]) == set(question.fixed[0])
            ),
            None,
        )  # fmt: skip
        if twin is None:
            kept.append(question)
        elif kept[twin].access is None:
            kept[twin] = question
        elif question.access is not None:
            kept.append(question)
    return kept
