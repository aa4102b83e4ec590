"""Migrations: rewrite stored items so that they match the current design.

A plan says what must be rewritten, how much of it and at what cost, before anything is written. A backfill makes the rewrites
while the application runs: rate-limited, resumable, each write conditional on its item being as it was read. Running it twice
changes nothing the second time. Items whose primary key would change are reported and left, because an item cannot move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tavola.client.context import Context
from tavola.client.differences import differences, removed_attributes
from tavola.client.effects import Call, Program, responses_to
from tavola.client.explain.dry_run import PriceSource, prices_in
from tavola.client.explain.estimates import KnownItems, estimate
from tavola.client.guard_checks import (
    GuardedRewrite,
    StoredGuards,
    add_guards,
    duplicate_message,
    guards_before_and_after,
)
from tavola.client.marshalling import identify_entity
from tavola.client.reports import BackfillReport, EntityPlan, MigrationPlan, Unreadable
from tavola.client.requests import is_expired, table_key
from tavola.client.rewrites import (
    ItemForm,
    Rewrite,
    form_of,
    managed_attributes,
    whole_rewrite,
    without_attributes,
)
from tavola.client.sweeps import CONTENDED, REPORTED_MAX, ItemInspector, Repair, Sweep, SweepOptions
from tavola.client.unique_guards import UniqueValueGuard
from tavola.client.verification import design_digest, key_problems
from tavola.errors import TavolaError
from tavola.model import UNIQUE_ATTRIBUTE, Entity, EntityShape, ModelError, Table, require_table, shape_of
from tavola.model.document import TableDesign, design_of, read_document
from tavola.values import Item

SAMPLE_ITEMS = 2000
SAMPLE_SEGMENTS = 8
PLANNED_GUARDS_MAX = (
    1_000_000  # beyond these, a plan does not notice that two items without guards share a value
)
MISPLACED = "its primary key would change, and an item cannot be moved"

LEFT_KINDS = ("misplaced", "unreadable", "unknown", "taken")

FormerDesign = Mapping[str, Any] | type[Table]  # a design document as JSON data, or the former class


@dataclass(slots=True)
class _EntityTally:
    """What a backfill would do to the items of one entity."""

    items: int = 0
    rewritten: int = 0
    units: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, repair: Rewrite | GuardedRewrite, context: Context) -> None:
        """Count an item that would be rewritten, with the write units of its table and indexes."""
        self.rewritten += 1
        form = repair.form
        table = form.shape.home
        call = repair.call(context)
        known = KnownItems(tables={context.name_of(table): table}, current=(form.stored,))
        cost = estimate(call.operation, call.request, known)
        assert cost is not None
        self.units += cost.total.writes
        rewrite = repair.rewrite if isinstance(repair, GuardedRewrite) else repair
        reasons = [] if rewrite is None else list(_reasons(rewrite))
        if isinstance(repair, GuardedRewrite):
            reasons += [f"no guard for the unique {guard.field}" for guard in repair.claims]
        for reason in reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


@dataclass(slots=True)
class _Backfill(ItemInspector):
    """The rules of a backfill, and of its plan."""

    entities: frozenset[str] = frozenset()  # the names of entities that are rewritten
    forget: tuple[str, ...] = ()
    left: list[Unreadable] = field(default_factory=list)
    tallies: dict[str, _EntityTally] | None = None  # for a plan
    planned_guards: set[str] = field(default_factory=set)  # for a plan: guards that would be claimed
    managed: frozenset[str] = field(init=False)
    stored_guards: StoredGuards = field(init=False)

    def __post_init__(self) -> None:
        self.managed = managed_attributes(self.table)
        self.stored_guards = StoredGuards(self.context, self.table)

    def load_guards(self, items: Sequence[Item]) -> Program[None]:
        if not self.stored_guards.has_uniques:
            return
        guards: list[UniqueValueGuard] = []
        for item in items:
            shape = self._shape(item)
            if shape is None or not shape.uniques or shape.name not in self.entities:
                continue
            try:
                form = self._form(shape, item)
            except TavolaError:
                continue  # `inspect` reports it
            for guards_by_key in guards_before_and_after(form, whole_rewrite(form)):
                guards += guards_by_key.values()
        yield from self.stored_guards.load(guards)

    def inspect(self, item: Item) -> Repair | None:
        self.count("items")
        return self._inspect(item, self._leave, self.stored_guards)

    def inspect_again(self, item: Item) -> Repair | None:
        return self._inspect(item, lambda kind, key, entity, reason: None, None)

    def report_written(self, repair: Repair) -> None:
        self.count("written")
        self.count(f"of {repair.entity}")
        if isinstance(repair, GuardedRewrite):
            self.count("guarded", len(repair.claims))

    def report_failed(self, repair: Repair, reason: str) -> None:
        self._leave("refused", repair.key, repair.entity, reason)

    def report_contended(self, repair: Repair) -> None:
        self._leave("overtaken", repair.key, repair.entity, CONTENDED)

    def _shape(self, item: Item) -> EntityShape | None:
        """Return the shape of an item, None if it is a guard, has expired, or is of no entity in the design."""
        if UNIQUE_ATTRIBUTE in item or is_expired(self.table, item, self.context.clock.now()):
            return None
        entity = identify_entity(self.table, item)
        return None if entity is None else shape_of(entity)

    def _form(self, shape: EntityShape, item: Item) -> ItemForm:
        form = form_of(shape, item, self.context, self.managed, settled=True)
        return without_attributes(form, self.forget) if self.forget else form

    def _inspect(
        self,
        item: Item,
        leave: Callable[[str, Item, str | None, str], None],
        stored_guards: StoredGuards | None,
    ) -> Repair | None:
        if UNIQUE_ATTRIBUTE in item or is_expired(self.table, item, self.context.clock.now()):
            return None
        shape, key = self._shape(item), table_key(self.table, item)
        if shape is None:
            leave("unknown", key, None, "")
            return None
        tally = None if self.tallies is None else self.tallies.setdefault(shape.name, _EntityTally())
        if tally is not None:
            tally.items += 1
        if shape.name not in self.entities:
            return None
        try:
            form = self._form(shape, item)
            if form.misplaced:
                leave("misplaced", key, shape.name, MISPLACED)
                return None
            repair, duplicates = add_guards(form, whole_rewrite(form), stored_guards)
        except TavolaError as error:
            leave("unreadable", key, shape.name, str(error))
            return None
        if duplicates:
            reason = "; ".join(duplicate_message(guard, owner) for guard, owner in duplicates)
            leave("taken", key, shape.name, reason)
        if tally is not None and repair is not None:
            if self._plan_guards(repair):
                tally.add(repair, self.context)
            else:
                leave("taken", key, shape.name, "another item without a guard has the same unique value")
        return repair

    def _plan_guards(self, repair: Repair) -> bool:
        """Record the guards that a plan would claim; return False if one of them is claimed already."""
        texts = {guard.text for guard in repair.claims} if isinstance(repair, GuardedRewrite) else set()
        if texts & self.planned_guards:
            return False
        if len(self.planned_guards) < PLANNED_GUARDS_MAX:
            self.planned_guards |= texts
        return True

    def _leave(self, kind: str, key: Item, entity: str | None, reason: str) -> None:
        self.count(kind)
        if entity is not None:
            self.count("left")
            if len(self.left) < REPORTED_MAX:
                self.left.append(Unreadable(key, entity, reason))


def _reasons(rewrite: Rewrite) -> Iterable[str]:
    form, shape = rewrite.form, rewrite.form.shape
    if form.upgraded:
        yield f"an older schema than version {shape.version}"
    keys: set[str] = set()
    for problem in key_problems(form):
        yield f"a {problem.kind} key in {problem.index}"
        keys |= problem.stored.keys() | problem.right.keys()
    tag = shape.home.settings.tag
    if tag is not None and tag in rewrite.attributes:
        yield f"no entity name in {tag}"
    if not form.upgraded:
        fields = rewrite.attributes & shape.by_attribute.keys()
        if fields:
            yield f"{', '.join(sorted(fields))} would be stored differently"
        rest = rewrite.attributes - fields - keys - {tag}
        if rest:
            yield f"{', '.join(sorted(rest))} no longer in the design"


def backfill(
    context: Context,
    table: type[Table],
    entities: Sequence[type[Entity]] | None,
    forget: Sequence[str],
    options: SweepOptions,
) -> Program[BackfillReport]:
    """Rewrite every item of a table that its entity would store differently now."""
    names = _entity_names(table, entities)
    _check_forget(table, forget)
    inspector = _Backfill(context, table, entities=names, forget=tuple(forget))
    name = context.name_of(table)
    work = f"backfill of {name} ({', '.join(sorted(names))}) by design {design_digest(table)}"
    sweep = Sweep(inspector, options, work + (f" without {', '.join(forget)}" if forget else ""))
    counts = inspector.counts
    counts |= sweep.position.counts
    yield from sweep.run()
    return BackfillReport(
        name, counts.get("items", 0), counts.get("written", 0),
        {n.removeprefix("of "): c for n, c in sorted(counts.items()) if n.startswith("of ")},
        sweep.units, tuple(inspector.left), counts.get("left", 0), sweep.resumed, counts.get("guarded", 0),
    )  # fmt: skip


def plan_migration(
    context: Context, table: type[Table], was: FormerDesign | None, exact: bool, region: str | None
) -> Program[MigrationPlan]:
    """Return what a backfill of a table would do and cost, from a sample of its items or from all of them."""
    inspector = _Backfill(context, table, entities=_entity_names(table, None), tallies={})
    name = context.name_of(table)
    described = (yield Call("DescribeTable", {"TableName": name}))["Table"]
    factor, is_complete, total_known = 1.0, True, True
    if exact:
        sweep = Sweep(inspector, SweepOptions(consistent=True), "a plan", dry_run=True)
        yield from sweep.run()
        read_units = sweep.read_units
    else:
        read_units, is_complete = yield from _inspect_sample(name, inspector)
    seen = inspector.counts.get("items", 0)
    if not is_complete:
        # DynamoDB updates ItemCount about every six hours: a number below what was seen is out of date.
        total_known = described.get("ItemCount", 0) > seen
        factor = described["ItemCount"] / seen if total_known and seen else 1.0
    before, now = (None, None) if was is None else (_table_design(was, table), design_of(table).tables[0])
    plans = tuple(
        EntityPlan(
            tag, _scale(tally.items, factor), _scale(tally.rewritten, factor), tally.units * factor,
            {reason: _scale(number, factor) for reason, number in sorted(tally.reasons.items())},
        )
        for tag, tally in sorted((inspector.tallies or {}).items())
    )  # fmt: skip
    writes, reads = sum(plan.write_units for plan in plans), read_units * factor
    prices = PriceSource(region, chosen=True) if region else prices_in(context)
    book, substitute = prices.book()
    usd = book.price("write_request_unit").of(writes) + book.price("read_request_unit").of(reads)
    provisioned = described.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
    numbers = {kind: _scale(inspector.counts.get(kind, 0), factor) for kind in LEFT_KINDS}
    return MigrationPlan(
        name, _scale(seen, factor), is_complete, seen, plans,
        () if before is None or now is None else differences(before, now),
        () if before is None or now is None else removed_attributes(before, now),
        numbers["misplaced"], numbers["unreadable"], numbers["unknown"],
        reads, writes, usd, f"{book.title}; {substitute}" if substitute else book.title, provisioned or None,
        numbers["taken"], total_known,
    )  # fmt: skip


def _inspect_sample(name: str, inspector: _Backfill) -> Program[tuple[float, bool]]:
    """Inspect the first items of some segments; return the read units, and whether these were all items."""
    page = {
        "TableName": name, "Limit": SAMPLE_ITEMS // SAMPLE_SEGMENTS, "TotalSegments": SAMPLE_SEGMENTS,
        "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL",
    }  # fmt: skip
    units, is_complete = 0.0, True
    calls = [Call("Scan", {**page, "Segment": number}) for number in range(SAMPLE_SEGMENTS)]
    for response in (yield from responses_to(calls)):
        yield from inspector.load_guards(response["Items"])
        for item in response["Items"]:
            inspector.inspect(item)
        units += response.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        is_complete = is_complete and "LastEvaluatedKey" not in response
    return units, is_complete


def _scale(number: int, factor: float) -> int:
    return round(number * factor)


def _entity_names(table: type[Table], entities: Sequence[type[Entity]] | None) -> frozenset[str]:
    table = require_table(table)
    if entities is None:
        return frozenset(table.entities)
    for entity in entities:
        if table.entities.get(shape_of(entity).name) is not entity:
            raise ModelError(table.__name__, f"{entity.__name__} is not stored in this table")
    return frozenset(shape_of(entity).name for entity in entities)


def _check_forget(table: type[Table], forget: Sequence[str]) -> None:
    settings = table.settings
    known = {*settings.key_names, settings.tag, *managed_attributes(table)}
    known |= {name for entity in table.entities.values() for name in shape_of(entity).by_attribute}
    for name in forget:
        if name in known:
            raise ModelError(
                table.__name__, f"{name!r} is part of the design, so it cannot be removed with forget="
            )


def _table_design(was: FormerDesign, table: type[Table]) -> TableDesign:
    if isinstance(was, type):
        return design_of(was).tables[0]
    design = read_document(was)
    for candidate in design.tables:
        if candidate.name == table.settings.name:
            return candidate
    known = ", ".join(table.name for table in design.tables)
    raise ModelError(
        table.__name__, f"the previous design has no table {table.settings.name!r}; it has {known}"
    )
