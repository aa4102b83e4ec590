"""Assumptions: what a bill depends on besides the design, with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tavola.design.cost.capacity import SPARSE_SHARE
from tavola.errors import TavolaError

Mode = Literal["on-demand", "provisioned"]
Class = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
Term = Literal["one_year", "three_years"]

HOURS_PER_MONTH = 730  # as in AWS's calculator; real months have 672 to 744
TARGET = 70  # target utilization of auto scaling in percent, unless a table declares its own


class CostError(TavolaError):
    """A design or number for which no bill can be computed."""

    code = "cost-refused"


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The payment option, and values that the design does not declare."""

    mode: Mode | None = None  # None: as each table declares
    table_class: Class | None = None  # None: as each table declares
    reserved: Term | None = None  # of provisioned Standard tables
    target: int = TARGET
    hours_per_month: int = HOURS_PER_MONTH
    hours_per_day: int = 24  # hours with traffic, at the declared rates
    free_tier: bool = False  # subtract the free tier of an account
    sparse_share: float = SPARSE_SHARE
    backups: int = 0  # retained on-demand backups, each as large as the table
    stream_polls_per_second: float = 0.0  # GetRecords calls of readers other than Lambda, on each stream
    storage_gb: Mapping[str, float] = field(default_factory=dict)  # measured sizes of tables, by name

    def __post_init__(self) -> None:
        if not 20 <= self.target <= 90:
            raise CostError(
                f"auto scaling does not support a target utilization of {self.target}%; use 20 to 90"
            )
        if not 1 <= self.hours_per_day <= 24:
            raise CostError(f"hours per day must be 1 to 24, not {self.hours_per_day}")
        if self.hours_per_month < 1:
            raise CostError(f"hours per month must be 1 or more, not {self.hours_per_month}; AWS uses 730")
        if not 0 <= self.sparse_share <= 1:
            raise CostError(f"the sparse share must be 0 to 1, not {self.sparse_share}")
        if self.backups < 0 or not 0 <= self.stream_polls_per_second < float("inf"):
            raise CostError("backups and stream polls must be 0 or more")
        for name, size in self.storage_gb.items():
            if not 0 <= size < float("inf"):
                raise CostError(f"the size of {name} must be 0 GB or more, not {size}")
