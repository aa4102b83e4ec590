"""A program that is killed while it writes leaves each change whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tavola import connect_async
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import review_id_for_run
from tavola.apps.terraform_review.errors import ReviewMissing
from tavola.apps.terraform_review.model import (
    Review,
    ReviewAudit,
    ReviewFinding,
    Reviews,
    ReviewVersion,
    RunReview,
)
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run


@pytest.mark.parametrize("lines", [9, 20])
def test_killed_in_a_change_all_of_it_or_none(run: Run[Any], tmp_path: Path, lines: int) -> None:
    """What was answered is there after the kill; of what was under way, all six items or none; the seals hold."""
    command = [sys.executable, "-m", "tests.apps.terraform_review.writer", str(tmp_path)]
    answered: dict[str, int] = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            review_id, version = writer.stdout.readline().split()
            answered[review_id] = int(version)
        writer.kill()

    async def look() -> None:
        async with connect_async(f"file:{tmp_path / 'reviews.db'}") as db:
            store = ReviewStore(db, FolderBlobs(tmp_path / "blobs"))
            found: dict[str, dict[type, int]] = {}
            page = await db.scan_table(Reviews)
            async for entity in page:
                if isinstance(entity, Review | ReviewVersion | ReviewAudit | ReviewFinding | RunReview):
                    kinds = found.setdefault(entity.review_id, {})
                    kinds[type(entity)] = kinds.get(type(entity), 0) + 1
            assert answered.keys() <= found.keys()
            for review_id, kinds in found.items():
                review = await service.get_review(store, review_id)
                assert review.version >= answered.get(review_id, 1)
                assert kinds == {
                    Review: 1,
                    ReviewVersion: review.version,
                    ReviewAudit: review.version,
                    ReviewFinding: 6,
                    RunReview: review.version,
                }
                assert await verify_review(store, review_id)
                assert await service.read_code(store, review) == "x" * 200
            with pytest.raises(ReviewMissing):
                await service.get_review(store, review_id_for_run(f"run-{len(found)}"))

    run(look())
