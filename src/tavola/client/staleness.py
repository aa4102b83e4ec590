"""Staleness: index keys and guards that are not what their items' fields say, found and put right.

The client keeps every key right, but a table has other writers too: a script, a console, an older program. The whole
table is read, each item's entity is recognised, and its keys are made anew from its fields and compared. A shard that
was drawn at random is right wherever readers ask; one by hash too, while the count is being changed. The guards of
unique values are read for the items, and the items for the guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from tavola.client.context import Context
from tavola.client.cursors import question_sum
from tavola.client.effects import Program
from tavola.client.expiry import expired
from tavola.client.guarding import Examination, Guarded, guarded
from tavola.client.marshalling import recognised
from tavola.client.reports import FaultKind, GuardFault, GuardFaultKind, KeyFault, KeyReport, Unreadable
from tavola.client.requests import table_key
from tavola.client.rewrites import Form, form_of, key_rewrite, managed_attributes, same
from tavola.client.sweeps import OVERTAKEN, Mending, Pace, Sweep
from tavola.errors import TavolaError
from tavola.model import UNIQUE_ATTRIBUTE, Shape, Table, shape_of
from tavola.values import Item

FOUND_MAX = 1000  # how many of each kind a report holds; all are counted


@dataclass(slots=True)
class _Finding:
    """The judge of a verification: it notes what is wrong, and has it put right if that is wanted."""

    context: Context
    table: type[Table]
    repair: bool
    managed: frozenset[str]
    counts: dict[str, int] = field(default_factory=dict)
    by_entity: dict[str, int] = field(default_factory=dict)
    faults: list[KeyFault] = field(default_factory=list)
    unknown: list[Item] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    guards: list[GuardFault] = field(default_factory=list)
    examination: Examination = field(init=False)

    def __post_init__(self) -> None:
        self.examination = Examination(self.context, self.table)

    def learn(self, items: Sequence[Item]) -> Program[None]:
        """Hold the items of a round against their guards, and its guards against their items."""
        return self.examination.examine(items)

    def look(self, item: Item) -> Mending | None:
        """Note what is wrong with an item; return what puts it right, if it is to be."""
        self._count("items")
        if UNIQUE_ATTRIBUTE in item:
            self._count("guards")
            orphan = self.examination.orphan(item)
            if orphan is not None:
                self._note("orphaned", self.guards, orphan.fault)
            return orphan if self.repair else None
        if expired(self.table, item, self.context.clock.now()):
            self._count("expired")
            return None
        kind = recognised(self.table, item)
        if kind is None:
            self._note("unknown", self.unknown, table_key(self.table, item))
            return None
        shape = shape_of(kind)
        self.by_entity[shape.name] = self.by_entity.get(shape.name, 0) + 1
        try:
            form = form_of(shape, item, self.context, self.managed, settled=False)
        except TavolaError as error:
            found = Unreadable(table_key(self.table, item), shape.name, str(error))
            self._note("unreadable", self.unreadable, found)
            return None
        wrong = False
        for fault in faults_of(form):
            self._note(fault.kind, self.faults, fault)
            wrong = wrong or fault.kind != "misplaced"
        lacking = self.examination.lacking(item)
        for each in lacking:
            self._note(each.fault.kind, self.guards, each.fault)
        if not self.repair:
            return None
        rewrite = key_rewrite(form) if wrong else None
        if form.upgraded:
            return None if rewrite is None else guarded(form, rewrite, None)[0]
        claims = tuple(each.guard for each in lacking if each.fault.kind == "unguarded")
        return Guarded(form, rewrite, claims) if claims else rewrite

    def again(self, item: Item) -> Mending | None:
        """Return what puts an item right that has changed since it was looked at."""
        kind = recognised(self.table, item)
        if kind is None or not self.repair:
            return None
        try:
            form = form_of(shape_of(kind), item, self.context, self.managed, settled=False)
            wrong = any(fault.kind != "misplaced" for fault in faults_of(form))
            return guarded(form, key_rewrite(form) if wrong else None, None)[0]
        except TavolaError:
            return None

    def wrote(self, mending: Mending) -> None:
        """Count an item that was put right."""
        self._count("written")

    def failed(self, mending: Mending, reason: str) -> None:
        """Note an item that could not be put right."""
        self._note("unreadable", self.unreadable, Unreadable(mending.key, mending.entity, reason))

    def overtaken(self, mending: Mending) -> None:
        """Note an item that others write all the time."""
        self._note("left", self.unreadable, Unreadable(mending.key, mending.entity, OVERTAKEN))

    def told(self) -> dict[str, int]:
        """Return all counts, for a checkpoint."""
        return {"items": 0, "written": 0, **self.counts, **{f"of {n}": c for n, c in self.by_entity.items()}}

    def recall(self, counts: Mapping[str, int]) -> None:
        """Take up the counts of a checkpoint."""
        for name, number in counts.items():
            (self.by_entity if name.startswith("of ") else self.counts)[name.removeprefix("of ")] = number

    def _note(self, kind: str, found: list[Any], what: Any) -> None:
        self._count(kind)
        if len(found) < FOUND_MAX:
            found.append(what)

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


def faults_of(form: Form) -> Iterator[KeyFault]:
    """Give the keys of an item that are not what they should be: each index once, then attributes of no index of it."""
    shape, stored, right = form.shape, form.stored, form.right
    key = table_key(shape.home, stored)
    if form.misplaced:
        yield KeyFault(key, shape.name, None, "misplaced", key, table_key(shape.home, right))
    seen: set[str] = set()
    for each in shape.keys:
        names = [source.attribute for source in each.written]
        seen.update(names)
        if all(same(stored.get(name), right.get(name)) for name in names):
            continue
        assert each.index is not None
        has = {name: stored[name] for name in names if name in stored}
        wants = {name: right[name] for name in names if name in right}
        kind: FaultKind = "superfluous" if not wants else "missing" if not has else "stale"
        yield KeyFault(key, shape.name, each.index.name, kind, has, wants)
    for index in shape.home.indexes:
        names = [n for n in index.attributes if n in form.managed and n not in seen and n not in right]
        has = {name: stored[name] for name in names if name in stored}
        if has:
            yield KeyFault(key, shape.name, index.name, "superfluous", has, {})
            seen.update(names)


def verify_keys(context: Context, table: type[Table], repair: bool, pace: Pace) -> Program[KeyReport]:
    """Return which index keys and guards of a table are not what its items' fields say; with `repair`, put them right."""
    finding = _Finding(context, table, repair, managed_attributes(table))
    work = f"{'repair' if repair else 'verification'} of {context.name_of(table)} by design {keys_sum(table)}"
    sweep = Sweep(context, table, finding, pace, work)
    finding.recall(sweep.standing.counts)
    resumed = sweep.resumed
    yield from sweep.run(finding.told)
    kinds = (
        "stale",
        "missing",
        "superfluous",
        "misplaced",
        "unknown",
        "unreadable",
        "expired",
        "left",
        *get_args(GuardFaultKind),
    )
    return KeyReport(
        context.name_of(table), finding.counts.get("items", 0), dict(sorted(finding.by_entity.items())),
        {kind: finding.counts.get(kind, 0) for kind in kinds}, tuple(finding.faults), tuple(finding.unknown),
        tuple(finding.unreadable), finding.counts.get("written", 0), resumed, tuple(finding.guards),
    )  # fmt: skip


def keys_sum(table: type[Table]) -> str:
    """Return what identifies how a table's items are written: equal for equal designs, in every process."""
    return question_sum([_told(shape_of(entity)) for _, entity in sorted(table.entities.items())])[:12]


def _told(shape: Shape) -> list[Any]:
    keys = [] if shape.key is None else [shape.key.key]
    return [
        shape.name, shape.version, sorted((f.name, f.attribute, sorted(f.converter.tags)) for f in shape.fields.values()),
        [
            [
                "" if key.index is None else key.index.name,
                [[s.attribute, list(s.fields), "" if s.template is None else s.template.source] for s in key.sources],
                key.sparse, str(key.members), str(key.shards),
            ]
            for key in [*keys, *shape.keys]
        ],
        [[unique.field, list(unique.within)] for unique in shape.uniques],
    ]  # fmt: skip
