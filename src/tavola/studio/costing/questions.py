"""Questions: what a month, or a calculation without a design, is asked with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tavola.design.cost import Consistency, Transactions

PayMode = Literal["on-demand", "provisioned"]
StorageClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]


@dataclass(frozen=True, slots=True)
class CostAssumptions:
    """What a month is computed with beside the design; as the options of `tavola cost`."""

    region: str | None = None  # None: that of the tables, where there is a book for it
    date: str | None = None
    prices: str | None = None  # the label of a book that retells a document
    mode: PayMode | None = None
    table_class: StorageClass | None = None
    target: int = 70
    hours_per_day: int = 24
    free_tier: bool = False
    backups: int = 0
    stream_polls: float = 0.0
    sparse_share: float = 0.1
    storage_gb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CostSliders:
    """How far the design's own numbers are turned; 1 is as they are declared."""

    reads: float = 1.0
    writes: float = 1.0
    item_bytes: float = 1.0
    items: float = 1.0
    indexes: int = 0  # more of them on each table, of whole items
    peak: float | None = None
    consistency: Consistency = "declared"
    transactions: Transactions = "declared"
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskCost:
    """Whose month, and under which numbers; no design and no table named: all that the studio knows."""

    design: str | None = None  # one of those that the studio was started with, by its name
    tables: tuple[str, ...] = ()
    assumptions: CostAssumptions = CostAssumptions()
    sliders: CostSliders = CostSliders()


@dataclass(frozen=True, slots=True)
class AskCalculation:
    """Rates alone, without a design."""

    reads: float = 0.0
    writes: float = 0.0
    item_kb: float = 1.0
    storage_gb: float = 0.0
    hours_per_day: int = 24
    indexes: int = 0
    eventual: bool = False
    region: str | None = None
    date: str | None = None
    prices: str | None = None
    table_class: StorageClass | None = None
    target: int = 70
    free_tier: bool = False
    backups: int = 0
