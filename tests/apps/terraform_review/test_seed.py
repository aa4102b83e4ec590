"""The seed: a believable month, the same from the same seed, whose seals and statistics hold."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tavola import Progress, SeededEntropy, connect_async
from tavola.apps.terraform_review import seed, service
from tavola.apps.terraform_review.domain import Category, ReviewStatus
from tavola.apps.terraform_review.model import Review, Reviews
from tavola.apps.terraform_review.seed_issues import CODE, ISSUES, STACKS
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run
from tests.apps.terraform_review.conftest import compared_fields

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


async def _loaded(store: ReviewStore, *, reviews: int, **more: Any) -> list[Review]:
    await store.create_tables()
    await seed.load(store, entropy=SeededEntropy(5), now=NOW, reviews=reviews, **more)
    page = await store.db.scan_table(Reviews)
    return [entity async for entity in page if isinstance(entity, Review)]


def test_a_month_is_believable(run: Run[Any], tmp_path: Path) -> None:
    """Some reviews pass ten versions, some failed, some are pending, fixes lower the risk, issues repeat; all of it verifies."""

    async def work() -> None:
        async with connect_async("memory:") as db:
            store = ReviewStore(db, FolderBlobs(tmp_path))
            progress: list[Progress] = []
            reviews = await _loaded(store, reviews=150, progress=progress.append)
            assert len(reviews) == 150
            assert progress[-1] == Progress(150, 150)
            assert max(review.version for review in reviews) > 10
            assert Counter(review.status for review in reviews).keys() == set(ReviewStatus)
            assert all(review.created_at <= review.changed_at <= NOW for review in reviews)
            lowered = [review for review in reviews if review.fix_details is not None]
            assert lowered
            assert all(
                (review.fix_details.risk_reduction or 0) > 0 for review in lowered if review.fix_details
            )
            assert any(review.code.place for review in reviews)
            assert (await service.list_frequent_issues(store, Category.SECURITY)).items[
                0
            ].occurrence_count > 3
            for review in reviews[::5]:
                assert await verify_review(store, review.review_id)
            await _is_told_by_its_code(store, reviews)
            weekend = sum(review.created_at.weekday() >= 5 for review in reviews)
            assert 0 < weekend < len(reviews) / 7
            kept, exact = await store.projector.read_statistics(), await store.projector.recount()
            assert compared_fields(kept) == compared_fields(exact)
            assert (await store.projector.rebuild()).counted == 0

    run(work())


async def _is_told_by_its_code(store: ReviewStore, reviews: list[Review]) -> None:
    """Each finding names a line of its file, the one with the fault; a fix changes the code, and says from what to what."""
    fixed = 0
    for review in reviews:
        for version in (await service.list_versions(store, review.review_id)).items:
            files = _files(await service.read_code(store, version))
            for found in await service.list_findings(store, version):
                assert found.line_number is not None
                line = files[found.file_path][found.line_number - 1].strip()
                assert line == CODE[found.rule_id or ""].wrong
            details = version.fix_details
            if details is not None and details.fix_version == version.version:
                fixed += 1
                before = await service.get_version(store, review.review_id, version.version - 1)
                assert before.code.sha256 != version.code.sha256 or before.code.place
                assert all(each.original_code != each.applied_code for each in details.fixes_applied)
    assert fixed > 10


def _files(code: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in code.splitlines():
        if line.startswith("# ==> "):
            lines = found[line[6:-4]] = []
        else:
            lines.append(line)
    return found


def test_the_same_seed_is_the_same_month(run: Run[Any], tmp_path: Path) -> None:
    """Two loads from one seed are the same, item by item; without a rebuild no statistic is made."""

    async def items() -> list[Any]:
        async with connect_async("memory:", entropy=SeededEntropy(6)) as db:
            store = ReviewStore(db, FolderBlobs(tmp_path / "blobs"))
            await _loaded(store, reviews=40, rebuild=False)
            page = await db.scan_table(Reviews)
            return [entity.model_dump() async for entity in page]

    assert run(items()) == run(items())


def test_the_catalogue_is_what_it_should_be() -> None:
    """Forty issues and forty stacks, each named once."""
    assert len({issue.rule_id for issue in ISSUES}) == len(ISSUES) >= 40
    assert len(set(STACKS)) == 40
    assert CODE.keys() == {issue.rule_id for issue in ISSUES}
