"""A process that records reviews and fixes them in a file, for ever: a test kills it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tavola import connect_async
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import FolderBlobs
from tests.apps.terraform_review.conftest import fix_of, result


async def main(folder: Path) -> None:
    """Write until the end comes, and tell each change once it is answered."""
    async with connect_async(f"file:{folder / 'reviews.db'}") as db:
        store = ReviewStore(db, FolderBlobs(folder / "blobs"), code_inline_bytes=100)
        await store.create_tables()
        number = 0
        while True:
            submitted = result(
                f"run-{number}", *(f"Issue {which}" for which in range(6)), terraform_code="x" * 200
            )
            review = (await service.record_review(store, submitted)).review
            sys.stdout.write(f"{review.review_id} 1\n")
            sys.stdout.flush()
            await service.apply_fix(store, review.review_id, fix_of(review, "Issue 0"), by="eng-02")
            sys.stdout.write(f"{review.review_id} 2\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
