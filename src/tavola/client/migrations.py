"""Migrations: from items as they were written to items as the design would write them now.

A plan says what must be rewritten, how much of it, and what that costs, before anything is. A backfill does it while
the application runs: throttled, resumable, each write under the condition that its item is as it was read. Doing it
twice does nothing twice. Items whose key in the table would be another are told and left: they cannot move in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tavola.client.batches import answers
from tavola.client.context import Context
from tavola.client.differences import differences, given_up
from tavola.client.expiry import expired
from tavola.client.explain.estimates import Known, estimate
from tavola.client.explain.walk import Prices, prices_in
from tavola.client.marshalling import recognised
from tavola.client.reports import BackfillReport, EntityPlan, MigrationPlan, Unreadable
from tavola.client.rewrites import Rewrite, dropped, form_of, managed_attributes, table_key, whole_rewrite
from tavola.client.staleness import FOUND_MAX, faults_of, keys_sum
from tavola.client.steps import Call, Steps
from tavola.client.sweeps import Pace, Sweep
from tavola.client.uniques import guards_of
from tavola.errors import TavolaError
from tavola.model import UNIQUE_ATTRIBUTE, Entity, ModelError, Shape, Table, shape_of
from tavola.model.document import TableDesign, design_of, read_document
from tavola.values import Item

SAMPLE_ITEMS = 2000
SAMPLE_SEGMENTS = 8

Older = Mapping[str, Any] | type[Table]  # a design's document as JSON gives it, or the class as it was


@dataclass(slots=True)
class _Backfill:
    """The judge of a backfill, and of its plan."""

    context: Context
    table: type[Table]
    shapes: frozenset[str]  # entities that are rewritten, by tag
    managed: frozenset[str]
    forget: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    left: list[Unreadable] = field(default_factory=list)
    by_entity: dict[str, _Tally] | None = None  # for a plan: what each would undergo

    def look(self, item: Item) -> Rewrite | None:
        """Return how an item is rewritten, None if it is as it should be."""
        self._count("items")
        return self._judged(item, self._leave)

    def again(self, item: Item) -> Rewrite | None:
        """Return the same for one that has changed since."""
        return self._judged(item, lambda kind, item, shape, reason: None)

    def wrote(self, rewrite: Rewrite) -> None:
        """Count an item that was rewritten."""
        self._count("written")
        self._count(f"of {rewrite.form.shape.name}")

    def failed(self, rewrite: Rewrite, reason: str) -> None:
        """Note an item that DynamoDB does not take."""
        self._leave("refused", rewrite.form.stored, rewrite.form.shape, reason)

    def told(self) -> dict[str, int]:
        """Return all counts, for a checkpoint."""
        return {"items": 0, "written": 0, **self.counts}

    def _judged(self, item: Item, leave: Any) -> Rewrite | None:
        if UNIQUE_ATTRIBUTE in item or expired(self.table, item, self.context.clock.now()):
            return None
        kind = recognised(self.table, item)
        if kind is None:
            leave("unknown", item, None, "")
            return None
        shape = shape_of(kind)
        tally = None if self.by_entity is None else self.by_entity.setdefault(shape.name, _Tally())
        if tally is not None:
            tally.items += 1
        if shape.name not in self.shapes:
            return None
        try:
            form = form_of(shape, item, self.context, self.managed, settled=True)
        except TavolaError as error:
            leave("unreadable", item, shape, str(error))
            return None
        if form.misplaced:
            leave(
                "misplaced", item, shape, "its key in the table would be another, and an item cannot be moved"
            )
            return None
        if self.forget:
            form = dropped(form, self.forget)
        rewrite = whole_rewrite(form)
        if rewrite is None:
            return None
        if _moves_guards(rewrite):
            leave(
                "guarded", item, shape, "a unique value of it would change; put() it, which claims the value"
            )
            return None
        if tally is not None:
            tally.add(rewrite, self.context.name_of(self.table))
        return rewrite

    def _leave(self, kind: str, item: Item, shape: Shape | None, reason: str) -> None:
        self._count(kind)
        if shape is not None:
            self._count("left")
            if len(self.left) < FOUND_MAX:
                self.left.append(Unreadable(table_key(self.table, item), shape.name, reason))

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


def _moves_guards(rewrite: Rewrite) -> bool:
    """Return whether an item's unique values would be others after a rewrite, which takes a transaction."""
    shape, key = rewrite.form.shape, rewrite.key
    if not shape.uniques:
        return False
    try:
        before = guards_of(shape, rewrite.form.stored, key)
    except ValueError:  # of an older schema, whose values do not fit the fields of this one
        return True
    return before.keys() != guards_of(shape, rewrite.result, key).keys()


@dataclass(slots=True)
class _Tally:
    """What one entity's items would undergo."""

    items: int = 0
    rewritten: int = 0
    units: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, rewrite: Rewrite, name: str) -> None:
        """Count an item that would be rewritten, with the units on its table and indexes."""
        self.rewritten += 1
        form = rewrite.form
        table = form.shape.home
        told = {"TableName": name, "Item": rewrite.result}
        found = estimate("PutItem", told, Known(tables={name: table}, standing=(form.stored,)))
        assert found is not None
        self.units += found.total.writes
        for reason in _reasons(rewrite):
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


def _reasons(rewrite: Rewrite) -> Iterable[str]:
    form, shape = rewrite.form, rewrite.form.shape
    if form.upgraded:
        yield f"an older schema than version {shape.version}"
    keys: set[str] = set()
    for fault in faults_of(form):
        yield f"a key in {fault.index} that is {fault.kind}"
        keys |= fault.stored.keys() | fault.right.keys()
    tag = shape.home.settings.tag
    if tag is not None and tag in rewrite.attributes:
        yield f"no {tag} that says what it is"
    if not form.upgraded:
        fields = rewrite.attributes & shape.by_attribute.keys()
        if fields:
            yield f"{', '.join(sorted(fields))} not as it would be written"
        rest = rewrite.attributes - fields - keys - {tag}
        if rest:
            yield f"{', '.join(sorted(rest))} given up"


def backfill(
    context: Context,
    table: type[Table],
    entities: Sequence[type[Entity]] | None,
    forget: Sequence[str],
    pace: Pace,
) -> Steps[BackfillReport]:
    """Rewrite every item of a table that its entity would write otherwise now."""
    shapes = _shapes(table, entities)
    _check_forget(table, forget)
    judge = _Backfill(context, table, shapes, managed_attributes(table), tuple(forget))
    name = context.name_of(table)
    told = f"backfill of {name} ({', '.join(sorted(shapes))}) by design {keys_sum(table)}"
    sweep = Sweep(context, table, judge, pace, told + (f" without {', '.join(forget)}" if forget else ""))
    judge.counts |= sweep.standing.counts
    resumed = sweep.resumed
    yield from sweep.run(judge.told)
    counts = judge.counts
    return BackfillReport(
        name, counts.get("items", 0), counts.get("written", 0),
        {n.removeprefix("of "): c for n, c in sorted(counts.items()) if n.startswith("of ")},
        sweep.units, tuple(judge.left), counts.get("left", 0), resumed,
    )  # fmt: skip


def plan_migration(
    context: Context, table: type[Table], was: Older | None, exact: bool, region: str | None
) -> Steps[MigrationPlan]:
    """Return what a backfill of a table would do and cost, from a sample of its items or from all of them."""
    judge = _Backfill(context, table, _shapes(table, None), managed_attributes(table), by_entity={})
    name = context.name_of(table)
    described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    factor, read_units = 1.0, 0.0
    if exact:
        sweep = Sweep(context, table, _Looking(judge), Pace(segments=1, consistent=True), "a plan")
        yield from sweep.run(judge.told)
        read_units = sweep.read_units
    else:
        factor, read_units = yield from _sampled(context, name, judge, described.get("ItemCount", 0))
    seen = judge.counts.get("items", 0)
    older, now = (None, None) if was is None else (_table_design(was, table), design_of(table).tables[0])
    tallies = judge.by_entity or {}
    plans = tuple(
        EntityPlan(
            tag, _times(each.items, factor), _times(each.rewritten, factor), each.units * factor,
            {reason: _times(number, factor) for reason, number in sorted(each.reasons.items())},
        )
        for tag, each in sorted(tallies.items())
    )  # fmt: skip
    writes, reads = sum(plan.write_units for plan in plans), read_units * factor
    prices = Prices(region, chosen=True) if region else prices_in(context)
    book, instead = prices.book()
    usd = book.price("write_request_unit").of(writes) + book.price("read_request_unit").of(reads)
    provisioned = described.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
    counted = {
        kind: _times(judge.counts.get(kind, 0), factor) for kind in ("misplaced", "unreadable", "unknown")
    }
    return MigrationPlan(
        name, _times(seen, factor), factor == 1.0, seen, plans,
        () if older is None or now is None else differences(older, now),
        () if older is None or now is None else given_up(older, now),
        counted["misplaced"], counted["unreadable"], counted["unknown"],
        reads, writes, usd, f"{book.title}; {instead}" if instead else book.title, provisioned or None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Looking:
    """A judge that counts and has nothing written."""

    judge: _Backfill

    def look(self, item: Item) -> None:
        """Count an item."""
        self.judge.look(item)

    def again(self, item: Item) -> None:
        """Never asked: nothing is written."""

    def wrote(self, rewrite: Rewrite) -> None:
        """Never told: nothing is written."""

    def failed(self, rewrite: Rewrite, reason: str) -> None:
        """Never told: nothing is written."""


def _sampled(context: Context, name: str, judge: _Backfill, count: int) -> Steps[tuple[float, float]]:
    """Look at the first items of some segments; return by what to multiply, and the read units."""
    page = {
        "TableName": name, "Limit": SAMPLE_ITEMS // SAMPLE_SEGMENTS, "TotalSegments": SAMPLE_SEGMENTS,
        "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL",
    }  # fmt: skip
    units, more = 0.0, False
    for answer in (
        yield from answers([Call("Scan", {**page, "Segment": n}) for n in range(SAMPLE_SEGMENTS)])
    ):
        if isinstance(answer, TavolaError):
            raise answer
        for item in answer["Items"]:
            judge.look(item)
        units += answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        more = more or "LastEvaluatedKey" in answer
    seen = judge.counts.get("items", 0)
    return (max(count, seen) / seen if more and seen else 1.0), units


def _times(number: int, factor: float) -> int:
    return round(number * factor)


def _shapes(table: type[Table], entities: Sequence[type[Entity]] | None) -> frozenset[str]:
    if entities is None:
        return frozenset(table.entities)
    for entity in entities:
        if table.entities.get(shape_of(entity).name) is not entity:
            raise ModelError(table.__name__, f"{entity.__name__} does not live in it")
    return frozenset(shape_of(entity).name for entity in entities)


def _check_forget(table: type[Table], forget: Sequence[str]) -> None:
    settings = table.settings
    known = {settings.hash, settings.range, settings.tag, *managed_attributes(table)}
    known |= {name for entity in table.entities.values() for name in shape_of(entity).by_attribute}
    for name in forget:
        if name in known:
            raise ModelError(table.__name__, f"{name!r} is in the design and cannot be forgotten")


def _table_design(was: Older, table: type[Table]) -> TableDesign:
    if isinstance(was, type):
        return design_of(was).tables[0]
    found = read_document(was)
    for each in found.tables:
        if each.name == table.settings.name:
            return each
    known = ", ".join(each.name for each in found.tables)
    raise ModelError(table.__name__, f"the older design has no table {table.settings.name!r}; it has {known}")
