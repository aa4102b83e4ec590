"""The arithmetic of the statistics, without I/O: what items contribute, and how statistics change when that changes.

A statistic (`StackStats`, `DayRisk`, `IssueFrequency`, `IssueTotal`) holds two kinds of values:

- **Counts and sums** describe what is stored now. Each review and finding adds its *shares* to them: amounts by field, by the
  name of the statistic, such as `{"stack/prod-api": {"total_reviews": 1, "risk_sum": 0.7}}`. When an item changes or
  disappears, the difference from its earlier shares is applied.
- **Facts** only grow: when an issue was first and last seen, when it was last fixed, its latest runs. Applying a fact again, or
  in another order, gives the same result, and facts are never removed: an issue was first seen on a day even if
  the finding has expired since.

A *mark* (`StatisticsMark`) records the shares that an item has contributed so far, and the item's *position* at that time, which tells
earlier states of an item from later ones. `projector` writes marks and statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from tavola import Entity, PrimaryKey
from tavola.apps.terraform_review.domain import ReviewStatus, RiskBand
from tavola.apps.terraform_review.model import (
    RUNS_MAX,
    DayRisk,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewFinding,
    ReviewVersion,
    StackStats,
    StatisticsMark,
)
from tavola.apps.terraform_review.review_fields import FixDetails

ACTIONS_MAX = 96  # in one transaction; a single item adds up to three

_ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class IssueFix:
    """A fact: a version resolved this finding, so its issue was fixed in its stack."""

    finding: ReviewFinding
    at: datetime


Statistic: TypeAlias = StackStats | DayRisk | IssueFrequency | IssueTotal
Amounts: TypeAlias = dict[str, Decimal]  # by field of a statistic
Shares: TypeAlias = dict[str, Amounts]  # by name of a statistic
FactSource: TypeAlias = Review | ReviewFinding | IssueFix


@dataclass(frozen=True, slots=True)
class TrackedItem:
    """A review or finding to count, in its latest known state; `item` is None if it was deleted."""

    source: str  # identifies its mark
    position: str
    item: Review | ReviewFinding | None
    listed: bool = False  # of a finding: the current review lists it

    @property
    def shares(self) -> Shares:
        """What the item contributes to statistics."""
        return {} if self.item is None else compute_shares(self.item, listed=self.listed)


Work: TypeAlias = tuple[TrackedItem | IssueFix, StatisticsMark | None]  # to count, and its current mark


@dataclass(slots=True)
class TableSnapshot:
    """The items of one table scan that affect statistics."""

    reviews: dict[str, Review] = field(default_factory=dict)
    findings: dict[str, ReviewFinding] = field(default_factory=dict)
    marks: dict[str, StatisticsMark] = field(default_factory=dict)
    statistics: dict[str, Statistic] = field(default_factory=dict)
    _fix_details: list[tuple[str, FixDetails]] = field(default_factory=list)
    _split_versions: list[ReviewVersion] = field(default_factory=list)  # some findings are in a blob

    def add(self, entity: Entity) -> None:
        """Add one item of the scan."""
        match entity:
            case Review():
                self.reviews[mark_source(entity)] = entity
            case ReviewFinding():
                self.findings[mark_source(entity)] = entity
            case StatisticsMark():
                self.marks[entity.source] = entity
            case StackStats() | DayRisk() | IssueFrequency() | IssueTotal():
                self.statistics[statistic_name(entity)] = entity
            case ReviewVersion():
                details = entity.fix_details
                if details is not None and details.fix_version == entity.version:
                    self._fix_details.append((entity.review_id, details))
                if entity.more_findings is not None:
                    self._split_versions.append(entity)
            case _:
                pass

    @property
    def items(self) -> list[TrackedItem]:
        """All reviews and findings, to be counted."""
        reviews = [
            TrackedItem(source, item_position(review), review) for source, review in self.reviews.items()
        ]
        return reviews + [
            track_finding(finding, self.reviews.get(f"review/{finding.review_id}"))
            for finding in self.findings.values()
        ]

    @property
    def incomplete_versions(self) -> list[ReviewVersion]:
        """The versions that list findings without an item yet."""
        return [
            version
            for version in self._split_versions
            if any(
                f"finding/{version.review_id}/{finding}" not in self.findings for finding in version.findings
            )
        ]

    @property
    def fixes(self) -> list[IssueFix]:
        """The issues that were fixed, in the order of the scan."""
        fixes: list[IssueFix] = []
        for review_id, details in self._fix_details:
            for finding_id in details.resolved:
                finding = self.findings.get(f"finding/{review_id}/{finding_id}")
                if finding is not None:
                    fixes.append(IssueFix(finding, details.applied_at))
        return fixes

    def find_wrong_statistics(self, later: TableSnapshot) -> dict[str, Statistic]:
        """Return corrected statistics where a stored one is not the sum of the marks of a later snapshot.

        Whatever was counted before this snapshot is in the later marks. Whatever was counted after it has raised the statistic's
        revision, so a correction that is written only if the revision is still the one read here loses nothing.
        """
        ledger, marks = StatisticsLedger(), dict(later.marks)
        for tracked in later.items:
            mark = marks.pop(tracked.source, None)
            if mark is not None:
                ledger.add(mark.shares, tracked.item)
        for fix in later.fixes:
            ledger.add({}, fix)
        # Marks left over belong to items that were deleted just now; their statistics are about to change.
        uncertain = {name for mark in marks.values() for name in mark.shares}
        wrong: dict[str, Statistic] = {}
        for name in sorted({*self.statistics, *ledger.statistics} - uncertain):
            corrected = correct_statistic(self.statistics.get(name), ledger.statistics[name])
            if corrected is not None:
                wrong[name] = corrected
        return wrong


@dataclass(slots=True)
class RecordBatch:
    """The items that a batch of stream records changes, and the findings whose listing in a review changed."""

    items: dict[str, TrackedItem] = field(default_factory=dict)
    reviews: dict[str, Review] = field(default_factory=dict)
    # By review and finding ID; None: still to be read.
    findings: dict[tuple[str, str], ReviewFinding | None] = field(default_factory=dict)
    deleted_reviews: set[str] = field(default_factory=set)

    def add_review(self, review: Review, before: Entity | None, *, deleted: bool) -> None:
        """Add a changed review, and the findings that it lists and `before` does not, or the reverse.

        The findings of a new review are not added: they have stream records of their own.
        """
        self._track(review, deleted=deleted)
        if deleted:
            self.deleted_reviews.add(review.review_id)
        elif review.review_id not in self.reviews or self.reviews[review.review_id].version < review.version:
            self.reviews[review.review_id] = review
        if isinstance(before, Review):
            relisted = before.findings.keys() if deleted else before.findings.keys() ^ review.findings.keys()
            for finding_id in relisted:
                self.findings.setdefault((review.review_id, finding_id), None)

    def add_finding(self, finding: ReviewFinding, *, deleted: bool) -> None:
        """Add a created or deleted finding."""
        if deleted:
            self._track(finding, deleted=True)
        else:
            self.findings[finding.review_id, finding.finding_id] = finding

    def _track(self, item: Review | ReviewFinding, *, deleted: bool) -> None:
        self.keep_latest(
            TrackedItem(mark_source(item), item_position(item, deleted=deleted), None if deleted else item)
        )

    def keep_latest(self, tracked: TrackedItem) -> None:
        """Add an item unless the batch holds a later state of it."""
        known = self.items.get(tracked.source)
        if known is None or known.position <= tracked.position:
            self.items[tracked.source] = tracked


@dataclass(slots=True)
class StatisticsLedger:
    """Statistics as they were read, updated in memory; `changed` names those to write."""

    statistics: dict[str, Statistic | None] = field(default_factory=lambda: defaultdict(lambda: None))
    changed: set[str] = field(default_factory=set)

    def add(self, shares: Shares, facts: FactSource | None) -> None:
        """Add amounts to statistics, and the facts known from an item."""
        with_facts = set() if facts is None else set(statistic_names(facts))
        for name in dict.fromkeys([*shares, *sorted(with_facts)]):
            source = facts if name in with_facts else None
            before = self.statistics[name]
            if before is None and source is not None:
                before = new_statistic(name, source)
            if before is None:
                continue
            after = update_statistic(before, shares.get(name, {}), source)
            if after != self.statistics[name]:
                self.statistics[name] = after
                self.changed.add(name)


# Names, keys and positions.


def statistic_name(entity: Statistic) -> str:
    """Return the name of a statistic in shares."""
    match entity:
        case StackStats():
            return f"stack/{entity.stack_id}"
        case DayRisk():
            return f"day/{entity.day.isoformat()}"
        case IssueFrequency():
            return f"issue/{entity.issue_hash}/{entity.stack_id}"
        case IssueTotal():
            return f"total/{entity.issue_hash}"


def statistic_names(source: FactSource) -> tuple[str, ...]:
    """Return the names of the statistics that an item contributes to or has facts about."""
    match source:
        case Review():
            return f"stack/{source.stack_id}", f"day/{source.created_on.isoformat()}"
        case ReviewFinding():
            return f"issue/{source.issue_hash}/{source.stack_id}", f"total/{source.issue_hash}"
        case IssueFix(finding):
            return (f"issue/{finding.issue_hash}/{finding.stack_id}",)


def statistic_key(name: str) -> PrimaryKey[Any]:
    """Return the primary key of the statistic with this name."""
    kind, _, rest = name.partition("/")
    if kind == "stack":
        return StackStats.Key(stack_id=rest)
    if kind == "day":
        return DayRisk.Key(day=date.fromisoformat(rest))
    issue, _, stack = rest.partition("/")
    if kind == "issue":
        return IssueFrequency.Key(issue_hash=issue, stack_id=stack)
    return IssueTotal.Key(issue_hash=issue)


def mark_source(item: Review | ReviewFinding) -> str:
    """Return the `source` of an item's mark."""
    if isinstance(item, Review):
        return f"review/{item.review_id}"
    return f"finding/{item.review_id}/{item.finding_id}"


def item_key(source: str) -> PrimaryKey[Review] | PrimaryKey[ReviewFinding]:
    """Return the primary key of the item that a mark belongs to."""
    kind, _, rest = source.partition("/")
    if kind == "review":
        return Review.Key(review_id=rest)
    review, _, finding = rest.partition("/")
    return ReviewFinding.Key(finding_id=finding, review_id=review)


def item_position(
    item: Review | ReviewFinding, review: Review | None = None, *, deleted: bool = False
) -> str:
    """Return the position of an item's state among all its states, as text that sorts; deletion sorts last.

    The position of a review is its version. A finding never changes, but a version of its `review` may stop listing it, so its
    position is the review's version; without a review it sorts after every version.
    """
    created = item.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(item, Review):
        return f"{created}/{item.version:019}{'~' if deleted else ''}"
    if deleted:
        return f"{created}/~"
    return f"{created}/{'9' * 19 if review is None else f'{review.version:019}'}"


def track_finding(finding: ReviewFinding, review: Review | None) -> TrackedItem:
    """Return a finding to count, given the current state of its review."""
    listed = review is not None and finding.finding_id in review.findings
    return TrackedItem(mark_source(finding), item_position(finding, review), finding, listed)


# Shares.


def compute_shares(item: Review | ReviewFinding, *, listed: bool = False) -> Shares:
    """Return what an item contributes to statistics; `listed` says whether the current review lists the finding."""
    if isinstance(item, ReviewFinding):
        amounts: Amounts = {"occurrence_count": _ONE}
        if listed:
            amounts["open_count"] = _ONE
        return {name: dict(amounts) for name in statistic_names(item)}
    stack, day = statistic_names(item)
    return {stack: _stack_amounts(item), day: _day_amounts(item)}


def share_differences(before: Mapping[str, Mapping[str, Decimal]], after: Shares) -> Shares:
    """Return the amounts by which each statistic changes when an item's shares change."""
    differences: Shares = {}
    for name in {**before, **after}:
        old, new = before.get(name, {}), after.get(name, {})
        amounts = {
            column: new.get(column, Decimal(0)) - old.get(column, Decimal(0)) for column in {**old, **new}
        }
        differences[name] = {column: amount for column, amount in amounts.items() if amount}
    return differences


def take_one_transaction(work: Sequence[Work]) -> list[Work]:
    """Return the first entries of `work` that fit into one transaction: a mark each, and the statistics they share."""
    names: set[str] = set()
    marks = 0
    for index, (counted, mark) in enumerate(work):
        further_statistics = set(affected_statistics(counted, mark))
        if index and marks + 1 + len(names | further_statistics) > ACTIONS_MAX:
            return list(work[:index])
        names |= further_statistics
        marks += isinstance(counted, TrackedItem)
    return list(work)


def affected_statistics(counted: TrackedItem | IssueFix, mark: StatisticsMark | None) -> list[str]:
    """Return the names of the statistics that counting an item changes, including those of its earlier shares."""
    source = counted if isinstance(counted, IssueFix) else counted.item
    return [*(mark.shares if mark else ()), *(statistic_names(source) if source else ())]


def _stack_amounts(review: Review) -> Amounts:
    amounts: Amounts = {"total_reviews": _ONE}
    score = review.overall_risk_score
    if score is not None:
        amounts |= {"assessed_reviews": _ONE, "risk_sum": score, f"{review.band}_risk_count": _ONE}
    if review.status is not ReviewStatus.COMPLETED:
        amounts[f"{review.status}_reviews"] = _ONE
    if review.fix_applied:
        amounts["fixed_reviews"] = _ONE
    for name, number in (
        ("total_findings", review.findings_total),
        ("security_findings", review.security_findings.total),
        ("cost_findings", review.cost_findings.total),
        ("reliability_findings", review.reliability_findings.total),
    ):
        amounts[name] = Decimal(number)
    return {name: amount for name, amount in amounts.items() if amount}


def _day_amounts(review: Review) -> Amounts:
    amounts: Amounts = {"reviews": _ONE, "findings": Decimal(review.findings_total)}
    score, found_score = review.overall_risk_score, review.found_risk_score
    if score is not None and found_score is not None:
        amounts |= {
            "assessed": _ONE,
            "risk_sum": score,
            "found_sum": found_score,
            str(review.band or RiskBand.LOW): _ONE,
        }
    if review.status is not ReviewStatus.COMPLETED:
        amounts[review.status] = _ONE
    if review.fix_applied:
        amounts["fixed"] = _ONE
    return {name: amount for name, amount in amounts.items() if amount}


# Statistics.


def new_statistic(name: str, source: FactSource) -> Statistic:
    """Return an empty statistic of this name; an issue's title and dates come from a finding."""
    kind, _, rest = name.partition("/")
    if kind == "stack":
        return StackStats(stack_id=rest)
    if kind == "day":
        return DayRisk(day=date.fromisoformat(rest))
    finding = source.finding if isinstance(source, IssueFix) else source
    assert isinstance(finding, ReviewFinding), "only findings contribute to issues"
    values: dict[str, Any] = {
        "issue_hash": finding.issue_hash,
        "category": finding.category,
        "title": finding.title,
        "file_path": finding.file_path,
        "first_seen": finding.created_at,
        "last_seen": finding.created_at,
    }
    return IssueFrequency(stack_id=finding.stack_id, **values) if kind == "issue" else IssueTotal(**values)


def update_statistic(
    statistic: Statistic, amounts: Mapping[str, Decimal], source: FactSource | None
) -> Statistic:
    """Return a statistic with amounts added, and with the facts of `source`."""
    values: dict[str, Any] = {}
    for name, amount in amounts.items():
        before = getattr(statistic, name)
        values[name] = before + int(amount) if isinstance(before, int) else before + amount
    if source is not None:
        values |= _updated_facts(statistic, source)
    return statistic.model_copy(update=values) if values else statistic


def correct_statistic(stored: Statistic | None, recounted: Statistic | None) -> Statistic | None:
    """Return a statistic with the recounted counts and the facts of both; None if the stored one is right."""
    if stored is None:
        return recounted
    values: dict[str, Any] = {
        name: type(value)(0) if recounted is None else getattr(recounted, name)
        for name, value in stored
        if name != "revision" and isinstance(value, int | Decimal)
    }
    if recounted is not None:
        values |= _merged_facts(stored, recounted)
    corrected = stored.model_copy(update=values)
    return None if corrected == stored else corrected


def latest_runs(runs: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """Return the latest runs, newest first, up to the number that an issue keeps."""
    return dict(sorted(runs, key=lambda run: (run[1], run[0]), reverse=True)[:RUNS_MAX])


def _updated_facts(statistic: Statistic, source: FactSource) -> dict[str, Any]:
    if isinstance(statistic, DayRisk):
        return {}
    if isinstance(statistic, StackStats):
        assert isinstance(source, Review)
        return {
            "last_review_at": _latest(statistic.last_review_at, source.created_at),
            "updated_at": _latest(statistic.updated_at, source.changed_at),
        }
    finding = source.finding if isinstance(source, IssueFix) else source
    assert isinstance(finding, ReviewFinding)
    at = source.at if isinstance(source, IssueFix) else finding.created_at
    values: dict[str, Any] = {
        "first_seen": min(statistic.first_seen, finding.created_at),
        "last_seen": max(statistic.last_seen, finding.created_at),
        "updated_at": _latest(statistic.updated_at, at),
    }
    if isinstance(statistic, IssueFrequency):
        runs = {**statistic.affected_runs}
        runs[finding.run_id] = max(finding.created_at, runs.get(finding.run_id, finding.created_at))
        values["affected_runs"] = latest_runs(runs.items())
        if isinstance(source, IssueFix):
            values["fixed_at"] = _latest(statistic.fixed_at, source.at)
    return values


def _merged_facts(stored: Statistic, recounted: Statistic) -> dict[str, Any]:
    if isinstance(stored, StackStats) and isinstance(recounted, StackStats):
        return {
            "last_review_at": _latest(stored.last_review_at, recounted.last_review_at),
            "updated_at": _latest(stored.updated_at, recounted.updated_at),
        }
    if isinstance(stored, DayRisk | StackStats) or isinstance(recounted, DayRisk | StackStats):
        return {}
    values: dict[str, Any] = {
        "first_seen": min(stored.first_seen, recounted.first_seen),
        "last_seen": max(stored.last_seen, recounted.last_seen),
        "updated_at": _latest(stored.updated_at, recounted.updated_at),
    }
    if isinstance(stored, IssueFrequency) and isinstance(recounted, IssueFrequency):
        runs = {**stored.affected_runs}
        for run, since in recounted.affected_runs.items():
            runs[run] = max(since, runs.get(run, since))
        values["affected_runs"] = latest_runs(runs.items())
        values["fixed_at"] = _latest(stored.fixed_at, recounted.fixed_at)
    return values


def _latest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time is not None), default=None)
