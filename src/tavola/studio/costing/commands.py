"""Commands: the command line that prints a month as the page shows it."""

from __future__ import annotations

import shlex
import sys
from decimal import Decimal

from tavola.model.document import Design, DocumentRefused, TableDesign, check_references
from tavola.studio.costing.months import DEFAULT_REGION, region_of
from tavola.studio.costing.questions import AskCalculation, AskCost, CostAssumptions
from tavola.studio.studio import Studio

_CLASSES = {"STANDARD": "standard", "STANDARD_INFREQUENT_ACCESS": "standard-ia"}


def command_of(studio: Studio, asked: AskCost, design: Design, *, rests: bool) -> tuple[str, bool]:
    """Return the command that prints the altered month, and whether it is about a document that must be saved first.

    "" where there is none: designs side by side may call entities alike, and a document may not.
    """
    told = asked.assumptions
    subject = asked.design if asked.design and not asked.tables else _subject(studio, design)
    subject = subject if rests else None
    saved = subject is None
    if saved and not writable(design):
        return "", False
    words = ["tavola cost", shlex.quote(subject or "altered.json")]
    words += [] if told.mode is None else [f"--mode {told.mode}"]
    words += [f"--stream-polls {number(told.stream_polls)}"] if told.stream_polls else []
    words += [] if told.sparse_share == 0.1 else [f"--sparse-share {number(told.sparse_share)}"]
    scale = asked.sliders.items
    words += [
        f"--storage-gb {shlex.quote(f'{name}={number(size * scale)}')}"
        for name, size in sorted(told.storage_gb.items())
    ]
    words += shared_words(told, region_of(studio))
    return " ".join(words), saved


def writable(design: Design) -> bool:
    """Tell whether a design can be written as one document that is read again."""
    try:
        check_references(design)
    except DocumentRefused:
        return False
    return True


def number(value: float) -> str:
    """Return a number with all its digits, as the command line takes it."""
    return f"{Decimal(repr(float(value))).normalize():f}"


def shared_words(told: CostAssumptions | AskCalculation, default: str) -> list[str]:
    """Return the options that a design and a calculation have in common, those alone that are not as by default."""
    words = []
    if told.prices:
        words.append(f"--prices {shlex.quote(told.prices)}")
    else:
        region = told.region or default
        words += [] if region == DEFAULT_REGION else [f"--region {region}"]
        words += [f"--date {told.date}"] if told.date else []
    words += [] if told.table_class is None else [f"--class {_CLASSES[told.table_class]}"]
    words += [] if told.target == 70 else [f"--target-utilisation {told.target}"]
    words += [] if told.hours_per_day == 24 else [f"--hours-per-day {told.hours_per_day}"]
    words += ["--free-tier"] if told.free_tier else []
    words += [f"--backups {told.backups}"] if told.backups else []
    return words


def _subject(studio: Studio, design: Design) -> str | None:
    """Return how the command line names a design: as it was named here, or the module of its one table; None: it has no name."""
    whole = studio.needed_design()
    if design is whole and len(studio.designs) == 1:
        return studio.designs[0]
    if len(design.tables) != 1:
        return _module_of(studio, design.tables)
    module = _module_of(studio, design.tables)
    return module if module is not None else _of_one(studio, design.tables[0])


def _of_one(studio: Studio, table: TableDesign) -> str | None:
    for name in studio.designs:
        module = name.partition(":")[0]
        found = getattr(sys.modules.get(module), table.label, None)
        if getattr(getattr(found, "settings", None), "name", None) == table.name:
            return f"{module}:{table.label}"
    return None


def _module_of(studio: Studio, tables: tuple[TableDesign, ...]) -> str | None:
    """Return the module that declares just these tables, where it is one of those the studio was started with."""
    labels = {table.label: table.name for table in tables}
    for name in studio.designs:
        held = vars(sys.modules[name]) if name in sys.modules else {}
        declared = {
            label: found.settings.name
            for label, found in held.items()
            if isinstance(found, type)
            and getattr(found, "__module__", "") == name
            and hasattr(found, "settings")
        }
        if declared == labels:
            return name
    return None
