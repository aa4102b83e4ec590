"""Explain each key and index in one sentence, in terms of the design pattern it follows.

The pattern names are those of the guide "choosing the right pattern". What follows none of them gets a plain name: simple key, partition
and sort key, shared table, secondary or local index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tavola.design.solver.candidates import EntityProposal, IndexKey, KeyProposal
from tavola.design.solver.plans import IndexProposal, TableProposal
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
    """Another way, what the whole design would cost with it in a month, and why it was not taken."""

    place: str
    what: str
    amount: Decimal
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision: where, which pattern it follows, and why, with what else was weighed."""

    place: str
    pattern: Pattern
    sentence: str
    amount: Decimal | None  # what this place costs in a month; None: another choice of the same place says it
    instead: tuple[Alternative, ...] = ()


def explain_table(
    household: TableGroup, plan: TableProposal, table: TableDesign, subject: SolverInput, amount: Decimal
) -> Choice:
    """Return why a table's own keys are as they are."""
    together = list({q.name: q for each in plan.entities for q in each.served if q.several}.values())
    if together:
        wide = max(together, key=lambda question: len(question.entities))
        partition = _spelled(table, table.entity(wide.entities[0]).key)
        what = (
            f"{join_names(wide.entities)} share the partition {partition}, so that {_quoted(together)} "
            f"{'is one query' if len(together) == 1 else 'are one query each'}"
        )
        return Choice(table.label, "Single-Table Design", f"{what}; {_served(plan)}.", amount)
    if len(plan.entities) > 1:
        what = f"its {len(plan.entities)} entities are in one table because {household.reason}"
        return Choice(table.label, "Shared Table", f"{what}; {_served(plan)}.", amount)
    only = plan.entities[0]
    if plan.base_shards.get(only.entity, 1) > 1:
        pattern, what = _spread_told(plan, only, subject)
        return Choice(table.label, pattern, f"{what}; {_served(plan)}.", amount)
    levels = _levels(only.base, only.served)
    pattern = (
        "Composite Sort Key" if levels else "Partition and Sort Key" if only.base.sorts else "Simple Key"
    )
    kind = "its own attributes are the key" if plan.plain else "a template makes the key"
    deep = f", asked level by level: {', '.join(only.base.sorts)}" if levels else ""
    what = f"{only.entity} is alone here, since {household.reason}; {kind}{deep}"
    return Choice(table.label, pattern, f"{what}; {_served(plan)}.", amount)


def explain_shards(plan: TableProposal, table: TableDesign, subject: SolverInput) -> Iterator[Choice]:
    """Give why keys in a table of several entities are spread, an entity each."""
    for each in plan.entities:
        if len(plan.entities) > 1 and plan.base_shards.get(each.entity, 1) > 1:
            pattern, what = _spread_told(plan, each, subject)
            yield Choice(table.label, pattern, f"{what}.", None)


def _spread_told(plan: TableProposal, each: EntityProposal, subject: SolverInput) -> tuple[Pattern, str]:
    entity = subject.entities[each.entity]
    spread = plan.base_shards[each.entity]
    partition = " and ".join(each.base.partition) or f"all {each.entity}"
    told = f"one {partition} of {each.entity} would get more than a partition takes, so its key is spread over {spread} shards"
    return ("Composite Key + Sharding" if _timed(entity, each.base.sorts) else "Write Sharding"), told


def _levels(key: KeyProposal, questions: Sequence[SolverQuestion]) -> bool:
    """Tell whether a sort key has levels: two fields or more, of which some question fixes the first ones."""
    if len(key.sorts) < 2:
        return False
    told = (
        {*question.fixed[0], *(member.field for member in question.members)}
        for question in questions
        if not question.single and not question.several
    )
    return any(key.sorts[0] in given for given in told)


def _served(plan: TableProposal) -> str:
    """Return what the table itself answers, in a clause."""
    gets = [q for each in plan.entities for q in each.served if q.single]
    queries = [q for each in plan.entities for q in each.served if not q.single and not q.several]
    told = []
    if gets:
        told.append(
            f"{len(gets)} question{'s' if len(gets) > 1 else ''} for one item {'are gets' if len(gets) > 1 else 'is a get'}"
        )
    if queries:
        told.append(f"{_quoted(queries)} run{'s' if len(queries) == 1 else ''} along the sort key")
    return " and ".join(told) or "nothing is asked of it alone"


def explain_index(
    plan: TableProposal,
    index: IndexProposal,
    made: IndexDesign,
    table: TableDesign,
    subject: SolverInput,
    amount: Decimal,
) -> Choice:
    """Return why an index is as it is."""
    place = f"{table.label}.{made.label}"
    pattern, because = _pattern(plan, index, subject)
    keys = " and ".join(_key_told(table, block, made) for block in index.blocks)
    questions = [question for block in index.blocks for question in block.questions]
    sentence = f"{keys} serve{'s' if len(index.blocks) == 1 else ''} {_quoted(questions)}: {because}; {_projected(index, made)}."
    return Choice(place, pattern, sentence, amount)


def _pattern(plan: TableProposal, index: IndexProposal, subject: SolverInput) -> tuple[Pattern, str]:
    for block in index.blocks:
        entity = subject.entities[block.entity]
        shards = index.shards.get(block.entity, 1)
        if shards > 1:
            timed = _timed(entity, block.key.sorts)
            told = f"{_hot(block, entity)} would get more than a partition takes, so it is spread over {shards} shards"
            return ("Composite Key + Sharding" if timed else "Write Sharding"), told
    if len(index.blocks) > 1:
        told = f"{join_names([b.entity for b in index.blocks])} share it, told apart by their keys"
        both = [b.entity for b in index.blocks if _both_sides(plan, b, subject)]
        if both:
            told += f"; {join_names(both)} {'is' if len(both) == 1 else 'are'} asked from both sides, as an adjacency list is"
        return "GSI Overloading", told
    block = index.blocks[0]
    entity = subject.entities[block.entity]
    if index.local:
        return "Local Index", "it must see every write before it, which of indexes only a local one does"
    if _both_sides(plan, block, subject):
        base = plan.entity(block.entity).base
        other = [name for name in base.fields if name not in block.key.partition]
        return "Adjacency List", (
            f"{' and '.join(other)} and {' and '.join(block.key.partition)} tell one {block.entity} together and are each "
            "asked by themselves, so the index looks from the other side"
        )
    if block.key.members:
        told = " and ".join(describe_members(block.key.members))
        return "Sparse Indexes", f"only items are in it where {told}, and the others cost it nothing"
    absent = [name for name in block.key.fields if entity.field(name).nullable]
    if absent:
        told = f"only items that have {' and '.join(absent)} are in it, and the others cost it nothing"
        return "Sparse Indexes", told
    given = {name for question in block.questions for name in _given(question)}
    chosen = next((name for name in block.key.fields if name in given and entity.field(name).choices), None)
    if chosen is not None:
        many = len(entity.field(chosen).choices or ())
        return "GSI with Status Prefix", f"{chosen} is one of {many} values and is asked for with equality"
    if _levels(block.key, block.questions):
        return "Composite Sort Key", f"it is asked level by level: {', '.join(block.key.sorts)}"
    run = f", in the order of {', '.join(block.key.sorts)}" if block.key.sorts else ""
    by = " and ".join(block.key.partition)
    asked = f"{block.entity} is asked by {by}{run}" if by else f"all {block.entity} are asked for{run}"
    return "Secondary Index", f"{asked}, which the table's own key does not give"


def _given(question: SolverQuestion) -> tuple[str, ...]:
    return (*question.fixed[0], *(member.field for member in question.members))


def _both_sides(plan: TableProposal, block: IndexKey, subject: SolverInput) -> bool:
    """Tell whether an entity relates two things and is asked by each: an index by one half of what tells it apart."""
    base = plan.entity(block.entity).base
    entity = subject.entities[block.entity]
    half = set(block.key.partition)
    other = set(base.fields) - half
    if not half or not half < set(base.fields) or half == set(base.partition) or block.together:
        return False
    if any(entity.field(n).choices or entity.field(n).key_kind in _TIMES for n in base.fields):
        return False  # a status or a time is nothing that is related
    return any(
        set(question.equal(block.entity)) == other
        for question in subject.questions
        if block.entity in question.entities and not question.single
    )


def describe_members(members: Sequence[Membership]) -> list[str]:
    """Return which values let an item into an index, a clause for each field."""
    told = []
    for member in members:
        values = ["absent" if each is None else str(next(iter(each.values()))) for each in member.values]
        told.append(f"{member.field} is {' or '.join(values)}")
    return told


def _hot(block: IndexKey, entity: EntityDesign) -> str:
    if not block.key.partition:
        return f"one partition of all {entity.name}"
    return f"one {' and '.join(block.key.partition)}"


def _key_told(table: TableDesign, block: IndexKey, index: IndexDesign) -> str:
    key = table.entity(block.entity).key_on(index.name)
    return _spelled(table, key, whole=True)


def _spelled(table: TableDesign, key: KeyDesign | None, *, whole: bool = False) -> str:
    """Return a key as it is written."""
    assert key is not None
    sources = key.sources if whole else key.hash
    told = [source.template.source if source.template is not None else source.attribute for source in sources]
    return " / ".join(text.replace(f"{table.settings.delimiter}{{__shard__:04}}", "") for text in told)


def _projected(index: IndexProposal, made: IndexDesign) -> str:
    whole = any(question.wanted is None for block in index.blocks for question in block.questions)
    asked = len(index.hydrated)
    fetched = f", and whole items are fetched for {asked} question{'s' if asked > 1 else ''}" if asked else ""
    if made.projection == "ALL":
        return "it holds whole items" + (", so that nothing is fetched" if whole else "")
    if made.projection == "KEYS_ONLY":
        return f"it holds keys alone{fetched}"
    many = len(made.projection)
    return f"it holds the {many} attribute{'s' if many > 1 else ''} that {'are' if many > 1 else 'is'} read{fetched}"


def describe_projection(index: IndexProposal, chosen: IndexProposal) -> str:
    """Return a way of projecting, and of keying, as an alternative names it."""
    told = _projection_told(index)
    if index.native == chosen.native:
        return told
    return f"{told}, keyed by {'its own attributes' if index.native else 'templates'}"


def _projection_told(index: IndexProposal) -> str:
    if index.projection == "ALL":
        return "whole items projected"
    if index.projection == "KEYS_ONLY":
        return "keys alone projected, whole items fetched" if index.hydrated else "keys alone projected"
    told = f"{len(index.projection)} attributes projected"
    return f"{told}, whole items fetched" if index.hydrated else told


def explain_projection(index: IndexProposal, chosen: IndexProposal, dearer: Decimal) -> str:
    """Return why another way of projecting was not taken."""
    more = "costs the same" if dearer < Decimal("0.01") else f"costs {dearer:,.2f} more"
    if chosen.native and not index.native and dearer < Decimal("0.01"):
        return f"{more}: attributes of the key would be written beside those that are there"
    if index.hydrated and not chosen.hydrated:
        return f"{more}: every item of an answer is read a second time, from the table"
    if index.projection == "ALL":
        return f"{more}: every write of an item is written again whole"
    if index.projection == "KEYS_ONLY":
        return f"{more}: what keys do not hold would be lacking"
    return f"{more}: more is written or read than is asked for"


def describe_other_keys(plan: TableProposal, chosen: TableProposal) -> str:
    """Return what keys another plan has than the one that was chosen, as an alternative names it."""
    here, there = (
        {q.name: q for e in each.entities for q in e.served if q.several} for each in (plan, chosen)
    )
    moved = [there[name] for name in there if name not in here]
    if moved:
        return f"{_quoted(moved)} from an index instead of the table"
    told = []
    for each, was in zip(plan.entities, chosen.entities, strict=True):
        if each.base != was.base:
            told.append(_entity_told(each))
        elif len(each.blocks) != len(was.blocks):
            keys = "key" if len(each.blocks) == 1 else "keys"
            told.append(f"{len(each.blocks)} index {keys} of {each.entity} instead of {len(was.blocks)}")
    return "; ".join(told)


def _entity_told(plan: EntityProposal) -> str:
    told = " and ".join(plan.base.partition) or "one partition for all"
    if len(plan.base.partition) > 1 and not plan.base.sorts:
        return f"{plan.entity} with {told} in the partition key, and no sort key"
    return f"{plan.entity} keyed by {told}" + (
        f", then {', '.join(plan.base.sorts)}" if plan.base.sorts else ""
    )


def _timed(entity: EntityDesign, sorts: Sequence[str]) -> bool:
    return bool(sorts) and entity.field(sorts[0]).key_kind in _TIMES


def _quoted(questions: Sequence[SolverQuestion]) -> str:
    titles = [f"“{question.title}”" for question in questions]
    return join_names(titles if len(titles) <= 4 else [*titles[:3], f"{len(titles) - 3} more"])
