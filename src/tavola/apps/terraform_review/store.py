"""ReviewStore: reviews on a connection, with the patterns they use: versions, idempotent requests, blobs, statistics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from pydantic import BaseModel, TypeAdapter

from tavola import AsyncConnection, AsyncTransaction, TransactionCancelled
from tavola.apps.terraform_review.domain import expiry_time
from tavola.apps.terraform_review.drafts import default_reason
from tavola.apps.terraform_review.model import (
    RecordOutcome,
    Review,
    ReviewAudit,
    ReviewFinding,
    Reviews,
    ReviewVersion,
    RunReview,
)
from tavola.apps.terraform_review.projector import ReviewProjector
from tavola.patterns import Blob, Blobs, BlobStore, DigestReader, Idempotency, Staged, Swept, Versions

# Shorter code is stored in the item, compressed; longer code in the blob store
CODE_BYTES_INLINE = 100 * 1024
FINDINGS_PER_TRANSACTION = 90  # a transaction writes up to a hundred items, the review's own among them

_FINDINGS = TypeAdapter(list[ReviewFinding])


class RecordReceipt(BaseModel):
    """The stored answer to a recorded result, returned again when the request is repeated."""

    review_id: str
    version: int
    already_recorded: bool = False  # by another request


@dataclass(frozen=True, slots=True)
class VersionDraft:
    """A version to write: the review, and the findings that are new in it."""

    review: Review
    findings: Sequence[ReviewFinding] = ()


class ReviewStore:
    """Reviews on a connection; `blobs` holds code that is too large for an item.

    With a `secret`, someone who may only write to the table cannot forge the hash chain of the audit trail.
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
        self.requests = Idempotency(db, RecordOutcome, RecordReceipt, scope="reviews")
        self.digests = DigestReader(db)
        self.projector = ReviewProjector(db, self.write_remaining_findings)
        self._blobs = Blobs(db, blobs, inline=code_inline_bytes)
        self._external_blobs = Blobs(db, blobs, inline=0)

    async def create_tables(self) -> None:
        """Create the table if it is missing."""
        await self.db.create_tables(Reviews)

    def now(self) -> datetime:
        """Return the current time of the connection's clock."""
        return datetime.fromtimestamp(self.versions.clock.now(), UTC)

    async def store_code(self, text: str, previous: Blob | None = None) -> Blob:
        """Return code as a blob; unchanged code keeps the blob of the previous version."""
        data = text.encode()
        if previous is not None and previous.sha256 == sha256(data).hexdigest():
            return previous
        return await (self._external_blobs if len(data) > self.code_inline_bytes else self._blobs).keep(data)

    async def read_blob(self, blob: Blob) -> bytes:
        """Return the content of a blob; raise `BlobMissing` or `BlobDamaged` if it is not what was written."""
        return await self._blobs.read(blob)

    async def sweep_blobs(self) -> Swept:
        """Delete blobs that no version has referenced for a day; one sweep marks them, the next deletes them."""
        return await self._blobs.sweep(Reviews)

    async def prepare_draft(self, review: Review, findings: Sequence[ReviewFinding]) -> VersionDraft:
        """Return a draft; findings beyond those that fit into one transaction are also stored as a blob of the review."""
        remaining = findings[FINDINGS_PER_TRANSACTION:]
        blob = await self._blobs.keep(_FINDINGS.dump_json(list(remaining))) if remaining else None
        return VersionDraft(review.model_copy(update={"more_findings": blob}), findings)

    def stage_version(
        self, tx: AsyncTransaction, before: Review | None, draft: VersionDraft, *, by: str, why: str
    ) -> Staged[Review]:
        """Add a version to a transaction: the review, its version and audit entry, new findings, the link from its run."""
        expires_at = expiry_time(draft.review.created_at)  # all items of a review expire at the same time
        after = draft.review.model_copy(update={"expires_at": expires_at})
        staged = self.versions.stage(
            tx,
            before,
            after,
            by=by,
            why=why or default_reason(before, after),
            stack_id=after.stack_id,
            expires_at=expires_at,
        )
        for finding in draft.findings[:FINDINGS_PER_TRANSACTION]:
            tx.create(finding)
        tx.create(run_link(staged.record))
        return staged

    async def write_remaining_findings(self, version: Review | ReviewVersion) -> int:
        """Create the missing items of findings that did not fit into the version's transaction; return how many.

        The writer of a version calls this at once, and the projector again when it reads the version from the stream, so that
        no finding stays missing if the writer stops in between.
        """
        if version.more_findings is None:
            return 0
        keys = [
            ReviewFinding.Key(finding_id=finding_id, review_id=version.review_id)
            for finding_id in version.findings
        ]
        if all(await self.db.get_many(keys, consistent=True)):
            return 0
        findings, written = await self.read_remaining_findings(version), 0
        for start in range(0, len(findings), FINDINGS_PER_TRANSACTION):
            missing = findings[start : start + FINDINGS_PER_TRANSACTION]
            while missing:
                existing = await self.read_existing_findings(missing)
                missing = [finding for finding in missing if finding.finding_id not in existing]
                try:
                    # The immutability policy allows findings to be written in transactions only.
                    async with self.db.transaction() as tx:
                        for finding in missing:
                            tx.create(finding)
                    written += len(missing)
                    break
                except TransactionCancelled as error:
                    if not any(reason is not None and reason.kind == "exists" for reason in error.reasons):
                        raise  # otherwise writer and projector ran at the same time: check again
        return written

    async def read_remaining_findings(self, version: Review | ReviewVersion) -> list[ReviewFinding]:
        """Return the findings that did not fit into the version's transaction, from their blob."""
        if version.more_findings is None:
            return []
        documents = json.loads(await self._blobs.read(version.more_findings))
        return [ReviewFinding.model_validate(document) for document in documents]

    async def read_existing_findings(self, findings: Iterable[ReviewFinding]) -> dict[str, ReviewFinding]:
        """Return the stored items under the ids of these findings, by id."""
        keys = [
            ReviewFinding.Key(finding_id=finding.finding_id, review_id=finding.review_id)
            for finding in findings
        ]
        stored = await self.db.get_many(keys, consistent=True) if keys else []
        return {finding.finding_id: finding for finding in stored if finding is not None}


def run_link(version: Review | ReviewVersion) -> RunReview:
    """Return the item that leads from a run to a version of its review; it holds only data of the version."""
    return RunReview(
        run_id=version.run_id,
        review_id=version.review_id,
        version=version.version,
        created_at=version.changed_at,
        expires_at=version.expires_at,
    )
