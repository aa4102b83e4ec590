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
from tavola.design.text import CENT, format_count, format_money, join_names
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
    "Simple Key": "items by id",
    "Partition and Sort Key": "items of one parent, in order",
    "Shared Table": "independent entities in one table",
    "Secondary Index": "an additional access pattern",
    "Local Index": "another sort order with strong consistency",
    "Adjacency List": "graph relationships",
    "Composite Sort Key": "multi-level hierarchies",
    "GSI Overloading": "multiple access patterns",
    "Write Sharding": "high write throughput",
    "Sparse Indexes": "subset needs secondary access",
    "Single-Table Design": "related entities queried together",
    "Composite Key + Sharding": "time-ordered data",
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
        {q.name: q for entity in plan.entities for q in entity.served if q.has_several_entities}.values()
    )
    if shared:
        widest = max(shared, key=lambda question: len(question.entities))
        partition = _partition_text(table, table.entity(widest.entities[0]).key)
        what = (
            f"{join_names(widest.entities)} share the partition {partition}, so {_quote_titles(shared)} "
            f"{'is one query' if len(shared) == 1 else 'are one query each'}"
        )
        return Choice(table.label, "Single-Table Design", f"{what}. {_describe_served(plan)}.", amount)
    if len(plan.entities) > 1:
        what = f"{len(plan.entities)} entities share the table because {group.reason}"
        return Choice(table.label, "Shared Table", f"{what}. {_describe_served(plan)}.", amount)
    only = plan.entities[0]
    if plan.base_shards.get(only.entity, 1) > 1:
        pattern, what = _explain_spread(plan, only, subject)
        return Choice(table.label, pattern, f"{what}. {_describe_served(plan)}.", amount)
    hierarchical = _has_levels(only.base, only.served)
    pattern = (
        "Composite Sort Key"
        if hierarchical
        else "Partition and Sort Key"
        if only.base.sorts
        else "Simple Key"
    )
    kind = "Its key consists of plain attributes" if plan.native else "Its key is built from templates"
    deep = f", queried level by level: {', '.join(only.base.sorts)}" if hierarchical else ""
    what = f"{only.entity} has its own table because {group.reason}. {kind}{deep}"
    return Choice(table.label, pattern, f"{what}. {_describe_served(plan)}.", amount)


def explain_shards(plan: TableProposal, table: TableDesign, subject: SolverInput) -> Iterator[Choice]:
    """Yield a choice for each sharded entity of a table with several."""
    for entity in plan.entities:
        if len(plan.entities) > 1 and plan.base_shards.get(entity.entity, 1) > 1:
            pattern, what = _explain_spread(plan, entity, subject)
            yield Choice(table.label, pattern, f"{what}.", None)


def _explain_spread(
    plan: TableProposal, entity_proposal: EntityProposal, subject: SolverInput
) -> tuple[Pattern, str]:
    entity = subject.entities[entity_proposal.entity]
    spread = plan.base_shards[entity_proposal.entity]
    partition = " and ".join(entity_proposal.base.partition) or f"all {entity_proposal.entity}"
    reason = f"one {partition} of {entity_proposal.entity} would exceed the throughput of a partition, so its key has {spread} shards"
    return (
        "Composite Key + Sharding"
        if _is_time_series(entity, entity_proposal.base.sorts)
        else "Write Sharding"
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
    gets = [q for entity in plan.entities for q in entity.served if q.single]
    queries = [
        q for entity in plan.entities for q in entity.served if not q.single and not q.has_several_entities
    ]
    clauses = []
    if gets:
        verb = "gets an item by its key" if len(gets) == 1 else "get items by their keys"
        clauses.append(f"{format_count(len(gets), 'access pattern')} {verb}")
    if queries:
        clauses.append(f"{_quote_titles(queries)} use{'s' if len(queries) == 1 else ''} the sort key")
    return ", and ".join(clauses) or "No access pattern reads the table directly"


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
    questions = [question for index_key in index.keys for question in index_key.questions]
    sentence = f"Serves {_quote_titles(questions)}: {because}. {_describe_contents(index, index_design)}."
    return Choice(place, pattern, sentence, amount)


def _explain_pattern(plan: TableProposal, index: IndexProposal, subject: SolverInput) -> tuple[Pattern, str]:
    for index_key in index.keys:
        entity = subject.entities[index_key.entity]
        shards = index.shards.get(index_key.entity, 1)
        if shards > 1:
            timed = _is_time_series(entity, index_key.key.sorts)
            reason = f"{_hot(index_key, entity)} would exceed the throughput of a partition, so it has {shards} shards"
            return ("Composite Key + Sharding" if timed else "Write Sharding"), reason
    if len(index.keys) > 1:
        reason = f"{join_names([b.entity for b in index.keys])} share it with different key prefixes"
        two_sided = [b.entity for b in index.keys if _is_adjacency(plan, b, subject)]
        if two_sided:
            reason += f"; {join_names(two_sided)} {'is' if len(two_sided) == 1 else 'are'} read from both sides (adjacency list)"
        return "GSI Overloading", reason
    index_key = index.keys[0]
    entity = subject.entities[index_key.entity]
    if index.local:
        return "Local Index", "it requires strong consistency, which among indexes only local ones support"
    if _is_adjacency(plan, index_key, subject):
        base = plan.entity(index_key.entity).base
        other = [name for name in base.fields if name not in index_key.key.partition]
        return "Adjacency List", (
            f"{' and '.join(other)} and {' and '.join(index_key.key.partition)} identify one {index_key.entity} together and are also "
            "queried separately, so the index inverts the key"
        )
    if index_key.key.members:
        reason = " and ".join(describe_members(index_key.key.members))
        return "Sparse Indexes", f"it contains only the items where {reason}, so other items add no cost"
    nullable = [name for name in index_key.key.fields if entity.field(name).nullable]
    if nullable:
        reason = f"it contains only the items with {' and '.join(nullable)}, so other items add no cost"
        return "Sparse Indexes", reason
    condition_fields = {
        name
        for question in index_key.questions
        for name in (*question.fixed[0], *(member.field for member in question.members))
    }
    chosen = next(
        (name for name in index_key.key.fields if name in condition_fields and entity.field(name).choices),
        None,
    )
    if chosen is not None:
        count = len(entity.field(chosen).choices or ())
        return "GSI with Status Prefix", f"{chosen} has {count} values and is queried by equality"
    if _has_levels(index_key.key, index_key.questions):
        return "Composite Sort Key", f"it is queried level by level: {', '.join(index_key.key.sorts)}"
    order = f", sorted by {', '.join(index_key.key.sorts)}" if index_key.key.sorts else ""
    partition = " and ".join(index_key.key.partition)
    access = (
        f"{index_key.entity} is queried by {partition}{order}"
        if partition
        else f"all {index_key.entity} items are listed{order}"
    )
    return "Secondary Index", f"{access}, which the table's key does not support"


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
        values = ["absent" if value is None else str(next(iter(value.values()))) for value in member.values]
        clauses.append(f"{member.field} is {' or '.join(values)}")
    return clauses


def _hot(index_key: IndexKey, entity: EntityDesign) -> str:
    if not index_key.key.partition:
        return f"one partition of all {entity.name}"
    return f"one {' and '.join(index_key.key.partition)}"


def _partition_text(table: TableDesign, key: KeyDesign | None) -> str:
    """Return a partition key's templates and attributes, without shard suffixes."""
    assert key is not None
    parts = [source.attribute if source.template is None else source.template.source for source in key.hash]
    return " / ".join(text.replace(f"{table.settings.delimiter}{{__shard__:04}}", "") for text in parts)


def _describe_contents(index: IndexProposal, index_design: IndexDesign) -> str:
    returns_all_fields = any(
        question.result_fields is None for index_key in index.keys for question in index_key.questions
    )
    count = len(index.hydrated)
    fetched = (
        f", and {format_count(count, 'access pattern')} {'fetches' if count == 1 else 'fetch'} whole items from the table"
        if count
        else ""
    )
    if index_design.projection == "ALL":
        return "It projects all attributes" + (
            ", so no item is fetched from the table" if returns_all_fields else ""
        )
    if index_design.projection == "KEYS_ONLY":
        return f"It projects only keys{fetched}"
    attributes = len(index_design.projection)
    return f"It projects the {format_count(attributes, 'attribute')} that access patterns read{fetched}"


def describe_projection(index: IndexProposal, chosen: IndexProposal) -> str:
    """Name another projection or key style as an alternative."""
    text = _projection_text(index)
    if index.native == chosen.native:
        return text
    return f"{text}, with {'native attribute' if index.native else 'template'} keys"


def _projection_text(index: IndexProposal) -> str:
    if index.projection == "ALL":
        return "all attributes projected"
    if index.projection == "KEYS_ONLY":
        return "only keys projected, whole items fetched" if index.hydrated else "only keys projected"
    text = f"{len(index.projection)} attributes projected"
    return f"{text}, whole items fetched" if index.hydrated else text


def explain_projection(index: IndexProposal, chosen: IndexProposal, extra: Decimal) -> str:
    """Return why an alternative projection was not chosen."""
    if extra < CENT and chosen.native and not index.native:
        return "costs the same, but adds key attributes to each item"
    price_clause = "costs the same, but" if extra < CENT else f"costs {format_money(extra)} more, because"
    if index.hydrated and not chosen.hydrated:
        return f"{price_clause} every returned item is read again from the table"
    if index.projection == "ALL":
        return f"{price_clause} every write copies the whole item"
    if index.projection == "KEYS_ONLY":
        return f"{price_clause} only keys would be returned"
    return f"{price_clause} it writes or reads more than needed"


def describe_other_keys(plan: TableProposal, chosen: TableProposal) -> str:
    """Describe the keys of a proposal that differ from the chosen ones."""
    served, chosen_served = (
        {q.name: q for e in proposal.entities for q in e.served if q.has_several_entities}
        for proposal in (plan, chosen)
    )
    moved_questions = [chosen_served[name] for name in chosen_served if name not in served]
    if moved_questions:
        return f"{_quote_titles(moved_questions)} from an index instead of the table"
    differences = []
    for entity, chosen_entity in zip(plan.entities, chosen.entities, strict=True):
        if entity.base != chosen_entity.base:
            differences.append(_describe_keys(entity))
        elif len(entity.index_keys) != len(chosen_entity.index_keys):
            keys = "key" if len(entity.index_keys) == 1 else "keys"
            differences.append(
                f"{len(entity.index_keys)} index {keys} of {entity.entity} instead of {len(chosen_entity.index_keys)}"
            )
    return "; ".join(differences)


def _describe_keys(plan: EntityProposal) -> str:
    partition = " and ".join(plan.base.partition) or "a constant"
    if len(plan.base.partition) > 1 and not plan.base.sorts:
        return f"{plan.entity} with {partition} in the partition key, and no sort key"
    return f"{plan.entity} partitioned by {partition}" + (
        f", sorted by {', '.join(plan.base.sorts)}" if plan.base.sorts else ""
    )


def _is_time_series(entity: EntityDesign, sorts: Sequence[str]) -> bool:
    return bool(sorts) and entity.field(sorts[0]).key_kind in _TIMES


def _quote_titles(questions: Sequence[SolverQuestion]) -> str:
    titles = [f"“{question.title}”" for question in questions]
    return join_names(titles if len(titles) <= 4 else [*titles[:3], f"{len(titles) - 3} more"])
