"""Store: reviews on a connection, with the patterns wired: versions, requests done once, code in blobs, the projector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from pydantic import BaseModel, TypeAdapter

from tavola import AsyncConnection, AsyncTransaction, TransactionCancelled
from tavola.apps.terraform_review.domain import expiry_of
from tavola.apps.terraform_review.drafts import said
from tavola.apps.terraform_review.model import (
    Finding,
    Requests,
    Review,
    ReviewAudit,
    Reviews,
    ReviewVersion,
    RunReview,
)
from tavola.apps.terraform_review.projector import ReviewProjector
from tavola.patterns import Blob, Blobs, BlobStore, Idempotency, Seals, Staged, Swept, Versions

CODE_BYTES_INLINE = 100 * 1024  # code up to this stays in the item, compressed; more goes into the blob store
FINDINGS_TOGETHER = 90  # written in one transaction with their review, which holds a hundred items

_FINDINGS = TypeAdapter(list[Finding])


class Receipt(BaseModel):
    """The answer to a recorded result, given again to who asks again."""

    review_id: str
    version: int
    there: bool = False  # the run was recorded before, by another request


@dataclass(frozen=True, slots=True)
class Draft:
    """A version to be written: the review as it shall be, and the findings that are new with it."""

    review: Review
    findings: Sequence[Finding] = ()


class ReviewStore:
    """Reviews at work on a connection; `blobs` takes code that is too large for an item.

    With a `secret`, nobody can make the seals of the audit trail again who may only write to the table.
    """

    def __init__(
        self,
        db: AsyncConnection,
        blobs: BlobStore,
        *,
        secret: bytes | None = None,
        code_inline_bytes: int = CODE_BYTES_INLINE,
    ) -> None:
        self.db = db
        self.code_inline_bytes = code_inline_bytes
        self.versions = Versions(db, Review, ReviewVersion, ReviewAudit, chained=True, secret=secret)
        self.requests = Idempotency(db, Requests, Receipt, scope="reviews")
        self.seals = Seals(db)
        self.projector = ReviewProjector(db, self.complete)
        self._inside = Blobs(db, blobs, inline=code_inline_bytes)
        self._outside = Blobs(db, blobs, inline=0)

    async def create_tables(self) -> None:
        """Make the table where it is missing."""
        await self.db.create_tables(Reviews)

    def now(self) -> datetime:
        """Return what time it is on the connection's clock."""
        return datetime.fromtimestamp(self.versions.clock.now(), UTC)

    async def keep_code(self, text: str, before: Blob | None = None) -> Blob:
        """Return code as a review holds it; code that did not change is the same blob in every version."""
        data = text.encode()
        if before is not None and before.sha256 == sha256(data).hexdigest():
            return before
        return await (self._outside if len(data) > self.code_inline_bytes else self._inside).keep(data)

    async def read_code(self, blob: Blob) -> str:
        """Return code whole."""
        return (await self._inside.read(blob)).decode()

    async def read_blob(self, blob: Blob) -> bytes:
        """Return what a blob holds; `BlobMissing` or `BlobDamaged` where it is not what was kept."""
        return await self._inside.read(blob)

    async def sweep_blobs(self) -> Swept:
        """Delete blobs that no version has pointed to for a day, as `Blobs.sweep` does: one sweep notes them, the next deletes."""
        return await self._inside.sweep(Reviews)

    async def drafted(self, review: Review, findings: Sequence[Finding]) -> Draft:
        """Return what is to be written; findings that one transaction does not hold are kept whole with the review."""
        more = findings[FINDINGS_TOGETHER:]
        kept = None
        if more:
            kept = await self._inside.keep(_FINDINGS.dump_json(list(more)))
        return Draft(review.model_copy(update={"more_findings": kept}), findings)

    def stage(
        self, tx: AsyncTransaction, before: Review | None, draft: Draft, *, by: str, why: str
    ) -> Staged[Review]:
        """Add a version to a transaction: the review, its version and audit row, new findings, the link from its run."""
        expires = expiry_of(draft.review.created_at)  # of all of it at once: no part goes before another
        after = draft.review.model_copy(update={"expires_at": expires})
        reason = why or said(before, after)
        staged = self.versions.stage(
            tx, before, after, by=by, why=reason, stack_id=after.stack_id, expires_at=expires
        )
        for finding in draft.findings[:FINDINGS_TOGETHER]:
            tx.create(finding)
        tx.create(link_of(staged.record))
        return staged

    async def complete(self, version: Review | ReviewVersion) -> int:
        """Make items of the findings that did not fit into a version's transaction, those that are not yet there; return how many.

        Whoever wrote the version does so at once, and the projector again when it sees it: so none is missing however a program ends.
        """
        if version.more_findings is None:
            return 0
        named = [Finding.Key(finding_id=each, review_id=version.review_id) for each in version.findings]
        if all(await self.db.get_many(named, consistent=True)):
            return 0
        findings, made = await self.kept_with(version), 0
        for at in range(0, len(findings), FINDINGS_TOGETHER):
            some = findings[at : at + FINDINGS_TOGETHER]
            while some:
                there = await self.found(some)
                some = [each for each in some if each.finding_id not in there]
                try:
                    async with (
                        self.db.transaction() as tx
                    ):  # a policy lets findings be written by these alone
                        for finding in some:
                            tx.create(finding)
                    made += len(some)
                    break
                except TransactionCancelled as error:
                    if not any(reason is not None and reason.kind == "exists" for reason in error.reasons):
                        raise  # else the writer and the projector both see to it: look again
        return made

    async def kept_with(self, version: Review | ReviewVersion) -> list[Finding]:
        """Return the findings that are kept whole with a version, because they did not fit into its transaction."""
        if version.more_findings is None:
            return []
        told = json.loads(await self._inside.read(version.more_findings))
        return [Finding.model_validate(each) for each in told]

    async def found(self, findings: Iterable[Finding]) -> dict[str, Finding]:
        """Return those of some findings that are kept already, by their ids."""
        keys = [Finding.Key(finding_id=each.finding_id, review_id=each.review_id) for each in findings]
        kept = await self.db.get_many(keys, consistent=True) if keys else []
        return {each.finding_id: each for each in kept if each is not None}


def link_of(version: Review | ReviewVersion) -> RunReview:
    """Return the link by which a version is found from the run that it names: all of it follows from the version."""
    return RunReview(
        run_id=version.run_id,
        review_id=version.review_id,
        version=version.version,
        created_at=version.changed_at,
        expires_at=version.expires_at,
    )
