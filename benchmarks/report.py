"""The report: a run's numbers as tables for people, on the terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from benchmarks.bars import Comparison, compare, cost_ratio, verdicts
from benchmarks.costs import HEADER as COST_HEADER
from benchmarks.costs import sections
from benchmarks.peers import ENGINES, TITLES
from benchmarks.results import Cell, Contender, Place, Results, cells
from benchmarks.trials import METHOD as ENTITY_METHOD
from benchmarks.trials import TITLE as ENTITY_TITLE
from benchmarks.trials import tables
from benchmarks.workload import OPERATIONS

Row = Sequence[str]

_METHOD: Final = """\
- One table, items of about 1 KB with nested attributes, two global indexes with projection ALL, 50 items per
  index partition. Each write contains a new number.
- *one attribute*: replaces an item with one changed attribute. *both index keys*: also moves it in both
  indexes. *new item*: inserts a new key; these items are deleted after each run, untimed.
  A transaction puts two items and updates a third.
- The load comes from another process over plain HTTP with SDK-like headers, prepared as text. Engines take
  turns within a round, and the order rotates; the median of the rounds counts. Every engine's responses are
  checked before the first round and after the last; a response other than 2xx during a run voids
  its rate. A run is repeated if other work took more than a quarter of a core, and the least disturbed one counts.
- If a run had fewer than 10 responses per connection, it is repeated with a load generator that waits for the last
  response, so that slow engines get credit for requests in progress; an engine that overruns three times is timed in one
  round only."""


def text_table(header: Row, rows: Sequence[Row]) -> str:
    """Columns in line, for a terminal: the first to the left, the rest to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def markdown_table(header: Row, rows: Sequence[Row]) -> str:
    """The same as Markdown."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def number(value: float | None) -> str:
    """A rate or a time with as many digits as it deserves."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rate_rows(
    results: Results, storage: str, items: int, connections: int
) -> tuple[list[str], list[list[str]]]:
    """Operations down, engines across, and at the end how many times the best peer ours is."""
    table = cells(results)
    engines = [
        engine.name
        for engine in ENGINES
        if any(
            place.stage == "peers" and place.contender == Contender(engine.name, storage, items)
            for place in table
        )
    ]
    header = ["operation", *(TITLES[name] for name in engines), "ours / best peer"]
    rows: list[list[str]] = []
    for operation in OPERATIONS:
        found = [
            table.get(Place("peers", Contender(name, storage, items), operation.name, connections))
            for name in engines
        ]
        if any(found):
            comparison = compare(table, storage, items, operation.name, connections)
            rows.append([operation.title, *map(_rate, found), _ratio(comparison)])
    return header, rows


def _rate(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return number(cell.rate) if cell.sound else f"failed ({cell.errors} errors)"


def _ratio(comparison: Comparison) -> str:
    return "–" if comparison.ratio is None else f"{comparison.ratio:.1f}×"


def summary(results: Results) -> str:
    """What a person at the terminal wants first: rates, ratios, and which bars are not met."""
    parts: list[str] = []
    for storage, items, connections in _settings(results):
        header, rows = rate_rows(results, storage, items, connections)
        title = f"{_where(storage)}, {items:,} items, {_connections(connections)} (requests/s)"
        parts.append(f"{title}\n{text_table(header, rows)}")
    scale = scale_rows(results)
    if scale:
        parts.append("Ours as the table grows\n" + text_table(_SCALE_HEADER, scale))
    parts += [f"{title}\n{text_table(COST_HEADER, rows)}" for title, rows in sections(results.costs).items()]
    parts += [f"{title}\n{text_table(*table)}" for title, table in tables(results.trials).items()]
    parts.append(_verdict_words(results))
    parts.append(f"background load: {noise_words(results)}")
    parts += [f"not measured: {line}" for line in failure_lines(results)]
    return "\n\n".join(parts) + "\n"


def _settings(results: Results) -> list[tuple[str, int, int]]:
    """Storage, items and connections of each table of rates: most connections and fewest items first."""
    seen = {
        (place.contender.storage, place.contender.items, place.connections)
        for place in cells(results)
        if place.stage == "peers"
    }
    return sorted(seen, key=lambda key: (key[1], -key[2], key[0] != "memory"))


def _where(storage: str) -> str:
    return "In memory" if storage == "memory" else "On disk"


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


_SCALE_HEADER: Final = ("operation", "small /s", "large /s", "cost", "small µs", "large µs")


def scale_rows(results: Results) -> list[list[str]]:
    """Ours on the small and the large table: rates, what the large one costs more, processor time."""
    table = cells(results)
    connections = max((place.connections for place in table if place.stage == "scale"), default=0)
    rows: list[list[str]] = []
    for storage in ("memory", "disk"):
        for operation in OPERATIONS:
            found = cost_ratio(table, storage, operation.name, connections)
            if found is not None:
                small, large, ratio = found
                numbers = [number(small.rate), number(large.rate), f"{ratio:.2f}×"]
                processor = [number(small.cpu_us), number(large.cpu_us)]
                rows.append([f"{operation.title}, {storage}", *numbers, *processor])
    return rows


def _verdict_words(results: Results) -> str:
    found = verdicts(results)
    met = sum(verdict.met is True for verdict in found)
    judged = sum(verdict.met is not None for verdict in found)
    lines = [f"{met} of {judged} targets met."]
    lines += [
        f"falls short: {verdict.subject}: {verdict.measured}, to reach {verdict.bar}"
        for verdict in found
        if verdict.met is False
    ]
    return "\n".join(lines)


def failure_lines(results: Results) -> list[str]:
    """What has no rate, and why; a reason that holds at several places is told once."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for failure in results.failures:
        where = failure.storage + (f" {failure.items:,}" if failure.items else "")
        key = (TITLES.get(failure.engine, failure.engine), failure.operation, failure.reason)
        places = grouped.setdefault(key, [])
        if where not in places:
            places.append(where)
    return [
        f"{engine}{f', {operation}' if operation else ''} ({', '.join(places)}): {reason}"
        for (engine, operation, reason), places in grouped.items()
    ]


def markdown(results: Results) -> str:
    """The whole of `results.md`."""
    lines = {**results.about, "background load": noise_words(results)}
    about = "\n".join(f"- {name}: {value}" for name, value in lines.items())
    versions = "\n".join(
        f"- {TITLES.get(name, name)} {version}" for name, version in results.versions.items()
    )
    parts = [
        "# Benchmark results",
        "Written by `make bench`; the numbers of every round are in `results.json`.",
        about,
        "Compared:\n\n" + versions,
        "![requests per second of every engine](results.svg)",
        "## Targets",
        _verdict_words(results).replace("\nfalls short: ", "\n- Falls short: ").replace(".\n-", ".\n\n-", 1),
        markdown_table(("what", "to reach", "measured", "met"), _verdict_rows(results)),
        "## Rates",
        "Requests per second, median of the rounds.",
    ]
    for storage, items, connections in _settings(results):
        parts.append(f"### {_where(storage)}, {items:,} items, {_connections(connections)}")
        parts.append(markdown_table(*rate_rows(results, storage, items, connections)))
    if scale := scale_rows(results):
        parts += ["## Ours as the table grows", markdown_table(_SCALE_HEADER, scale)]
    parts += _cost_parts(results)
    parts += ["## Start, memory, disk", markdown_table(_FOOTPRINT_HEADER, _footprint_rows(results))]
    if results.direct:
        parts += ["## In process", *_direct_parts(results)]
    for title, rows in sections(results.costs).items():
        parts += [f"## {title}", markdown_table(COST_HEADER, rows)]
    if results.trials:
        parts += [f"## {ENTITY_TITLE}", "![processor time of each client](entities.svg)", ENTITY_METHOD]
        for title, table in tables(results.trials).items():
            parts += [f"### {title}", markdown_table(*table)]
    if missing := failure_lines(results):
        parts += ["## Not measured", "\n".join(f"- {line}" for line in missing)]
    parts += ["## Method", _METHOD]
    return "\n\n".join(parts) + "\n"


def noise_words(results: Results) -> str:
    """How much of the machine something else took while it was measured."""
    taken = sorted(
        [sample.foreign_cores for sample in results.samples]
        or [cores for trial in results.trials for cores in trial.foreign_cores]
    )
    if not taken:
        return "not measured"
    worst = taken[int(0.95 * (len(taken) - 1))]
    return f"median {median(taken):.2f} cores, 95th percentile {worst:.2f}"


def _verdict_rows(results: Results) -> list[list[str]]:
    words: Mapping[bool | None, str] = {True: "yes", False: "**no**", None: "not measured"}
    return [[each.subject, each.bar, each.measured, words[each.met]] for each in verdicts(results)]


def _cost_parts(results: Results) -> list[str]:
    """Processor time and latency of each engine, at the smallest table and the most connections."""
    table = {place: cell for place, cell in cells(results).items() if place.stage == "peers" and cell.sound}
    if not table:
        return []
    items = min(place.contender.items for place in table)
    connections = max(place.connections for place in table)
    parts: list[str] = []
    for title, show in (
        ("Server CPU time, µs per request", _processor_time),
        ("Latency, ms: median and 99th percentile", _latency),
    ):
        parts.append(f"## {title}")
        parts.append(f"{items:,} items, {_connections(connections)}.")
        for storage in ("memory", "disk"):
            names = [e.name for e in ENGINES if _measured(table, e.name, storage, items)]
            rows: list[list[str]] = []
            for operation in OPERATIONS:
                places = (
                    Place("peers", Contender(n, storage, items), operation.name, connections) for n in names
                )
                found = [table.get(place) for place in places]
                if any(found):
                    rows.append([operation.title, *(show(cell) if cell else "–" for cell in found)])
            if rows:
                parts.append(markdown_table((_where(storage), *(TITLES[name] for name in names)), rows))
    return parts


def _processor_time(cell: Cell) -> str:
    return number(cell.cpu_us)


def _latency(cell: Cell) -> str:
    return f"{number(cell.p50_ms)} / {number(cell.p99_ms)}"


def _measured(table: Mapping[Place, Cell], engine: str, storage: str, items: int) -> bool:
    return any(place.contender == Contender(engine, storage, items) for place in table)


_FOOTPRINT_HEADER: Final = (
    "server",
    "items",
    "start s",
    "idle MB",
    "filled MB",
    "after the rounds MB",
    "filled in s",
    "on disk MB",
)


def _footprint_rows(results: Results) -> list[list[str]]:
    return [
        [
            f"{TITLES.get(each.engine, each.engine)}, {each.storage}",
            f"{each.items:,}",
            f"{median(each.start_s):.2f}" if each.start_s else "–",
            number(each.idle_mb),
            number(each.loaded_mb),
            number(each.worked_mb),
            number(each.fill_s),
            number(each.disk_mb) if each.storage == "disk" else "–",
        ]
        for each in results.footprints
    ]


def _direct_parts(results: Results) -> list[str]:
    found = {(each.operation, each.storage): each.rate for each in results.direct}
    items = results.direct[0].items
    rows = [
        [operation.title, *(number(found.get((operation.name, storage))) for storage in ("memory", "disk"))]
        for operation in OPERATIONS
        if any((operation.name, storage) in found for storage in ("memory", "disk"))
    ]
    words = f"`Engine.execute` called in a loop, no socket, {items:,} items: calls a second."
    if results.empty_engine_ms is not None:
        words += f" An empty engine is opened and closed in {results.empty_engine_ms:.2f} ms."
    return [words, markdown_table(("operation", "memory", "disk, each call synced"), rows)]
