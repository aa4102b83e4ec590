"""Key verification: find and repair index keys and guards that do not match their items' fields.

The client keeps every key right, but a table may have other writers: a script, a console, an older program. So the whole table
is read, the entity of each item is identified, its keys are computed from its fields and compared. A random shard is right if
it is one that queries read; so is a hash shard while the number of shards is being changed. Guards of unique values are read
for the items, and items for the guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.guard_checks import GuardCheck, GuardedRewrite, add_guards
from tavola.client.marshalling import identify_entity
from tavola.client.pages import digest
from tavola.client.reports import (
    GuardProblem,
    GuardProblemKind,
    KeyProblem,
    KeyProblemKind,
    KeyReport,
    Unreadable,
)
from tavola.client.requests import is_expired, table_key
from tavola.client.rewrites import ItemForm, form_of, key_rewrite, managed_attributes, same_value
from tavola.client.sweeps import CONTENDED, ItemInspector, Repair, Sweep, SweepOptions
from tavola.errors import TavolaError
from tavola.model import UNIQUE_ATTRIBUTE, EntityShape, Table, shape_of
from tavola.values import Item


@dataclass(slots=True)
class _KeyVerifier(ItemInspector):
    """Reports wrong keys and guards, and repairs them if wanted."""

    repair: bool = False
    by_entity: dict[str, int] = field(default_factory=dict)
    problems: list[KeyProblem] = field(default_factory=list)
    unknown: list[Item] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    guards: list[GuardProblem] = field(default_factory=list)
    managed: frozenset[str] = field(init=False)
    guard_check: GuardCheck = field(init=False)

    def __post_init__(self) -> None:
        self.managed = managed_attributes(self.table)
        self.guard_check = GuardCheck(self.context, self.table)

    def load_guards(self, items: Sequence[Item]) -> Program[None]:
        return self.guard_check.check(items)

    def inspect(self, item: Item) -> Repair | None:
        self.count("items")
        if UNIQUE_ATTRIBUTE in item:
            self.count("guards")
            orphan = self.guard_check.orphan(item)
            if orphan is not None:
                self.note("orphaned", self.guards, orphan.problem)
            return orphan if self.repair else None
        if is_expired(self.table, item, self.context.clock.now()):
            self.count("expired")
            return None
        entity = identify_entity(self.table, item)
        if entity is None:
            self.note("unknown", self.unknown, table_key(self.table, item))
            return None
        shape = shape_of(entity)
        self.by_entity[shape.name] = self.by_entity.get(shape.name, 0) + 1
        try:
            form = form_of(shape, item, self.context, self.managed, settled=False)
        except TavolaError as error:
            unreadable = Unreadable(table_key(self.table, item), shape.name, str(error))
            self.note("unreadable", self.unreadable, unreadable)
            return None
        is_wrong = False
        for problem in key_problems(form):
            self.note(problem.kind, self.problems, problem)
            is_wrong = is_wrong or problem.kind != "misplaced"
        missing = self.guard_check.missing_guards(item)
        for repair in missing:
            self.note(repair.problem.kind, self.guards, repair.problem)
        if not self.repair:
            return None
        rewrite = key_rewrite(form) if is_wrong else None
        if form.upgraded:
            return None if rewrite is None else add_guards(form, rewrite, None)[0]
        claims = tuple(repair.guard for repair in missing if repair.problem.kind == "unguarded")
        return GuardedRewrite(form, rewrite, claims) if claims else rewrite

    def inspect_again(self, item: Item) -> Repair | None:
        entity = identify_entity(self.table, item)
        if entity is None or not self.repair:
            return None
        try:
            form = form_of(shape_of(entity), item, self.context, self.managed, settled=False)
            is_wrong = any(problem.kind != "misplaced" for problem in key_problems(form))
            return add_guards(form, key_rewrite(form) if is_wrong else None, None)[0]
        except TavolaError:
            return None

    def report_failed(self, repair: Repair, reason: str) -> None:
        self.note("unreadable", self.unreadable, Unreadable(repair.key, repair.entity, reason))

    def report_contended(self, repair: Repair) -> None:
        self.note("left", self.unreadable, Unreadable(repair.key, repair.entity, CONTENDED))

    def counters(self) -> dict[str, int]:
        entities = {f"of {name}": count for name, count in self.by_entity.items()}
        return {"items": 0, "written": 0, **self.counts, **entities}

    def restore_counters(self, counts: Mapping[str, int]) -> None:
        """Continue the counts of a checkpoint."""
        for name, number in counts.items():
            (self.by_entity if name.startswith("of ") else self.counts)[name.removeprefix("of ")] = number


def key_problems(form: ItemForm) -> Iterator[KeyProblem]:
    """Yield the wrong keys of an item: one for each of its indexes, then attributes of indexes it should not be in."""
    shape, stored, right = form.shape, form.stored, form.right
    key = table_key(shape.home, stored)
    if form.misplaced:
        yield KeyProblem(key, shape.name, None, "misplaced", key, table_key(shape.home, right))
    seen: set[str] = set()
    for index_key in shape.keys:
        names = [source.attribute for source in index_key.written]
        seen.update(names)
        if all(same_value(stored.get(name), right.get(name)) for name in names):
            continue
        assert index_key.index is not None
        present = {name: stored[name] for name in names if name in stored}
        expected = {name: right[name] for name in names if name in right}
        kind: KeyProblemKind = "superfluous" if not expected else "missing" if not present else "stale"
        yield KeyProblem(key, shape.name, index_key.index.name, kind, present, expected)
    for index in shape.home.indexes:
        names = [n for n in index.attributes if n in form.managed and n not in seen and n not in right]
        present = {name: stored[name] for name in names if name in stored}
        if present:
            yield KeyProblem(key, shape.name, index.name, "superfluous", present, {})
            seen.update(names)


def verify_keys(
    context: Context, table: type[Table], repair: bool, options: SweepOptions
) -> Program[KeyReport]:
    """Return the index keys and guards of a table that do not match its items; with `repair`, correct them."""
    verifier = _KeyVerifier(context, table, repair=repair)
    name = context.name_of(table)
    work = f"{'repair' if repair else 'verification'} of {name} by design {design_digest(table)}"
    sweep = Sweep(verifier, options, work)
    verifier.restore_counters(sweep.position.counts)
    yield from sweep.run()
    counts = verifier.counts
    kinds = (
        *get_args(KeyProblemKind), "unknown", "unreadable", "expired", "left", *get_args(GuardProblemKind),
    )  # fmt: skip
    return KeyReport(
        name, counts.get("items", 0), dict(sorted(verifier.by_entity.items())),
        {kind: counts.get(kind, 0) for kind in kinds}, tuple(verifier.problems), tuple(verifier.unknown),
        tuple(verifier.unreadable), counts.get("written", 0), sweep.resumed, tuple(verifier.guards),
    )  # fmt: skip


def design_digest(table: type[Table]) -> str:
    """Return a digest of how a table's items are written: equal for equal designs, in every process."""
    return digest([_shape_data(shape_of(entity)) for _, entity in sorted(table.entities.items())])[:12]


def _shape_data(shape: EntityShape) -> list[Any]:
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
