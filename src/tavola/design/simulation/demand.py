"""Build the workload of a design from its access patterns.

A read falls on the partition it queries; a write on its table and on every global index whose entry it changes. The writes of a
transaction pass or fail together. What a design does not declare is taken from the scenario and reported as an assumption.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from tavola.design.cost.capacity import (
    RequestUnits,
    changed_fields,
    collection_units,
    index_effects,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.design.errors import SimulationError
from tavola.design.simulation.keyspace import Spread
from tavola.design.simulation.layout import FlowUnits
from tavola.design.simulation.partitions import partitions_for
from tavola.design.simulation.populations import ONE_VALUE, Populations, names_one_item, spread_of_writes
from tavola.design.simulation.rates import DailyRates, Rhythm
from tavola.design.simulation.scenario import Scenario
from tavola.design.simulation.workload import (
    Arm,
    Draw,
    RequestFlow,
    RequestRates,
    Station,
    StationCapacity,
    Workload,
)
from tavola.design.text import list_first
from tavola.limits import (
    ON_DEMAND_WARM_READS_PER_S,
    ON_DEMAND_WARM_WRITES_PER_S,
    PAGE_BYTES_MAX,
    READ_UNIT_BYTES,
)
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    KeyDesign,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
)
from tavola.model.sizes import stored_entry_bytes, stored_item_bytes

_TARGET = 0.7  # utilisation at the peak of provisioned units that are not declared
_PAGE_UNITS = PAGE_BYTES_MAX / READ_UNIT_BYTES / 2  # read units of an eventually consistent page
_NAMES_MAX = 8  # patterns named in one sentence


@dataclass(frozen=True, slots=True)
class _RatedFlow:
    flow: RequestFlow
    rhythm: Rhythm
    together: str = ""


class _Builder:
    def __init__(self, design: Design, scenario: Scenario) -> None:
        self.design = design
        self.scenario = scenario
        self.keys = Populations(scenario)
        self.stations = station_numbers(design)
        self.unrated: list[str] = []
        self.zero: list[str] = []

    def station(self, table: str, index: str | None) -> int:
        """Return the number of a table or index; a local index has its table's."""
        return self.stations.get((table, index), self.stations[table, None])

    def rated_flows(self) -> Iterator[_RatedFlow]:
        for table in self.design.tables:
            for entity in table.entities:
                for pattern in entity.all_patterns:
                    yield from self._read(table, entity, pattern)
                for write in entity.writes:
                    yield from self._write(table, entity, write)
            for collection in table.collections:
                rhythm = self._rhythm(collection.name, collection.access)
                if rhythm is not None:
                    keys = self.keys.of_collection(table, collection)
                    for units in collection_units(table, collection):
                        fan = _requests_for(units.read, 1.0)
                        arm = self._arm(replace(units, read=units.read / fan), "point")
                        draw = Draw(keys, self._skew(collection.access), (arm,))
                        title = collection.name if collection.access is None else collection.access.title
                        flow = RequestFlow(collection.name, title, (draw,), fan=fan)
                        yield _RatedFlow(flow, Rhythm(rhythm.mean * fan, rhythm.peak * fan))
        for need in self.design.needs:
            yield from self._need(need)

    def _read(self, table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> Iterator[_RatedFlow]:
        name = f"{entity.name}.{pattern.name}"
        access = pattern.access
        if pattern is entity.primary and access is None:
            return  # without an access pattern, the key is not read by itself
        rhythm = self._rhythm(name, access)
        if rhythm is None:
            return
        assert access is not None, "a rate comes from an access pattern"
        for number, units in enumerate(pattern_units(table, entity, pattern)):
            hydrating = number > 0 and units.index is None
            key = entity.key if hydrating else entity.key_on(units.index)
            if key is None:
                continue
            keys = self.keys.of_key(table, entity, key)
            single = pattern is entity.primary or hydrating
            spread: Spread = "any" if single and not names_one_item(key) else "point"
            fan = 1.0
            if hydrating:
                fan = float(max(1, access.items or 1))
            elif not single:
                fan = _requests_for(units.read, float(self.keys.key_sets[keys].shards))
            query_units = replace(units, read=units.read / fan)
            draw = Draw(keys, self._skew(access), (self._arm(query_units, spread),))
            flow = RequestFlow(name, access.title, (draw,), fan=fan)
            yield _RatedFlow(flow, Rhythm(rhythm.mean * fan, rhythm.peak * fan))

    def _write(self, table: TableDesign, entity: EntityDesign, write: WritePattern) -> Iterator[_RatedFlow]:
        name = f"{entity.name}: {write.title}"
        rhythm = self._rhythm(name, write)
        if rhythm is None or entity.key is None:
            return
        new = write.kind == "put" and not changed_fields(entity, write)
        table_units, *_ = write_pattern_units(table, entity, write)
        count = float(write.items)
        keys = self.keys.of_key(table, entity, entity.key)
        new_partition = new and names_one_item(entity.key)  # every new item has its own partition
        skew = 0.0 if new_partition else self._skew(write)
        spread = spread_of_writes(entity, entity.key, new=new)
        local = 0.0
        draws: list[Draw] = []
        for effect in index_effects(table, entity, write):
            key = entity.key_on(effect.index)
            if not effect.units or key is None:
                continue
            if table.index(effect.index).local:
                local += effect.units
                continue
            draws += self._index_draws(
                table, entity, key, write, effect.units, keys, skew, new=new, moved=effect.kind == "moved"
            )
        arm = Arm(self.station(table.name, None), "write", table_units.write / count + local, spread)
        merged = _merge_draws([Draw(keys, skew, (arm,)), *draws])
        first: tuple[Draw, ...] = ()
        if table_units.read:  # some writes read their item first
            read_spread: Spread = "point" if names_one_item(entity.key) else "any"
            first = (Draw(keys, skew, (Arm(arm.station, "read", table_units.read / count, read_spread),)),)
        if write.together:  # a transaction is one request
            yield _RatedFlow(
                RequestFlow(name, write.title, (*first, *merged) * write.items), rhythm, write.together
            )
            return
        for part in (merged, first):
            if part:
                flow = RequestFlow(name, write.title, part, fan=count)
                yield _RatedFlow(flow, Rhythm(rhythm.mean * count, rhythm.peak * count))

    def _index_draws(
        self,
        table: TableDesign,
        entity: EntityDesign,
        key: KeyDesign,
        write: WritePattern,
        units: float,
        table_keys: int,
        skew: float,
        *,
        new: bool,
        moved: bool,
    ) -> list[Draw]:
        """Return the draws of a write in an index: one key, or two where the entry moves from one key to another."""
        station = self.station(table.name, key.index)
        assert entity.key is not None, "a view is not written"
        names = [name for source in key.hash for name in source.fields]
        same_partition = names and names == [name for source in entity.key.hash for name in source.fields]
        keys = (
            table_keys
            if same_partition and key.shards == entity.key.shards
            else self.keys.of_key(table, entity, key)
        )
        if not same_partition:
            declared_skews = [
                pattern.access.skew
                for pattern in entity.patterns
                if pattern.index == key.index
                and pattern.access is not None
                and pattern.access.skew is not None
            ]
            skew = declared_skews[0] if declared_skews else self._skew(write)
            if new and write.skew is None and self.keys.share_first_value(entity, names):
                skew = ONE_VALUE
        spread = spread_of_writes(entity, key, new=new)
        if moved and set(names) & set(write.changes):
            return [Draw(keys, skew, (Arm(station, "write", units / 2, spread),))] * 2
        return [Draw(keys, skew, (Arm(station, "write", units, spread),))]

    def _need(self, need: Need) -> Iterator[_RatedFlow]:
        if need.route is None:
            return
        rhythm = self._rhythm(need.name, need.access)
        if rhythm is None:
            return
        for units in need_units(self.design, need):
            table = next(table for table in self.design.tables if table.name == units.table)
            if need.route.operation == "scan":
                keys, skew, spread = self.keys.of_scan(table), 0.0, "any"
            else:
                keyed = [
                    (entity, key)
                    for entity in table.entities
                    if entity.name in need.entities and (key := entity.key_on(units.index)) is not None
                ]
                if not keyed:
                    continue
                keys, skew, spread = self.keys.of_key(table, *keyed[0]), self._skew(need.access), "point"
            fan = _requests_for(units.read, float(max(1, need.route.queries)))
            arm = self._arm(replace(units, read=units.read / fan), "any" if spread == "any" else "point")
            flow = RequestFlow(need.name, need.title, (Draw(keys, skew, (arm,)),), fan=fan)
            yield _RatedFlow(flow, Rhythm(rhythm.mean * fan, rhythm.peak * fan))

    def _arm(self, units: RequestUnits, spread: Spread) -> Arm:
        return Arm(self.station(units.table, units.index), "read", units.read, spread)

    def _skew(self, pattern: AccessPattern | WritePattern | None) -> float:
        return self.scenario.skew if pattern is None or pattern.skew is None else pattern.skew

    def _rhythm(self, name: str, pattern: AccessPattern | WritePattern | None) -> Rhythm | None:
        """Return the mean and peak rate of a pattern, or None if it declares no rate or 0."""
        if pattern is None or (pattern.per_second is None and pattern.peak_per_second is None):
            self.unrated.append(name)
            return None
        scenario = self.scenario
        mean, peak = pattern.per_second, pattern.peak_per_second
        if mean is None:
            assert peak is not None, "one of the two is declared"
            mean = peak / scenario.peak
        if mean <= 0:
            self.zero.append(name)
            return None
        if peak is None:
            self.keys.assumptions[
                f"Peak traffic is {scenario.peak:g} times the average if no peak is declared"
            ] = None
            peak = mean * scenario.peak
        if pattern.skew is None:
            self.keys.assumptions[
                f"Key popularity follows a Zipf distribution with exponent {scenario.skew:g} if no skew is declared"
            ] = None
        return Rhythm(mean * scenario.rate_factor, max(mean, peak) * scenario.rate_factor)


def build_workload(design: Design, scenario: Scenario) -> Workload:
    """Return the traffic of a design's access patterns; refuse a design without rates."""
    if not design.tables:
        raise SimulationError("the design has no table; declare one, with access patterns and their rates")
    builder = _Builder(design, scenario)
    rated_flows = _merge_transactions(list(builder.rated_flows()))
    if not rated_flows:
        raise SimulationError(_explain_no_rates(builder))
    rates = DailyRates(
        tuple(rated_flow.rhythm for rated_flow in rated_flows),
        scenario.seconds,
        scenario.seed,
        begins_at_s=scenario.begins_at_s,
        peak_at_s=scenario.peak_hour * 3600,
        bursts=scenario.bursts,
    )
    flows = tuple(rated_flow.flow for rated_flow in rated_flows)
    return Workload(
        plan_stations(design, scenario, flows, rates),
        tuple(builder.keys.key_sets),
        flows,
        rates,
        assumptions=builder.keys.describe_assumptions(),
        without_rates=tuple(builder.unrated),
        zero_rates=tuple(builder.zero),
        begins_at_s=scenario.begins_at_s,
    )


def station_numbers(design: Design) -> dict[tuple[str, str | None], int]:
    """Return the number of each table and global index, in the design's order."""
    places = [
        (table.name, index)
        for table in design.tables
        for index in (None, *(index.name for index in table.indexes if not index.local))
    ]
    return {place: number for number, place in enumerate(places)}


def plan_stations(
    design: Design, scenario: Scenario, flows: tuple[RequestFlow, ...], rates: RequestRates
) -> tuple[Station, ...]:
    """Return the tables and global indexes of a design with their capacity under this traffic."""
    places = station_numbers(design)
    uncapped = tuple(Station(table, index, StationCapacity(1, 1, on_demand=True)) for table, index in places)
    peak_units = rates.peaks() @ FlowUnits.of(Workload(uncapped, (), flows, rates)).whole_units
    units_by_station = iter(peak_units.reshape(-1, 2))
    stations: list[Station] = []
    for table in design.tables:
        for index in (None, *(index for index in table.indexes if not index.local)):
            reads, writes = (float(amount) for amount in next(units_by_station))
            stored = sum(
                (entity.items or 0)
                * (
                    stored_item_bytes(table, entity)
                    if index is None
                    else stored_entry_bytes(table, entity, index)
                )
                for entity in table.entities
                if index is None or entity.key_on(index.name) is not None
            )
            stations.append(
                Station(
                    table.name,
                    None if index is None else index.name,
                    _plan_capacity(table, scenario, reads, writes, stored),
                    whole_collections=index is None and any(index.local for index in table.indexes),
                )
            )
    return tuple(stations)


def _plan_capacity(
    table: TableDesign, scenario: Scenario, reads: float, writes: float, stored: float
) -> StationCapacity:
    settings = table.settings
    declared = settings.read_units is not None and settings.write_units is not None
    mode = scenario.mode if scenario.mode != "declared" else ("provisioned" if declared else "on-demand")
    if mode == "on-demand":
        count = partitions_for(ON_DEMAND_WARM_READS_PER_S, ON_DEMAND_WARM_WRITES_PER_S, stored)
        return StationCapacity(scenario.quota, scenario.quota, on_demand=True, partitions=count)
    own_reads = scenario.read_units or settings.read_units or max(1, ceil(reads / _TARGET))
    own_writes = scenario.write_units or settings.write_units or max(1, ceil(writes / _TARGET))
    scaling = settings.scaling
    count = partitions_for(own_reads, own_writes, stored)
    fixed = StationCapacity(own_reads, own_writes, on_demand=False, partitions=count)
    if scaling is None or scenario.read_units or scenario.write_units:
        return fixed
    return replace(
        fixed,
        reads_max=scaling.read_max,
        writes_max=scaling.write_max,
        reads_min=scaling.read_min,
        writes_min=scaling.write_min,
        target=scaling.target / 100,
    )


def _requests_for(units: float, requests: float) -> float:
    """Return how many requests it takes to read these units: a page ends after 1 MB."""
    return requests * max(1, ceil(units / requests / _PAGE_UNITS))


def _merge_draws(draws: list[Draw]) -> tuple[Draw, ...]:
    """Merge draws of the same key: indexes that share the partition key of their table or of each other."""
    merged: list[Draw] = []
    for draw in draws:
        stations = {arm.station for arm in draw.arms}
        for position, known in enumerate(merged):
            same = draw.keys == known.keys and draw.skew == known.skew
            if same and stations.isdisjoint(arm.station for arm in known.arms):
                merged[position] = replace(known, arms=known.arms + draw.arms)
                break
        else:
            merged.append(draw)
    return tuple(merged)


def _merge_transactions(rated: list[_RatedFlow]) -> list[_RatedFlow]:
    """Merge the writes of a transaction into one flow, since they pass or fail together."""
    flows: dict[str, _RatedFlow] = {}
    for number, rated_flow in enumerate(rated):
        transaction = rated_flow.together or f"\0{number}"
        known = flows.get(transaction)
        if known is None:
            flows[transaction] = rated_flow
            continue
        flow = replace(
            known.flow,
            pattern=f"{known.flow.pattern} + {rated_flow.flow.pattern}",
            title=rated_flow.together,
            draws=known.flow.draws + rated_flow.flow.draws,
        )
        rhythm = Rhythm(
            max(known.rhythm.mean, rated_flow.rhythm.mean), max(known.rhythm.peak, rated_flow.rhythm.peak)
        )
        flows[transaction] = _RatedFlow(flow, rhythm, rated_flow.together)
    return list(flows.values())


def _explain_no_rates(builder: _Builder) -> str:
    if builder.zero and not builder.unrated:
        return f"all rates are 0: {list_first(builder.zero, _NAMES_MAX)}; set per_second above 0 for at least one"
    if not builder.unrated:
        return "the design has no access patterns and no writes; declare them with per_second"
    zero = f" ({list_first(builder.zero, _NAMES_MAX)}: 0)" if builder.zero else ""
    return f"no access pattern has a rate; set per_second for {list_first(builder.unrated, _NAMES_MAX)}{zero}"
