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
from tavola.client.effects import Call, Program
from tavola.client.expiry import expired
from tavola.client.explain.estimates import Known, estimate
from tavola.client.explain.walk import Prices, prices_in
from tavola.client.guarding import Guarded, StandingGuards, around, guarded, taken
from tavola.client.marshalling import recognised
from tavola.client.reports import BackfillReport, EntityPlan, MigrationPlan, Unreadable
from tavola.client.requests import table_key
from tavola.client.rewrites import Form, Rewrite, dropped, form_of, managed_attributes, whole_rewrite
from tavola.client.staleness import FOUND_MAX, faults_of, keys_sum
from tavola.client.sweeps import OVERTAKEN, Mending, Pace, Sweep
from tavola.client.uniques import Guard
from tavola.errors import TavolaError
from tavola.model import UNIQUE_ATTRIBUTE, Entity, ModelError, Shape, Table, require_table, shape_of
from tavola.model.document import TableDesign, design_of, read_document
from tavola.values import Item

SAMPLE_ITEMS = 2000
SAMPLE_SEGMENTS = 8
PROMISED_MAX = 1_000_000  # beyond these a plan does not see that two items without guards have one value
MISPLACED = "its key in the table would be another, and an item cannot be moved"

KINDS = ("misplaced", "unreadable", "unknown", "taken")

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
    promised: set[str] = field(default_factory=set)  # for a plan: guards that would be made
    standing: StandingGuards = field(init=False)

    def __post_init__(self) -> None:
        self.standing = StandingGuards(self.context, self.table)

    def learn(self, items: Sequence[Item]) -> Program[None]:
        """Read the guards that the items of a round have, or should have."""
        if not self.standing.watches:
            return
        guards: list[Guard] = []
        for item in items:
            shape = self._shape(item)
            if shape is None or not shape.uniques or shape.name not in self.shapes:
                continue
            try:
                form = self._form(shape, item)
            except TavolaError:
                continue  # `look` tells
            guards += (guard for each in around(form, whole_rewrite(form)) for guard in each.values())
        yield from self.standing.learn(guards)

    def look(self, item: Item) -> Mending | None:
        """Return how an item is put right, None if it is as it should be."""
        self._count("items")
        return self._judged(item, self._leave, self.standing)

    def again(self, item: Item) -> Mending | None:
        """Return the same for one that has changed since."""
        return self._judged(item, lambda kind, item, shape, reason: None, None)

    def wrote(self, mending: Mending) -> None:
        """Count an item that was rewritten, or whose values were guarded."""
        self._count("written")
        self._count(f"of {mending.entity}")
        if isinstance(mending, Guarded):
            self._count("guarded", len(mending.claims))

    def failed(self, mending: Mending, reason: str) -> None:
        """Note an item that DynamoDB does not take, or of which a value is another's."""
        self._leave("refused", mending.key, mending.entity, reason)

    def overtaken(self, mending: Mending) -> None:
        """Note an item that others write all the time."""
        self._leave("overtaken", mending.key, mending.entity, OVERTAKEN)

    def told(self) -> dict[str, int]:
        """Return all counts, for a checkpoint."""
        return {"items": 0, "written": 0, **self.counts}

    def _shape(self, item: Item) -> Shape | None:
        """Return what an item is, None if it is nothing that is rewritten."""
        if UNIQUE_ATTRIBUTE in item or expired(self.table, item, self.context.clock.now()):
            return None
        kind = recognised(self.table, item)
        return None if kind is None else shape_of(kind)

    def _form(self, shape: Shape, item: Item) -> Form:
        form = form_of(shape, item, self.context, self.managed, settled=True)
        return dropped(form, self.forget) if self.forget else form

    def _judged(self, item: Item, leave: Any, standing: StandingGuards | None) -> Mending | None:
        if UNIQUE_ATTRIBUTE in item or expired(self.table, item, self.context.clock.now()):
            return None
        shape, key = self._shape(item), table_key(self.table, item)
        if shape is None:
            leave("unknown", key, None, "")
            return None
        tally = None if self.by_entity is None else self.by_entity.setdefault(shape.name, _Tally())
        if tally is not None:
            tally.items += 1
        if shape.name not in self.shapes:
            return None
        try:
            form = self._form(shape, item)
            if form.misplaced:
                leave("misplaced", key, shape.name, MISPLACED)
                return None
            mending, others = guarded(form, whole_rewrite(form), standing)
        except TavolaError as error:
            leave("unreadable", key, shape.name, str(error))
            return None
        if others:
            leave("taken", key, shape.name, "; ".join(taken(guard, owner) for guard, owner in others))
        if tally is not None and mending is not None:
            if self._promised(mending):
                tally.add(mending, self.context)
            else:
                leave("taken", key, shape.name, "another item that has no guard has its value too")
        return mending

    def _promised(self, mending: Mending) -> bool:
        """Note in a plan which values would be claimed; return whether none of them would be claimed twice."""
        texts = {guard.text for guard in mending.claims} if isinstance(mending, Guarded) else set()
        if texts & self.promised:
            return False
        if len(self.promised) < PROMISED_MAX:
            self.promised |= texts
        return True

    def _leave(self, kind: str, key: Item, entity: str | None, reason: str) -> None:
        self._count(kind)
        if entity is not None:
            self._count("left")
            if len(self.left) < FOUND_MAX:
                self.left.append(Unreadable(key, entity, reason))

    def _count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + number


@dataclass(slots=True)
class _Tally:
    """What one entity's items would undergo."""

    items: int = 0
    rewritten: int = 0
    units: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, mending: Rewrite | Guarded, context: Context) -> None:
        """Count an item that would be rewritten, with the units on its table and indexes."""
        self.rewritten += 1
        form = mending.form
        table = form.shape.home
        call = mending.call(context)
        known = Known(tables={context.name_of(table): table}, standing=(form.stored,))
        found = estimate(call.operation, call.request, known)
        assert found is not None
        self.units += found.total.writes
        rewrite = mending.rewrite if isinstance(mending, Guarded) else mending
        for reason in () if rewrite is None else _reasons(rewrite):
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        for guard in mending.claims if isinstance(mending, Guarded) else ():
            reason = f"no guard that keeps {guard.field} unique"
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
) -> Program[BackfillReport]:
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
        sweep.units, tuple(judge.left), counts.get("left", 0), resumed, counts.get("guarded", 0),
    )  # fmt: skip


def plan_migration(
    context: Context, table: type[Table], was: Older | None, exact: bool, region: str | None
) -> Program[MigrationPlan]:
    """Return what a backfill of a table would do and cost, from a sample of its items or from all of them."""
    judge = _Backfill(context, table, _shapes(table, None), managed_attributes(table), by_entity={})
    name = context.name_of(table)
    described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    factor, read_units, whole, counted = 1.0, 0.0, True, True
    if exact:
        sweep = Sweep(context, table, _Looking(judge), Pace(segments=1, consistent=True), "a plan")
        yield from sweep.run(judge.told)
        read_units = sweep.read_units
    else:
        read_units, whole = yield from _sampled(name, judge)
    seen = judge.counts.get("items", 0)
    if not whole:
        # DynamoDB counts the items about every six hours: a number that is no larger than what was seen says nothing.
        counted = described.get("ItemCount", 0) > seen
        factor = described["ItemCount"] / seen if counted and seen else 1.0
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
    numbers = {kind: _times(judge.counts.get(kind, 0), factor) for kind in KINDS}
    return MigrationPlan(
        name, _times(seen, factor), whole, seen, plans,
        () if older is None or now is None else differences(older, now),
        () if older is None or now is None else given_up(older, now),
        numbers["misplaced"], numbers["unreadable"], numbers["unknown"],
        reads, writes, usd, f"{book.title}; {instead}" if instead else book.title, provisioned or None,
        numbers["taken"], counted,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Looking:
    """A judge that counts and has nothing written."""

    judge: _Backfill

    def learn(self, items: Sequence[Item]) -> Program[None]:
        """Read what must be known of the items."""
        return self.judge.learn(items)

    def look(self, item: Item) -> None:
        """Count an item."""
        self.judge.look(item)

    def again(self, item: Item) -> None:
        """Never asked: nothing is written."""

    def wrote(self, mending: Mending) -> None:
        """Never told: nothing is written."""

    def failed(self, mending: Mending, reason: str) -> None:
        """Never told: nothing is written."""

    def overtaken(self, mending: Mending) -> None:
        """Never told: nothing is written."""


def _sampled(name: str, judge: _Backfill) -> Program[tuple[float, bool]]:
    """Look at the first items of some segments; return the read units, and whether that was all there is."""
    page = {
        "TableName": name, "Limit": SAMPLE_ITEMS // SAMPLE_SEGMENTS, "TotalSegments": SAMPLE_SEGMENTS,
        "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL",
    }  # fmt: skip
    units, whole = 0.0, True
    for answer in (
        yield from answers([Call("Scan", {**page, "Segment": n}) for n in range(SAMPLE_SEGMENTS)])
    ):
        if isinstance(answer, TavolaError):
            raise answer
        yield from judge.learn(answer["Items"])
        for item in answer["Items"]:
            judge.look(item)
        units += answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        whole = whole and "LastEvaluatedKey" not in answer
    return units, whole


def _times(number: int, factor: float) -> int:
    return round(number * factor)


def _shapes(table: type[Table], entities: Sequence[type[Entity]] | None) -> frozenset[str]:
    table = require_table(table)
    if entities is None:
        return frozenset(table.entities)
    for entity in entities:
        if table.entities.get(shape_of(entity).name) is not entity:
            raise ModelError(table.__name__, f"{entity.__name__} does not live in it")
    return frozenset(shape_of(entity).name for entity in entities)


def _check_forget(table: type[Table], forget: Sequence[str]) -> None:
    settings = table.settings
    known = {*settings.key_names, settings.tag, *managed_attributes(table)}
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
