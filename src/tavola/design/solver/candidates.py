"""Candidate keys for an entity's questions, in the table and in indexes.

A key serves a question if the question fixes its partition, the other fixed fields come first in its sort key, and the requested order
comes next. The table key consists of fields that identify one item; an index key may consist of any fields, and one index key may serve
several questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations

from tavola.design.access_paths import are_always_present, match_key
from tavola.design.errors import SolverError
from tavola.design.solver.conditions import fits_template
from tavola.design.solver.proposals import IndexKey, KeyProposal
from tavola.design.solver.questions import SolverQuestion
from tavola.model.document import EntityDesign, Membership

_IDENTITY_MAX = 6  # identities with more fields are not tried in every order
_GROUPED_MAX = 7  # more questions are grouped greedily


def serves(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Return whether one query on a key answers a question of an entity, completely and in order."""
    equal = set(question.equal_fields(entity.name))
    if key.members:
        if key.members != question.members:
            return False
    else:
        equal |= {member.field for member in question.members}
    match = match_key(
        key.partition, key.sorts, equals=equal.__contains__, ranges=lambda name: name == question.ranged
    )
    if match.missing or not equal <= {*key.partition, *match.equal}:
        return False
    order = tuple(name for name in question.order if name not in equal)
    if match.rest[: len(order)] != order:
        return False
    # The key holds exactly the items that have these fields: no others may be in the answer, and none may be missing.
    return are_always_present(entity, question.present - equal, key.fields) and are_always_present(
        entity, key.fields, question.present | equal
    )


def base_keys(entity: EntityDesign, questions: Sequence[SolverQuestion]) -> tuple[KeyProposal, ...]:
    """Return the table keys worth trying for an entity: each serves something that no other serves as well."""
    candidates: dict[tuple[frozenset[str], tuple[str, ...], frozenset[str]], KeyProposal] = {}
    own_questions = [question for question in questions if entity.name in question.entities]
    for identity in _identities(entity, own_questions):
        for partition in _partitions(identity, own_questions, entity.name):
            rest = [name for name in identity if name not in partition]
            orders: Iterator[tuple[str, ...]] = (
                permutations(rest)
                if len(rest) <= _IDENTITY_MAX
                else iter(_orders(rest, own_questions, entity, partition))
            )
            for order in orders:
                key = KeyProposal(partition, order)
                served = frozenset(
                    q.name
                    for q in own_questions
                    if serves(key, q, entity) or _identifies_item(key, q, entity)
                )
                if served:
                    candidates.setdefault((served, partition, frozenset(identity)), key)
    return tuple(_prune_dominated(candidates, own_questions, entity.name))


def _prune_dominated(
    candidates: dict[tuple[frozenset[str], tuple[str, ...], frozenset[str]], KeyProposal],
    questions: Sequence[SolverQuestion],
    entity: str,
) -> Iterator[KeyProposal]:
    """Yield the keys that no other key of the same or a finer partition dominates: one that serves all their questions.

    A dominated key stays if a local index may need its partition for a strongly consistent question, and if it consists of one
    partition and at most one sort attribute, which is simpler than a template.
    """
    simple = {
        (served, identity): key
        for (served, _, identity), key in reversed(candidates.items())
        if len(key.partition) == 1 and len(key.sorts) <= 1
    }
    consistent = [set(question.equal_fields(entity)) for question in questions if question.consistent]
    for (served, partition, identity), key in candidates.items():
        dominated = any(
            (other > served and other_partition == partition)
            or (other >= served and set(other_partition) > set(partition) and other_identity == identity)
            for other, other_partition, other_identity in candidates
        )  # fmt: skip
        local = bool(partition) and any(set(partition) <= equal for equal in consistent)
        if not dominated or local or simple.get((served, identity)) is key:
            yield key


def _identities(entity: EntityDesign, questions: Sequence[SolverQuestion]) -> list[tuple[str, ...]]:
    """Return the identities of an entity that can be a key: fields of single-item questions that are never null or updated."""
    changed = {
        name for write in entity.writes for name in (*write.changes, *write.adds) if write.kind == "update"
    }
    identities: dict[frozenset[str], tuple[str, ...]] = {}
    for question in questions:
        if not question.identifies:
            continue
        names = question.fixed[0]
        usable = all(
            fits_template(entity.field(name)) and not entity.field(name).nullable and name not in changed
            for name in names
        )
        if names and usable:
            identities.setdefault(frozenset(names), names)
    if not identities:
        raise SolverError(
            entity.name,
            "no fields identify one item permanently; declare a Need(…, single=True) on fields that are always present and never "
            "change",
        )
    return list(identities.values())


def _partitions(
    identity: tuple[str, ...], questions: Sequence[SolverQuestion], entity: str
) -> tuple[tuple[str, ...], ...]:
    """Return the partitions worth trying, the finest first; the empty one if a question reads all items."""
    if len(identity) <= _IDENTITY_MAX:
        partitions = [
            names for count in range(len(identity), 0, -1) for names in combinations(identity, count)
        ]
    else:
        partitions = [identity]
        for question in questions:
            names = tuple(name for name in identity if name in question.equal_fields(entity))
            if names and names not in partitions:
                partitions.append(names)
    if any(not question.equal_fields(entity) for question in questions):
        partitions.append(())
    return tuple(partitions)


def _orders(
    rest: list[str], questions: Sequence[SolverQuestion], entity: EntityDesign, partition: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return the orders of many fields worth trying: as declared, and as each question needs them."""
    orders = [tuple(rest)]
    for question in questions:
        first = [name for name in question.equal_fields(entity.name) if name in rest]
        first += [name for name in question.order if name in rest and name not in first]
        order = (*first, *(name for name in rest if name not in first))
        if order not in orders:
            orders.append(order)
    return orders


def _identifies_item(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Return whether a question identifies one item by all fields of a key."""
    return question.identifies and set(question.equal_fields(entity.name)) == set(key.fields)


def table_serves(key: KeyProposal, question: SolverQuestion, entity: EntityDesign) -> bool:
    """Return whether the table itself answers a question, by a get or a query."""
    if question.has_several_entities:
        always_present = all(not entity.field(name).nullable for name in question.present)
        return (
            set(question.equal_fields(entity.name)) == set(key.partition)
            and not question.members
            and always_present
        )
    return _identifies_item(key, question, entity) or (not question.members and serves(key, question, entity))


def groupings(
    entity: EntityDesign, questions: Sequence[SolverQuestion], base: KeyProposal
) -> Iterator[tuple[IndexKey, ...]]:
    """Yield the ways to share index keys among questions, those with the fewest keys first."""
    index_keys: dict[frozenset[str], IndexKey | None] = {}

    def index_key(group: tuple[SolverQuestion, ...]) -> IndexKey | None:
        names = frozenset(question.name for question in group)
        if names not in index_keys:
            index_keys[names] = find_shared_index_key(entity, group, base)
        return index_keys[names]

    if len(questions) > _GROUPED_MAX:
        yield _group_greedily(questions, index_key)
        return
    groupings_ = []
    for partition in _set_partitions(tuple(questions)):
        keys = [index_key(group) for group in partition]
        if all(shared_key is not None for shared_key in keys):
            groupings_.append(tuple(shared_key for shared_key in keys if shared_key is not None))
    yield from sorted(groupings_, key=len)


def _group_greedily(
    questions: Sequence[SolverQuestion], index_key: Callable[[tuple[SolverQuestion, ...]], IndexKey | None]
) -> tuple[IndexKey, ...]:
    groups: list[tuple[SolverQuestion, ...]] = []
    for question in questions:
        for position, group in enumerate(groups):
            if index_key((*group, question)) is not None:
                groups[position] = (*group, question)
                break
        else:
            groups.append((question,))
    return tuple(key for group in groups if (key := index_key(group)) is not None)


def _set_partitions(
    questions: tuple[SolverQuestion, ...],
) -> Iterator[tuple[tuple[SolverQuestion, ...], ...]]:
    if not questions:
        yield ()
        return
    first, rest = questions[0], questions[1:]
    for partition in _set_partitions(rest):
        yield ((first,), *partition)
        for position, group in enumerate(partition):
            yield (*partition[:position], (first, *group), *partition[position + 1 :])


def find_shared_index_key(
    entity: EntityDesign, group: tuple[SolverQuestion, ...], base: KeyProposal
) -> IndexKey | None:
    """Return the index key that serves a group of questions, or None."""
    local = any(question.consistent for question in group)
    members = group[0].members if all(question.members == group[0].members for question in group) else ()
    for key_members in (members, ()) if members else ((),):
        key = _shared_key(entity, group, key_members, base.partition if local else None)
        if key is not None:
            return IndexKey(entity.name, key, group, local)
    return None


def _shared_key(
    entity: EntityDesign,
    group: tuple[SolverQuestion, ...],
    members: tuple[Membership, ...],
    partition: tuple[str, ...] | None,
) -> KeyProposal | None:
    equal = []
    for question in group:
        names = list(question.equal_fields(entity.name))
        if not members:
            names += [member.field for member in question.members if member.field not in names]
            if any(len(member.values) > 1 or None in member.values for member in question.members):
                return None  # without members, each value is another partition or range, so no one order
        equal.append(names)
    if partition is None:
        partition = tuple(name for name in equal[0] if all(name in names for names in equal))
        for question, names in zip(group, equal, strict=True):
            if question.has_several_entities and set(names) != set(partition):
                return None  # a collection is a whole partition
    elif not all(set(partition) <= set(names) for names in equal):
        return None
    sets = [set(names) - set(partition) for names in equal]
    orders = [
        tuple(name for name in question.order if name not in names)
        for question, names in zip(group, equal, strict=True)
    ]
    order = _merge_orders(sets, orders, [field.name for field in entity.fields])
    if order is None:
        return None
    presence = _presence_fields(entity, group, partition, order)
    key = KeyProposal(partition, (*order, *presence), members)
    return key if all(serves(key, question, entity) for question in group) else None


def _presence_fields(
    entity: EntityDesign,
    group: tuple[SolverQuestion, ...],
    partition: tuple[str, ...],
    order: tuple[str, ...],
) -> tuple[str, ...]:
    """Return nullable fields that every question of a group requires: in the key, they leave out items without them."""
    common = frozenset.intersection(*(question.present for question in group))
    return tuple(
        name
        for name in sorted(common)
        if entity.field(name).nullable and name not in partition and name not in order
    )


def _merge_orders(
    sets: list[set[str]], runs: list[tuple[str, ...]], field_order: Sequence[str]
) -> tuple[str, ...] | None:
    """Return one order that serves every question: it begins with the question's set, in any order, and continues with its run.

    None if no order does. Where several do, fields come in the order of their declaration.
    """
    length = max(len(names) + len(run) for names, run in zip(sets, runs, strict=True))
    ranks = {name: position for position, name in enumerate(dict.fromkeys(field_order))}

    def extend(chosen: tuple[str, ...]) -> tuple[str, ...] | None:
        at = len(chosen)
        if at == length:
            return chosen
        allowed: set[str] | None = None
        for names, run in zip(sets, runs, strict=True):
            if at < len(names):
                candidates = names - set(chosen)
            elif at < len(names) + len(run):
                candidates = {run[at - len(names)]}
            else:
                continue
            allowed = candidates if allowed is None else allowed & candidates
        for name in sorted((allowed or set()) - set(chosen), key=ranks.__getitem__):
            merged = extend((*chosen, name))
            if merged is not None:
                return merged
        return None

    return extend(())
