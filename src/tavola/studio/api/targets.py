"""Whether a design runs on each DynamoDB-compatible engine, capability by capability, with sources."""

from __future__ import annotations

from dataclasses import dataclass

from tavola.design.targets import Value, capabilities, check, targets
from tavola.studio.designs import DesignAnalysis, find_analysis, node_id
from tavola.studio.endpoint import Endpoint
from tavola.studio.studio import Studio
from tavola.studio.types import DesignRequest

_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
_WORST: tuple[Value, ...] = ("no", "partial", "version", "unknown", "yes")


@dataclass(frozen=True, slots=True)
class CapabilityUse:
    """One place of a design that needs a capability, and what for."""

    place: str
    table: str
    node: str
    what: str


@dataclass(frozen=True, slots=True)
class TargetCell:
    """What one engine says to one capability."""

    target: str
    value: Value
    text: str
    source: str
    checked: str


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    """A capability that the design needs: where, and what each engine says."""

    name: str
    title: str
    uses: tuple[CapabilityUse, ...]
    cells: tuple[TargetCell, ...]


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """An engine, with the worst that it says and when that was looked up."""

    name: str
    title: str
    checked: str
    source: str
    worst: Value
    missing: int
    differing: int
    unknown: int


@dataclass(frozen=True, slots=True)
class TargetMatrix:
    """What a design needs, by what engines can do; equal to `tavola check --json` for each of them."""

    targets: tuple[TargetColumn, ...]
    rows: tuple[CapabilityRow, ...]


async def target_matrix(studio: Studio, params: DesignRequest) -> TargetMatrix:
    """Return what every engine says to what a design needs."""
    subject = await find_analysis(studio, params.design, params.document)
    return await studio.run_in_thread(lambda: subject.cached("targets", lambda: _build_matrix(subject)))


def _build_matrix(subject: DesignAnalysis) -> TargetMatrix:
    engines = tuple(targets().values())
    verdicts = {engine.name: check(subject.design, engine) for engine in engines}
    uses: dict[str, list[CapabilityUse]] = {}
    for verdict in next(iter(verdicts.values()), ()):
        use = verdict.use
        node = node_id(subject.design, use.place)
        uses.setdefault(use.capability, []).append(
            CapabilityUse(str(use.place), use.place.table, node, use.what)
        )
    rows = []
    for name, needed in uses.items():
        cells = []
        for engine in engines:
            answer = engine.answer(name)
            cells.append(
                TargetCell(
                    engine.name,
                    answer.value,
                    answer.told,
                    answer.source or engine.source,
                    engine.checked.isoformat(),
                )
            )
        rows.append(CapabilityRow(name, capabilities()[name].title, tuple(needed), tuple(cells)))
    columns = []
    for engine in engines:
        values = [engine.answer(name).value for name in uses]
        columns.append(
            TargetColumn(
                engine.name,
                engine.title,
                engine.checked.isoformat(),
                engine.source,
                min(values, key=_WORST.index, default="yes"),
                values.count("no"),
                values.count("partial"),
                values.count("unknown") + values.count("version"),
            )
        )
    return TargetMatrix(tuple(columns), tuple(rows))


ENDPOINTS = (Endpoint("POST", "/design/targets", target_matrix, body_bytes_max=_DOCUMENT_BYTES_MAX),)
