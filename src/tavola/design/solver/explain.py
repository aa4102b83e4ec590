"""Explain each key and index in one sentence, in terms of the design pattern it follows.

The pattern names are those of the guide "choosing the right pattern". What follows none of them gets a plain name: simple key, partition
and sort key, shared table, secondary or local index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tavola.design.solver.proposals import EntityProposal, IndexKey, IndexProposal, KeyProposal, TableProposal
from tavola.design.solver.questions import SolverInput, SolverQuestion
from tavola.design.solver.tables import TableGroup
from tavola.design.text import join_names
from tavola.model.document import EntityDesign, IndexDesign, KeyDesign, Membership, TableDesign

Pattern = Literal[
    "Simple Key",
    "Partition and Sort Key",
    "Shared Table",
    "Secondary Index",
    "Local Index",
    "Adjacency List",
    "Composite Sort Key",
    "GSI Overloading",
    "Write Sharding",
    "Sparse Indexes",
    "Single-Table Design",
    "Composite Key + Sharding",
    "GSI with Status Prefix",
]
SCENARIOS: Mapping[Pattern, str] = {
    "Simple Key": "items by what tells them apart",
    "Partition and Sort Key": "items of one thing, in an order",
    "Shared Table": "entities side by side",
    "Secondary Index": "another way of asking",
    "Local Index": "another order, read consistently",
    "Adjacency List": "graph relationships",
    "Composite Sort Key": "multi-level hierarchies",
    "GSI Overloading": "multiple access patterns",
    "Write Sharding": "high write throughput",
    "Sparse Indexes": "subset needs secondary access",
    "Single-Table Design": "related entities queried together",
    "Composite Key + Sharding": "time-series data",
    "GSI with Status Prefix": "status-based filtering",
}
_TIMES = ("date", "datetime")


@dataclass(frozen=True, slots=True)
class Alternative:
    """An alternative to a choice: the monthly cost of the whole design with it, and why it was not chosen."""

    place: str
    what: str
    amount: Decimal
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision: its place in the design, the pattern it follows, the reason, and alternatives."""

    place: str
    pattern: Pattern
    sentence: str
    amount: Decimal | None  # monthly cost of this place; None if another choice of the same place has it
    alternatives: tuple[Alternative, ...] = ()


def explain_table(
    group: TableGroup, plan: TableProposal, table: TableDesign, subject: SolverInput, amount: Decimal
) -> Choice:
    """Explain the keys of a table."""
    shared = list(
        {q.name: q for each in plan.entities for q in each.served if q.has_several_entities}.values()
    )
    if shared:
        widest = max(shared, key=lambda question: len(question.entities))
        partition = _key_text(table, table.entity(widest.entities[0]).key)
        what = (
            f"{join_names(widest.entities)} share the partition {partition}, so that {_quote_titles(shared)} "
            f"{'is one query' if len(shared) == 1 else 'are one query each'}"
        )
        return Choice(table.label, "Single-Table Design", f"{what}; {_describe_served(plan)}.", amount)
    if len(plan.entities) > 1:
        what = f"its {len(plan.entities)} entities are in one table because {group.reason}"
        return Choice(table.label, "Shared Table", f"{what}; {_describe_served(plan)}.", amount)
    only = plan.entities[0]
    if plan.base_shards.get(only.entity, 1) > 1:
        pattern, what = _explain_spread(plan, only, subject)
        return Choice(table.label, pattern, f"{what}; {_describe_served(plan)}.", amount)
    hierarchical = _has_levels(only.base, only.served)
    pattern = (
        "Composite Sort Key"
        if hierarchical
        else "Partition and Sort Key"
        if only.base.sorts
        else "Simple Key"
    )
    kind = "its own attributes are the key" if plan.native else "a template makes the key"
    deep = f", asked level by level: {', '.join(only.base.sorts)}" if hierarchical else ""
    what = f"{only.entity} is alone here, since {group.reason}; {kind}{deep}"
    return Choice(table.label, pattern, f"{what}; {_describe_served(plan)}.", amount)


def explain_shards(plan: TableProposal, table: TableDesign, subject: SolverInput) -> Iterator[Choice]:
    """Yield a choice for each sharded entity of a table with several."""
    for each in plan.entities:
        if len(plan.entities) > 1 and plan.base_shards.get(each.entity, 1) > 1:
            pattern, what = _explain_spread(plan, each, subject)
            yield Choice(table.label, pattern, f"{what}.", None)


def _explain_spread(plan: TableProposal, each: EntityProposal, subject: SolverInput) -> tuple[Pattern, str]:
    entity = subject.entities[each.entity]
    spread = plan.base_shards[each.entity]
    partition = " and ".join(each.base.partition) or f"all {each.entity}"
    reason = f"one {partition} of {each.entity} would get more than a partition takes, so its key is spread over {spread} shards"
    return (
        "Composite Key + Sharding" if _is_time_series(entity, each.base.sorts) else "Write Sharding"
    ), reason


def _has_levels(key: KeyProposal, questions: Sequence[SolverQuestion]) -> bool:
    """Return whether a sort key is a hierarchy: two fields or more, and some question gives the first ones."""
    if len(key.sorts) < 2:
        return False
    conditions = (
        {*question.fixed[0], *(member.field for member in question.members)}
        for question in questions
        if not question.single and not question.has_several_entities
    )
    return any(key.sorts[0] in fields for fields in conditions)


def _describe_served(plan: TableProposal) -> str:
    """Return a clause about what the table itself answers."""
    gets = [q for each in plan.entities for q in each.served if q.single]
    queries = [
        q for each in plan.entities for q in each.served if not q.single and not q.has_several_entities
    ]
    clauses = []
    if gets:
        clauses.append(
            f"{len(gets)} question{'s' if len(gets) > 1 else ''} for one item {'are gets' if len(gets) > 1 else 'is a get'}"
        )
    if queries:
        clauses.append(f"{_quote_titles(queries)} run{'s' if len(queries) == 1 else ''} along the sort key")
    return " and ".join(clauses) or "nothing is asked of it alone"


def explain_index(
    plan: TableProposal,
    index: IndexProposal,
    index_design: IndexDesign,
    table: TableDesign,
    subject: SolverInput,
    amount: Decimal,
) -> Choice:
    """Explain an index."""
    place = f"{table.label}.{index_design.label}"
    pattern, because = _explain_pattern(plan, index, subject)
    keys = " and ".join(_index_key_text(table, index_key, index_design) for index_key in index.keys)
    questions = [question for index_key in index.keys for question in index_key.questions]
    sentence = f"{keys} serve{'s' if len(index.keys) == 1 else ''} {_quote_titles(questions)}: {because}; {_describe_contents(index, index_design)}."
    return Choice(place, pattern, sentence, amount)


def _explain_pattern(plan: TableProposal, index: IndexProposal, subject: SolverInput) -> tuple[Pattern, str]:
    for index_key in index.keys:
        entity = subject.entities[index_key.entity]
        shards = index.shards.get(index_key.entity, 1)
        if shards > 1:
            timed = _is_time_series(entity, index_key.key.sorts)
            reason = f"{_hot(index_key, entity)} would get more than a partition takes, so it is spread over {shards} shards"
            return ("Composite Key + Sharding" if timed else "Write Sharding"), reason
    if len(index.keys) > 1:
        reason = f"{join_names([b.entity for b in index.keys])} share it, told apart by their keys"
        two_sided = [b.entity for b in index.keys if _is_adjacency(plan, b, subject)]
        if two_sided:
            reason += f"; {join_names(two_sided)} {'is' if len(two_sided) == 1 else 'are'} asked from both sides, as an adjacency list is"
        return "GSI Overloading", reason
    index_key = index.keys[0]
    entity = subject.entities[index_key.entity]
    if index.local:
        return "Local Index", "it must see every write before it, which of indexes only a local one does"
    if _is_adjacency(plan, index_key, subject):
        base = plan.entity(index_key.entity).base
        other = [name for name in base.fields if name not in index_key.key.partition]
        return "Adjacency List", (
            f"{' and '.join(other)} and {' and '.join(index_key.key.partition)} tell one {index_key.entity} together and are each "
            "asked by themselves, so the index looks from the other side"
        )
    if index_key.key.members:
        reason = " and ".join(describe_members(index_key.key.members))
        return "Sparse Indexes", f"only items are in it where {reason}, and the others cost it nothing"
    nullable = [name for name in index_key.key.fields if entity.field(name).nullable]
    if nullable:
        reason = f"only items that have {' and '.join(nullable)} are in it, and the others cost it nothing"
        return "Sparse Indexes", reason
    condition_fields = {name for question in index_key.questions for name in _condition_fields(question)}
    chosen = next(
        (name for name in index_key.key.fields if name in condition_fields and entity.field(name).choices),
        None,
    )
    if chosen is not None:
        count = len(entity.field(chosen).choices or ())
        return "GSI with Status Prefix", f"{chosen} is one of {count} values and is asked for with equality"
    if _has_levels(index_key.key, index_key.questions):
        return "Composite Sort Key", f"it is asked level by level: {', '.join(index_key.key.sorts)}"
    order = f", in the order of {', '.join(index_key.key.sorts)}" if index_key.key.sorts else ""
    partition = " and ".join(index_key.key.partition)
    access = (
        f"{index_key.entity} is asked by {partition}{order}"
        if partition
        else f"all {index_key.entity} are asked for{order}"
    )
    return "Secondary Index", f"{access}, which the table's own key does not give"


def _condition_fields(question: SolverQuestion) -> tuple[str, ...]:
    return (*question.fixed[0], *(member.field for member in question.members))


def _is_adjacency(plan: TableProposal, index_key: IndexKey, subject: SolverInput) -> bool:
    """Return whether an entity relates two things and is queried by each: the index has one part of its identity, a question the other."""
    base = plan.entity(index_key.entity).base
    entity = subject.entities[index_key.entity]
    half = set(index_key.key.partition)
    other = set(base.fields) - half
    if not half or not half < set(base.fields) or half == set(base.partition) or index_key.shared_questions:
        return False
    if any(entity.field(n).choices or entity.field(n).key_kind in _TIMES for n in base.fields):
        return False  # a status or a time is not a related thing
    return any(
        set(question.equal_fields(index_key.entity)) == other
        for question in subject.questions
        if index_key.entity in question.entities and not question.single
    )


def describe_members(members: Sequence[Membership]) -> list[str]:
    """Return which values an item must have to be in an index, a clause per field."""
    clauses = []
    for member in members:
        values = ["absent" if each is None else str(next(iter(each.values()))) for each in member.values]
        clauses.append(f"{member.field} is {' or '.join(values)}")
    return clauses


def _hot(index_key: IndexKey, entity: EntityDesign) -> str:
    if not index_key.key.partition:
        return f"one partition of all {entity.name}"
    return f"one {' and '.join(index_key.key.partition)}"


def _index_key_text(table: TableDesign, index_key: IndexKey, index: IndexDesign) -> str:
    key = table.entity(index_key.entity).key_on(index.name)
    return _key_text(table, key, whole=True)


def _key_text(table: TableDesign, key: KeyDesign | None, *, whole: bool = False) -> str:
    """Return a key's templates and attributes, without shard suffixes."""
    assert key is not None
    sources = key.sources if whole else key.hash
    parts = [
        source.template.source if source.template is not None else source.attribute for source in sources
    ]
    return " / ".join(text.replace(f"{table.settings.delimiter}{{__shard__:04}}", "") for text in parts)


def _describe_contents(index: IndexProposal, index_design: IndexDesign) -> str:
    whole = any(
        question.result_fields is None for index_key in index.keys for question in index_key.questions
    )
    count = len(index.hydrated)
    fetched = f", and whole items are fetched for {count} question{'s' if count > 1 else ''}" if count else ""
    if index_design.projection == "ALL":
        return "it holds whole items" + (", so that nothing is fetched" if whole else "")
    if index_design.projection == "KEYS_ONLY":
        return f"it holds keys alone{fetched}"
    attributes = len(index_design.projection)
    return f"it holds the {attributes} attribute{'s' if attributes > 1 else ''} that {'are' if attributes > 1 else 'is'} read{fetched}"


def describe_projection(index: IndexProposal, chosen: IndexProposal) -> str:
    """Name another projection or key style as an alternative."""
    text = _projection_text(index)
    if index.native == chosen.native:
        return text
    return f"{text}, keyed by {'its own attributes' if index.native else 'templates'}"


def _projection_text(index: IndexProposal) -> str:
    if index.projection == "ALL":
        return "whole items projected"
    if index.projection == "KEYS_ONLY":
        return "keys alone projected, whole items fetched" if index.hydrated else "keys alone projected"
    text = f"{len(index.projection)} attributes projected"
    return f"{text}, whole items fetched" if index.hydrated else text


def explain_projection(index: IndexProposal, chosen: IndexProposal, extra: Decimal) -> str:
    """Return why an alternative projection was not chosen."""
    more = "costs the same" if extra < Decimal("0.01") else f"costs {extra:,.2f} more"
    if chosen.native and not index.native and extra < Decimal("0.01"):
        return f"{more}: attributes of the key would be written beside those that are there"
    if index.hydrated and not chosen.hydrated:
        return f"{more}: every item of an answer is read a second time, from the table"
    if index.projection == "ALL":
        return f"{more}: every write of an item is written again whole"
    if index.projection == "KEYS_ONLY":
        return f"{more}: what keys do not hold would be lacking"
    return f"{more}: more is written or read than is asked for"


def describe_other_keys(plan: TableProposal, chosen: TableProposal) -> str:
    """Describe the keys of a proposal that differ from the chosen ones."""
    served, chosen_served = (
        {q.name: q for e in each.entities for q in e.served if q.has_several_entities}
        for each in (plan, chosen)
    )
    moved_questions = [chosen_served[name] for name in chosen_served if name not in served]
    if moved_questions:
        return f"{_quote_titles(moved_questions)} from an index instead of the table"
    differences = []
    for each, chosen_entity in zip(plan.entities, chosen.entities, strict=True):
        if each.base != chosen_entity.base:
            differences.append(_describe_keys(each))
        elif len(each.index_keys) != len(chosen_entity.index_keys):
            keys = "key" if len(each.index_keys) == 1 else "keys"
            differences.append(
                f"{len(each.index_keys)} index {keys} of {each.entity} instead of {len(chosen_entity.index_keys)}"
            )
    return "; ".join(differences)


def _describe_keys(plan: EntityProposal) -> str:
    partition = " and ".join(plan.base.partition) or "one partition for all"
    if len(plan.base.partition) > 1 and not plan.base.sorts:
        return f"{plan.entity} with {partition} in the partition key, and no sort key"
    return f"{plan.entity} keyed by {partition}" + (
        f", then {', '.join(plan.base.sorts)}" if plan.base.sorts else ""
    )


def _is_time_series(entity: EntityDesign, sorts: Sequence[str]) -> bool:
    return bool(sorts) and entity.field(sorts[0]).key_kind in _TIMES


def _quote_titles(questions: Sequence[SolverQuestion]) -> str:
    titles = [f"“{question.title}”" for question in questions]
    return join_names(titles if len(titles) <= 4 else [*titles[:3], f"{len(titles) - 3} more"])
