"""Verification: whether a review still is what was written, item by item, as far as what is stored can prove it.

What was altered, taken away, set back to an older state or added is told. Versions and audit rows are chained; a version holds the digests of its
findings and blobs, and everything of its link from a run follows from it. Two things cannot be seen here. That the last version was taken away
whole, with its audit row, its findings and its link, and the current record set back to the one before: who keeps the last `seal` elsewhere sees
that. And an added finding that no version names, which counts as an occurrence of its issue: `service.strays` looks for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tavola.apps.terraform_review.model import SEAL_DIGITS, Finding, Review, ReviewVersion, RunReview
from tavola.apps.terraform_review.store import ReviewStore, link_of
from tavola.patterns import BlobDamaged, BlobMissing, Problem, Verification, stored_digest


async def verified(store: ReviewStore, review_id: str) -> Verification:
    """Read all of a review and tell what is not as it was written: versions, audit rows, findings, links from runs, code."""
    seen: list[ReviewVersion] = []
    told = await store.versions.verify(Review.Key(review_id=review_id), look=seen.append)
    problems = [
        *told.problems,
        *await _wrong_findings(store, seen),
        *await _wrong_links(store, seen),
        *await _wrong_blobs(store, seen),
    ]
    return replace(told, problems=tuple(problems))


async def _wrong_findings(store: ReviewStore, seen: Sequence[ReviewVersion]) -> list[Problem]:
    """Return what is wrong with the findings that versions name, each told with the first that does."""
    seals: dict[Finding.Key, tuple[int, str]] = {}
    for version in seen:
        for ident, ref in version.findings.items():
            key = Finding.Key(finding_id=ident, review_id=version.review_id)
            seals.setdefault(key, (version.version, ref.seal))
    problems: list[Problem] = []
    stands = await store.seals.look(list(seals))
    for (key, (number, seal)), found in zip(seals.items(), stands, strict=True):
        if found is None:
            problems.append(Problem(number, f"the finding {key.finding_id} is missing"))
        elif found.digest[:SEAL_DIGITS] != seal:
            problems.append(Problem(number, f"the finding {key.finding_id} was altered"))
        elif found.astray:
            problems.append(Problem(number, f"the finding {key.finding_id} has another place in an index"))
    return problems


async def _wrong_links(store: ReviewStore, seen: Sequence[ReviewVersion]) -> list[Problem]:
    """Return what is wrong with the links from runs: each version has one, all of which follows from it, and there are no others."""
    links = {_key_of(link): link for link in map(link_of, seen)}
    problems: list[Problem] = []
    for link, found in zip(links.values(), await store.seals.look(list(links)), strict=True):
        if found is None or found.digest != stored_digest(link):
            what = "is missing" if found is None else "was altered"
            problems.append(Problem(link.version, f"the link from the run {link.run_id} {what}"))
    for run_id in dict.fromkeys(version.run_id for version in seen):
        page = await store.db.query(RunReview.OfRun(run_id=run_id), consistent=True)
        others = [each async for each in page if _key_of(each) not in links]
        keys = [ReviewVersion.Key(review_id=each.review_id, version=each.version) for each in others]
        versions_of = await store.db.get_many(keys, consistent=True) if keys else []
        for each, version in zip(others, versions_of, strict=True):
            if version is None or link_of(version) != each:
                what = f"the run {run_id} has a link to version {each.version} of {each.review_id}, which does not name it"
                problems.append(Problem(seen[-1].version, what))
    return problems


async def _wrong_blobs(store: ReviewStore, seen: Sequence[ReviewVersion]) -> list[Problem]:
    """Return which blobs of versions are gone or damaged, each once."""
    problems: list[Problem] = []
    read: set[str | None] = set()
    for version in seen:
        for what, blob in (("code", version.code), ("findings", version.more_findings)):
            if blob is None or (blob.place or blob.sha256) in read:
                continue
            read.add(blob.place or blob.sha256)
            try:
                await store.read_blob(blob)
            except BlobMissing:
                problems.append(Problem(version.version, f"the blob of its {what} is gone"))
            except BlobDamaged:
                problems.append(Problem(version.version, f"the blob of its {what} is damaged"))
    return problems


def _key_of(link: RunReview) -> RunReview.Key:
    return RunReview.Key(
        run_id=link.run_id, created_at=link.created_at, review_id=link.review_id, version=link.version
    )
