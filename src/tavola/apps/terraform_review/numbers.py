"""Numbers: what a review or a finding adds to statistics, and what statistics become by it. Arithmetic, without a table.

Two sorts of thing stand in a statistic. **Counts and sums** are of what is there now: an item adds to them, and takes away again what it
added. **Facts** only grow: when an issue was seen first and last, when it was fixed, the latest runs. They come out the same however often and in whatever
order they are told, and are not taken back: that an issue was first seen on a day stays true when the finding has expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from tavola import PrimaryKey
from tavola.apps.terraform_review.domain import Band, Status
from tavola.apps.terraform_review.model import (
    RUNS_TOLD,
    DayRisk,
    Finding,
    IssueFrequency,
    IssueTotal,
    Review,
    StackStats,
)

Counted: TypeAlias = Review | Finding
Statistic: TypeAlias = StackStats | DayRisk | IssueFrequency | IssueTotal
Amounts: TypeAlias = dict[str, Decimal]  # by field of a statistic
Shares: TypeAlias = dict[str, Amounts]  # by statistic

_ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Fixed:
    """That an issue was fixed in a stack: a fact, told by a version and the finding that it resolved."""

    finding: Finding
    at: datetime


Telling: TypeAlias = Review | Finding | Fixed


def shares_of(item: Counted, *, named: bool = False) -> Shares:
    """Return what an item adds to statistics, as it is now; `named` says whether the current review names a finding."""
    if isinstance(item, Finding):
        told: Amounts = {"occurrence_count": _ONE}
        if named:
            told["open_count"] = _ONE
        return {name: dict(told) for name in names_of(item)}
    stack, day = names_of(item)
    return {stack: _of_stack(item), day: _of_day(item)}


def names_of(telling: Telling) -> tuple[str, ...]:
    """Return the statistics that an item adds to, or tells facts of."""
    match telling:
        case Review():
            return f"stack/{telling.stack_id}", f"day/{telling.created_on.isoformat()}"
        case Finding():
            return f"issue/{telling.issue_hash}/{telling.stack_id}", f"total/{telling.issue_hash}"
        case Fixed(finding):
            return (f"issue/{finding.issue_hash}/{finding.stack_id}",)


def key_of(name: str) -> PrimaryKey[Any]:
    """Return the key of a statistic."""
    kind, _, rest = name.partition("/")
    if kind == "stack":
        return StackStats.Key(stack_id=rest)
    if kind == "day":
        return DayRisk.Key(day=date.fromisoformat(rest))
    issue, _, stack = rest.partition("/")
    if kind == "issue":
        return IssueFrequency.Key(issue_hash=issue, stack_id=stack)
    return IssueTotal.Key(issue_hash=issue)


def changes(before: Mapping[str, Mapping[str, Decimal]], after: Shares) -> Shares:
    """Return by how much each statistic changes where an item adds something else than before."""
    found: Shares = {}
    for name in {**before, **after}:
        was, now = before.get(name, {}), after.get(name, {})
        by = {field: now.get(field, Decimal(0)) - was.get(field, Decimal(0)) for field in {**was, **now}}
        found[name] = {field: amount for field, amount in by.items() if amount}
    return found


def counted(
    standing: Statistic | None, by: Mapping[str, Decimal], telling: Telling | None
) -> Statistic | None:
    """Return a statistic with amounts and facts added; None where there is none and nothing to make one of."""
    if standing is None:
        if telling is None:
            return None
        raise AssertionError("a statistic is begun by `begun`")
    values: dict[str, Any] = {}
    for field, amount in by.items():
        was = getattr(standing, field)
        values[field] = was + int(amount) if isinstance(was, int) else was + amount
    if telling is not None:
        values |= _facts(standing, telling)
    return standing.model_copy(update=values) if values else standing


def begun(name: str, telling: Telling) -> Statistic:
    """Return a new statistic, with nothing counted in it."""
    kind, _, rest = name.partition("/")
    if kind == "stack":
        return StackStats(stack_id=rest)
    if kind == "day":
        return DayRisk(day=date.fromisoformat(rest))
    finding = telling.finding if isinstance(telling, Fixed) else telling
    assert isinstance(finding, Finding), "issues are told by findings"
    told: dict[str, Any] = {
        "issue_hash": finding.issue_hash,
        "category": finding.category,
        "title": finding.title,
        "file_path": finding.file_path,
        "first_seen": finding.created_at,
        "last_seen": finding.created_at,
    }
    return IssueFrequency(stack_id=finding.stack_id, **told) if kind == "issue" else IssueTotal(**told)


def place_of(item: Counted, review: Review | None = None, *, gone: bool = False) -> str:
    """Return how far in its life an item is, as text that sorts so; that it is gone comes after whatever it was.

    A review is as far as its version. A finding is as far as its `review`: that one names it, or no longer; without it nobody does.
    """
    since = item.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(item, Review):
        return f"{since}/{item.version:019}{'~' if gone else ''}"
    if gone:
        return f"{since}/~"
    return f"{since}/{'9' * 19 if review is None else f'{review.version:019}'}"


def settled(kept: Statistic | None, told: Statistic | None) -> Statistic | None:
    """Return a statistic with the counts of `told`, which are what it should be, and the facts of both; None where it is right."""
    if kept is None:
        return told
    values: dict[str, Any] = {
        name: type(value)(0) if told is None else getattr(told, name)
        for name, value in kept
        if name != "revision" and isinstance(value, int | Decimal)
    }
    if told is not None:
        values |= _grown(kept, told)
    after = kept.model_copy(update=values)
    return None if after == kept else after


def _grown(kept: Statistic, told: Statistic) -> dict[str, Any]:
    """Return the facts that two of one statistic tell together."""
    if isinstance(kept, StackStats) and isinstance(told, StackStats):
        moments = {
            name: (getattr(kept, name), getattr(told, name)) for name in ("last_review_at", "updated_at")
        }
        return {
            name: max((at for at in both if at is not None), default=None) for name, both in moments.items()
        }
    if isinstance(kept, DayRisk) or isinstance(told, DayRisk | StackStats) or isinstance(kept, StackStats):
        return {}
    values: dict[str, Any] = {
        "first_seen": min(kept.first_seen, told.first_seen),
        "last_seen": max(kept.last_seen, told.last_seen),
        "updated_at": max((at for at in (kept.updated_at, told.updated_at) if at is not None), default=None),
    }
    if isinstance(kept, IssueFrequency) and isinstance(told, IssueFrequency):
        runs = {**kept.affected_runs}
        for run, at in told.affected_runs.items():
            runs[run] = max(at, runs.get(run, at))
        values["affected_runs"] = latest_runs(runs.items())
        values["fixed_at"] = max(
            (at for at in (kept.fixed_at, told.fixed_at) if at is not None), default=None
        )
    return values


def _of_stack(review: Review) -> Amounts:
    amounts: Amounts = {"total_reviews": _ONE}
    score = review.overall_risk_score
    if score is not None:
        amounts |= {"assessed_reviews": _ONE, "risk_sum": score, f"{review.band}_risk_count": _ONE}
    if review.status is not Status.COMPLETED:
        amounts[f"{review.status}_reviews"] = _ONE
    if review.fix_applied:
        amounts["fixed_reviews"] = _ONE
    for field, number in (
        ("total_findings", review.findings_total),
        ("security_findings", review.security_findings.total),
        ("cost_findings", review.cost_findings.total),
        ("reliability_findings", review.reliability_findings.total),
    ):
        amounts[field] = Decimal(number)
    return {field: amount for field, amount in amounts.items() if amount}


def _of_day(review: Review) -> Amounts:
    amounts: Amounts = {"reviews": _ONE, "findings": Decimal(review.findings_total)}
    score, found = review.overall_risk_score, review.found_risk_score
    if score is not None and found is not None:
        amounts |= {
            "assessed": _ONE,
            "risk_sum": score,
            "found_sum": found,
            str(review.band or Band.LOW): _ONE,
        }
    if review.status is not Status.COMPLETED:
        amounts[review.status] = _ONE
    if review.fix_applied:
        amounts["fixed"] = _ONE
    return {field: amount for field, amount in amounts.items() if amount}


def _facts(standing: Statistic, telling: Telling) -> dict[str, Any]:
    """Return what a statistic comes to say by facts; the same however often they are told."""
    if isinstance(standing, DayRisk):
        return {}
    if isinstance(standing, StackStats):
        assert isinstance(telling, Review)
        return {
            "last_review_at": _later(standing.last_review_at, telling.created_at),
            "updated_at": _later(standing.updated_at, telling.changed_at),
        }
    finding = telling.finding if isinstance(telling, Fixed) else telling
    assert isinstance(finding, Finding)
    values: dict[str, Any] = {
        "first_seen": min(standing.first_seen, finding.created_at),
        "last_seen": max(standing.last_seen, finding.created_at),
        "updated_at": _later(
            standing.updated_at, telling.at if isinstance(telling, Fixed) else finding.created_at
        ),
    }
    if isinstance(standing, IssueFrequency):
        runs = {**standing.affected_runs}
        runs[finding.run_id] = max(finding.created_at, runs.get(finding.run_id, finding.created_at))
        values["affected_runs"] = latest_runs(runs.items())
        if isinstance(telling, Fixed):
            values["fixed_at"] = _later(standing.fixed_at, telling.at)
    return values


def latest_runs(runs: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """Return the latest of some runs, newest first: as many as an issue tells of."""
    return dict(sorted(runs, key=lambda run: (run[1], run[0]), reverse=True)[:RUNS_TOLD])


def _later(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else max(one, other)
