"""Candidate keys for an entity's questions, in the table and in indexes.

A key serves a question if the question fixes its partition, the other fixed fields come first in its sort key, and the requested order
comes next. The table key consists of fields that identify one item; an index key may consist of any fields, and one index key may serve
several questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from tavola.design.access_paths import are_always_present, match_key
from tavola.design.solver.conditions import fits_template
from tavola.design.solver.errors import SolveRefused
from tavola.design.solver.questions import SolverQuestion
from tavola.model.document import EntityDesign, Membership

_IDENTITY_MAX = 6  # fields of a key whose every order is tried
_APART_MAX = 7  # questions whose every grouping is tried; of more, they are joined as they come


@dataclass(frozen=True, slots=True)
class KeyProposal:
    """A key in an entity's fields: its partition, its sort order, and which items have it."""

    partition: tuple[str, ...]  # none: all items share one
    sorts: tuple[str, ...] = ()
    members: tuple[Membership, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the key."""
        return self.partition + self.sorts

    @property
    def text(self) -> str:
        """A text that identifies the key; the values of members cannot be hashed."""
        return f"{self.partition}{self.sorts}{self.members}"


@dataclass(frozen=True, slots=True)
class IndexKey:
    """An index key of one entity, with the questions that it serves."""

    entity: str
    key: KeyProposal
    questions: tuple[SolverQuestion, ...]
    local: bool = False

    @property
    def together(self) -> tuple[SolverQuestion, ...]:
        """The questions that other entities share."""
        return tuple(question for question in self.questions if question.several)


@dataclass(frozen=True, slots=True)
class EntityProposal:
    """The keys of an entity: in its table, and one index key for each of `blocks`."""

    entity: str
    base: KeyProposal
    served: tuple[SolverQuestion, ...]  # by the table itself
    blocks: tuple[IndexKey, ...]


def serves(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Tell whether one query on a key answers a question of an entity, whole and in its order."""
    given = set(question.equal(entity.name))
    if key.members:
        if key.members != question.members:
            return False
    else:
        given |= {member.field for member in question.members}
    match = match_key(
        key.partition, key.sorts, equals=given.__contains__, ranges=lambda name: name == question.ranged
    )
    if match.missing or not given <= {*key.partition, *match.equal}:
        return False
    order = tuple(name for name in question.order if name not in given)
    if match.rest[: len(order)] != order:
        return False
    # An item without a field that must be present would be in the answer, too.
    return are_always_present(entity, question.present - given, key.fields) and are_always_present(
        entity, key.fields, question.present | given
    )


def base_keys(entity: EntityDesign, questions: Sequence[SolverQuestion]) -> tuple[KeyProposal, ...]:
    """Return the table keys worth trying for an entity: each serves something that no other serves as well."""
    found: dict[tuple[frozenset[str], tuple[str, ...], frozenset[str]], KeyProposal] = {}
    own = [question for question in questions if entity.name in question.entities]
    for identity in _identities(entity, own):
        for partition in _partitions(identity, own, entity.name):
            rest = [name for name in identity if name not in partition]
            orders: Iterator[tuple[str, ...]] = (
                permutations(rest)
                if len(rest) <= _IDENTITY_MAX
                else iter(_orders(rest, own, entity, partition))
            )
            for order in orders:
                key = KeyProposal(partition, order)
                served = frozenset(q.name for q in own if serves(key, q, entity) or _gets(key, q, entity))
                if served:
                    found.setdefault((served, partition, frozenset(identity)), key)
    return tuple(_best_of(found, own, entity.name))


def _best_of(
    found: dict[tuple[frozenset[str], tuple[str, ...], frozenset[str]], KeyProposal],
    questions: Sequence[SolverQuestion],
    entity: str,
) -> Iterator[KeyProposal]:
    """Give the keys that serve what no other of the same partition, or of a finer one, serves too.

    A coarser partition stays where a local index may need it for a question that must see every write, and where it is one
    attribute with one that sorts: that is plainer than a text of both.
    """
    plain = {
        (served, identity): key
        for (served, _, identity), key in reversed(found.items())
        if len(key.partition) == 1 and len(key.sorts) <= 1
    }
    consistent = [set(question.equal(entity)) for question in questions if question.consistent]
    for (served, partition, identity), key in found.items():
        beaten = any(
            (other > served and also == partition)
            or (other >= served and set(also) > set(partition) and alike == identity)
            for other, also, alike in found
        )  # fmt: skip
        local = bool(partition) and any(set(partition) <= given for given in consistent)
        if not beaten or local or plain.get((served, identity)) is key:
            yield key


def _identities(entity: EntityDesign, questions: Sequence[SolverQuestion]) -> list[tuple[str, ...]]:
    """Return what tells one item from all others: the fields of each question for one."""
    changed = {
        name for write in entity.writes for name in (*write.changes, *write.adds) if write.kind == "update"
    }
    told: dict[frozenset[str], tuple[str, ...]] = {}
    for question in questions:
        if not question.identifies:
            continue
        names = question.fixed[0]
        fit = all(
            fits_template(entity.field(name)) and not entity.field(name).nullable and name not in changed
            for name in names
        )
        if names and fit:
            told.setdefault(frozenset(names), names)
    if not told:
        raise SolveRefused(
            entity.name,
            "nothing tells one of its items from all others for good; declare a Need(…, single=True) of fields that "
            "are never absent and never change",
        )
    return list(told.values())


def _partitions(
    identity: tuple[str, ...], questions: Sequence[SolverQuestion], entity: str
) -> tuple[tuple[str, ...], ...]:
    """Return the partitions worth trying, the finest first; none at all where something is asked of all items."""
    if len(identity) <= _IDENTITY_MAX:
        told = [names for count in range(len(identity), 0, -1) for names in combinations(identity, count)]
    else:
        told = [identity]
        for question in questions:
            names = tuple(name for name in identity if name in question.equal(entity))
            if names and names not in told:
                told.append(names)
    if any(not question.equal(entity) for question in questions):
        told.append(())
    return tuple(told)


def _orders(
    rest: list[str], questions: Sequence[SolverQuestion], entity: EntityDesign, partition: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return orders of many fields: as declared, and as each question runs."""
    told = [tuple(rest)]
    for question in questions:
        first = [name for name in question.equal(entity.name) if name in rest]
        first += [name for name in question.order if name in rest and name not in first]
        order = (*first, *(name for name in rest if name not in first))
        if order not in told:
            told.append(order)
    return told


def _gets(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Tell whether a question names one item by the whole of a key."""
    return question.identifies and set(question.equal(entity.name)) == set(key.fields)


def table_serves(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Return whether the table itself answers a question, by a get or a query."""
    if question.several:
        there = all(not entity.field(name).nullable for name in question.present)
        return set(question.equal(entity.name)) == set(key.partition) and not question.members and there
    return _gets(key, question, entity) or (not question.members and serves(key, question, entity))


def groupings(
    entity: EntityDesign, questions: Sequence[SolverQuestion], base: KeyProposal
) -> Iterator[tuple[IndexKey, ...]]:
    """Yield the ways in which questions can share index keys, those with the fewest keys first."""
    usable: dict[frozenset[str], IndexKey | None] = {}

    def block(group: tuple[SolverQuestion, ...]) -> IndexKey | None:
        names = frozenset(question.name for question in group)
        if names not in usable:
            usable[names] = shared_block(entity, group, base)
        return usable[names]

    if len(questions) > _APART_MAX:
        yield _joined(questions, block)
        return
    ways = []
    for partition in _set_partitions(tuple(questions)):
        blocks = [block(group) for group in partition]
        if all(found is not None for found in blocks):
            ways.append(tuple(found for found in blocks if found is not None))
    yield from sorted(ways, key=len)


def _joined(
    questions: Sequence[SolverQuestion], block: Callable[[tuple[SolverQuestion, ...]], IndexKey | None]
) -> tuple[IndexKey, ...]:
    groups: list[tuple[SolverQuestion, ...]] = []
    for question in questions:
        for at, group in enumerate(groups):
            if block((*group, question)) is not None:
                groups[at] = (*group, question)
                break
        else:
            groups.append((question,))
    return tuple(found for group in groups if (found := block(group)) is not None)


def _set_partitions(told: tuple[SolverQuestion, ...]) -> Iterator[tuple[tuple[SolverQuestion, ...], ...]]:
    if not told:
        yield ()
        return
    first, rest = told[0], told[1:]
    for partition in _set_partitions(rest):
        yield ((first,), *partition)
        for at, group in enumerate(partition):
            yield (*partition[:at], (first, *group), *partition[at + 1 :])


def shared_block(
    entity: EntityDesign, group: tuple[SolverQuestion, ...], base: KeyProposal
) -> IndexKey | None:
    """Return the index key that serves a group of questions, or None if there is none."""
    local = any(question.consistent for question in group)
    members = group[0].members if all(question.members == group[0].members for question in group) else ()
    for kept in (members, ()) if members else ((),):
        key = _shared_key(entity, group, kept, base.partition if local else None)
        if key is not None:
            return IndexKey(entity.name, key, group, local)
    return None


def _shared_key(
    entity: EntityDesign,
    group: tuple[SolverQuestion, ...],
    members: tuple[Membership, ...],
    partition: tuple[str, ...] | None,
) -> KeyProposal | None:
    given = []
    for question in group:
        names = list(question.equal(entity.name))
        if not members:
            names += [member.field for member in question.members if member.field not in names]
            if any(len(member.values) > 1 or None in member.values for member in question.members):
                return None  # only an index that holds just these gives them in one order
        given.append(names)
    if partition is None:
        partition = tuple(name for name in given[0] if all(name in names for names in given))
        for question, names in zip(group, given, strict=True):
            if question.several and set(names) != set(partition):
                return None  # a collection is one whole partition
    elif not all(set(partition) <= set(names) for names in given):
        return None
    sets = [set(names) - set(partition) for names in given]
    runs = [
        tuple(name for name in question.order if name not in names)
        for question, names in zip(group, given, strict=True)
    ]
    order = _woven(sets, runs, [found.name for found in entity.fields])
    if order is None:
        return None
    absent = _deciding(entity, group, partition, order)
    key = KeyProposal(partition, (*order, *absent), members)
    return key if all(serves(key, question, entity) for question in group) else None


def _deciding(
    entity: EntityDesign,
    group: tuple[SolverQuestion, ...],
    partition: tuple[str, ...],
    order: tuple[str, ...],
) -> tuple[str, ...]:
    """Return fields that every question wants to be there, and that the key would not tell otherwise."""
    common = frozenset.intersection(*(question.present for question in group))
    return tuple(
        name
        for name in sorted(common)
        if entity.field(name).nullable and name not in partition and name not in order
    )


def _woven(
    sets: list[set[str]], runs: list[tuple[str, ...]], field_order: Sequence[str]
) -> tuple[str, ...] | None:
    """Return one order that begins with each set, in any order, and goes on with its run; None if there is none.

    Where several would do, fields come as they are declared.
    """
    length = max(len(names) + len(run) for names, run in zip(sets, runs, strict=True))
    ranks = {name: at for at, name in enumerate(dict.fromkeys(field_order))}

    def extend(told: tuple[str, ...]) -> tuple[str, ...] | None:
        at = len(told)
        if at == length:
            return told
        allowed: set[str] | None = None
        for names, run in zip(sets, runs, strict=True):
            if at < len(names):
                here = names - set(told)
            elif at < len(names) + len(run):
                here = {run[at - len(names)]}
            else:
                continue
            allowed = here if allowed is None else allowed & here
        for name in sorted((allowed or set()) - set(told), key=ranks.__getitem__):
            found = extend((*told, name))
            if found is not None:
                return found
        return None

    return extend(())
