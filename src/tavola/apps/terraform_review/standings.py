"""Standings: what items have come to, and what statistics become by it. Bookkeeping of the projector, without a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tavola import Entity, PrimaryKey
from tavola.apps.terraform_review.contents import FixDetails
from tavola.apps.terraform_review.model import (
    Counted,
    DayRisk,
    Finding,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewVersion,
    StackStats,
)
from tavola.apps.terraform_review.numbers import (
    Fixed,
    Shares,
    Statistic,
    Telling,
    begun,
    counted,
    names_of,
    place_of,
    settled,
    shares_of,
)

ACTIONS_MAX = 96  # in one transaction; a single item adds three


@dataclass(frozen=True, slots=True)
class Standing:
    """What an item has come to: itself, or that it is gone."""

    source: str
    place: str
    item: Review | Finding | None
    named: bool = False  # of a finding: its review names it, as that one is now

    @property
    def shares(self) -> Shares:
        """What it adds to statistics."""
        return {} if self.item is None else shares_of(self.item, named=self.named)


Work: TypeAlias = tuple[Standing | Fixed, Counted | None]  # what is to be counted, and the mark that stands


@dataclass(slots=True)
class Found:
    """What a look at many items found: what counts, the marks, the statistics, the versions whose findings are not all there."""

    reviews: dict[str, Review] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    marks: dict[str, Counted] = field(default_factory=dict)
    statistics: dict[str, Statistic] = field(default_factory=dict)
    _fixing: list[tuple[str, FixDetails]] = field(default_factory=list)
    _parted: list[ReviewVersion] = field(default_factory=list)

    @property
    def standings(self) -> list[Standing]:
        """What each item has come to."""
        told = [Standing(source, place_of(each), each) for source, each in self.reviews.items()]
        return told + [
            standing_of(each, self.reviews.get(f"review/{each.review_id}")) for each in self.findings.values()
        ]

    @property
    def halves(self) -> list[ReviewVersion]:
        """The versions of which findings are yet to be made items."""
        return [
            each
            for each in self._parted
            if any(f"finding/{each.review_id}/{ident}" not in self.findings for ident in each.findings)
        ]

    @property
    def fixes(self) -> list[Fixed]:
        """Which issues were fixed, in the order in which the versions were found."""
        fixes: list[Fixed] = []
        for review_id, details in self._fixing:
            for each in details.resolved:
                told = self.findings.get(f"finding/{review_id}/{each}")
                if told is not None:
                    fixes.append(Fixed(told, details.applied_at))
        return fixes

    def add(self, entity: Entity) -> None:
        """Look at one more."""
        match entity:
            case Review():
                self.reviews[source_of(entity)] = entity
            case Finding():
                self.findings[source_of(entity)] = entity
            case Counted():
                self.marks[entity.source] = entity
            case StackStats() | DayRisk() | IssueFrequency() | IssueTotal():
                self.statistics[name_of(entity)] = entity
            case ReviewVersion():
                details = entity.fix_details
                if details is not None and details.fix_version == entity.version:
                    self._fixing.append((entity.review_id, details))
                if entity.more_findings is not None:
                    self._parted.append(entity)
            case _:
                pass

    def wrong(self, later: Found) -> dict[str, Statistic]:
        """Return the statistics that are not the sum of the marks, as they should stand; the marks are those of a later look.

        What was counted before the statistics were read is in those marks, and what was counted after it has revised the statistics: so
        who writes these over the revisions that were read here cannot lose anything.
        """
        sheet, marks = Sheet(), dict(later.marks)
        for standing in later.standings:
            mark = marks.pop(standing.source, None)
            if mark is not None:
                sheet.add(mark.shares, standing.item)
        for fix in later.fixes:
            sheet.add({}, fix)
        unsure = {name for mark in marks.values() for name in mark.shares}  # their items are gone just now
        found: dict[str, Statistic] = {}
        for name in sorted({*self.statistics, *sheet.standing} - unsure):
            right = settled(self.statistics.get(name), sheet.standing[name])
            if right is not None:
                found[name] = right
        return found


@dataclass(slots=True)
class Batch:
    """What some records tell: reviews and findings, and the findings that a review began or ceased to name."""

    standings: dict[str, Standing] = field(default_factory=dict)
    reviews: dict[str, Review] = field(default_factory=dict)
    findings: dict[tuple[str, str], Finding | None] = field(default_factory=dict)  # None: to be read
    gone: set[str] = field(default_factory=set)

    def review(self, item: Review, before: Entity | None, *, gone: bool) -> None:
        """Note a review, and what differs from the one before in what it names; of a new one its findings tell it."""
        note(self.standings, item, gone=gone)
        if gone:
            self.gone.add(item.review_id)
        elif item.review_id not in self.reviews or self.reviews[item.review_id].version < item.version:
            self.reviews[item.review_id] = item
        if isinstance(before, Review):
            moved = before.findings.keys() if gone else before.findings.keys() ^ item.findings.keys()
            for ident in moved:
                self.findings.setdefault((item.review_id, ident), None)

    def finding(self, item: Finding, *, gone: bool) -> None:
        """Note a finding."""
        if gone:
            note(self.standings, item, gone=True)
        else:
            self.findings[item.review_id, item.finding_id] = item


@dataclass(slots=True)
class Sheet:
    """Statistics as they were read, and as they become."""

    standing: dict[str, Statistic | None] = field(default_factory=lambda: defaultdict(lambda: None))
    touched: set[str] = field(default_factory=set)

    def add(self, shares: Shares, telling: Telling | None) -> None:
        """Add amounts, and the facts that an item tells."""
        told = set() if telling is None else set(names_of(telling))
        for name in dict.fromkeys([*shares, *sorted(told)]):
            tells = telling if name in told else None
            before = self.standing[name]
            if before is None and tells is not None:
                before = begun(name, tells)
            after = counted(before, shares.get(name, {}), tells)
            if after != self.standing[name]:
                self.standing[name] = after
                self.touched.add(name)


def name_of(entity: Statistic) -> str:
    """Return what a statistic is called in shares."""
    match entity:
        case StackStats():
            return f"stack/{entity.stack_id}"
        case DayRisk():
            return f"day/{entity.day.isoformat()}"
        case IssueFrequency():
            return f"issue/{entity.issue_hash}/{entity.stack_id}"
        case IssueTotal():
            return f"total/{entity.issue_hash}"


def note(standings: dict[str, Standing], item: Review | Finding, *, gone: bool = False) -> None:
    """Note what an item has come to, unless something newer is noted of it."""
    source, place = source_of(item), place_of(item, gone=gone)
    if source not in standings or standings[source].place <= place:
        standings[source] = Standing(source, place, None if gone else item)


def standing_of(finding: Finding, review: Review | None) -> Standing:
    """Return what a finding has come to, beside its review as that one is: it is named there, or was once."""
    named = review is not None and finding.finding_id in review.findings
    return Standing(source_of(finding), place_of(finding, review), finding, named)


def source_of(item: Review | Finding) -> str:
    """Return what the mark of an item is found by."""
    if isinstance(item, Review):
        return f"review/{item.review_id}"
    return f"finding/{item.review_id}/{item.finding_id}"


def item_key(source: str) -> PrimaryKey[Review] | PrimaryKey[Finding]:
    """Return the key of the item that a mark is of."""
    kind, _, rest = source.partition("/")
    if kind == "review":
        return Review.Key(review_id=rest)
    review, _, finding = rest.partition("/")
    return Finding.Key(finding_id=finding, review_id=review)


def packed(
    work: Sequence[Work],
) -> list[Work]:
    """Return as many from the beginning as go into one transaction: a mark each, and the statistics that they share."""
    names: set[str] = set()
    marks = 0
    for at, (told, mark) in enumerate(work):
        telling = told if isinstance(told, Fixed) else told.item
        more = {*(mark.shares if mark else ()), *(names_of(telling) if telling else ())}
        if at and marks + 1 + len(names | more) > ACTIONS_MAX:
            return list(work[:at])
        names |= more
        marks += isinstance(told, Standing)
    return list(work)
