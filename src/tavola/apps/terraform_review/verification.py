"""Verification: check that the stored items of a review are what was written, as far as the stored data can prove it.

It detects items that were altered, removed, added or set back to an older state. Versions and audit entries form a hash chain; a version
holds the digests of its findings and blobs, and its link from a run is derived from it. Two things cannot be detected here:

- The last version was removed whole, with its audit entry, findings and link, and the current record was set back to the one before.
  Someone who stored the last digest elsewhere can detect that.
- A finding that no version lists was added, and counts as an occurrence of its issue. `service.find_unlisted_findings` searches for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tavola.apps.terraform_review.model import (
    DIGEST_CHARACTERS,
    Review,
    ReviewFinding,
    ReviewVersion,
    RunReview,
)
from tavola.apps.terraform_review.store import ReviewStore, run_link
from tavola.patterns import BlobDamaged, BlobMissing, HistoryProblem, Verification, stored_digest


async def verify_review(store: ReviewStore, review_id: str) -> Verification:
    """Read all items of a review and report those that are not what was written: versions, audit entries, findings, run links, code."""
    versions: list[ReviewVersion] = []
    verification = await store.versions.verify(Review.Key(review_id=review_id), look=versions.append)
    problems = [
        *verification.problems,
        *await _check_findings(store, versions),
        *await _check_run_links(store, versions),
        *await _check_blobs(store, versions),
    ]
    return replace(verification, problems=tuple(problems))


async def _check_findings(store: ReviewStore, versions: Sequence[ReviewVersion]) -> list[HistoryProblem]:
    """Return problems of the findings that versions list, each with the first version that lists it."""
    expected: dict[ReviewFinding.Key, tuple[int, str]] = {}
    for version in versions:
        for finding_id, ref in version.findings.items():
            key = ReviewFinding.Key(finding_id=finding_id, review_id=version.review_id)
            expected.setdefault(key, (version.version, ref.digest))
    problems: list[HistoryProblem] = []
    stored_digests = await store.digests.read(list(expected))
    for (key, (number, digest)), stored in zip(expected.items(), stored_digests, strict=True):
        if stored is None:
            problems.append(HistoryProblem(number, f"the finding {key.finding_id} is missing"))
        elif stored.digest[:DIGEST_CHARACTERS] != digest:
            problems.append(HistoryProblem(number, f"the finding {key.finding_id} was altered"))
        elif stored.misplaced_keys:
            problems.append(HistoryProblem(number, f"the finding {key.finding_id} has wrong index keys"))
    return problems


async def _check_run_links(store: ReviewStore, versions: Sequence[ReviewVersion]) -> list[HistoryProblem]:
    """Return problems of the links from runs: each version has exactly one, derived from it."""
    links = {_link_key(link): link for link in map(run_link, versions)}
    problems: list[HistoryProblem] = []
    for link, stored in zip(links.values(), await store.digests.read(list(links)), strict=True):
        if stored is None or stored.digest != stored_digest(link):
            problem = "is missing" if stored is None else "was altered"
            problems.append(HistoryProblem(link.version, f"the link from the run {link.run_id} {problem}"))
    for run_id in dict.fromkeys(version.run_id for version in versions):
        page = await store.db.query(RunReview.OfRun(run_id=run_id), consistent=True)
        others = [link async for link in page if _link_key(link) not in links]
        keys = [ReviewVersion.Key(review_id=link.review_id, version=link.version) for link in others]
        linked_versions = await store.db.get_many(keys, consistent=True) if keys else []
        for other_link, version in zip(others, linked_versions, strict=True):
            if version is None or run_link(version) != other_link:
                problem = f"the run {run_id} has a link to version {other_link.version} of {other_link.review_id}, which does not name it"
                problems.append(HistoryProblem(versions[-1].version, problem))
    return problems


async def _check_blobs(store: ReviewStore, versions: Sequence[ReviewVersion]) -> list[HistoryProblem]:
    """Return the blobs of versions that are missing or damaged, each once."""
    problems: list[HistoryProblem] = []
    checked: set[str | None] = set()
    for version in versions:
        for what, blob in (("code", version.code), ("findings", version.more_findings)):
            if blob is None or (blob.place or blob.sha256) in checked:
                continue
            checked.add(blob.place or blob.sha256)
            try:
                await store.read_blob(blob)
            except BlobMissing:
                problems.append(HistoryProblem(version.version, f"the blob of its {what} is missing"))
            except BlobDamaged:
                problems.append(HistoryProblem(version.version, f"the blob of its {what} is damaged"))
    return problems


def _link_key(link: RunReview) -> RunReview.Key:
    return RunReview.Key(
        run_id=link.run_id, created_at=link.created_at, review_id=link.review_id, version=link.version
    )
