"""Dead letters: discarded records, as the documents that Lambda sends to an on-failure destination.

A document names the batch and the reason. Lambda includes the records only for S3 destinations; here that is an option. A
document is on disk before the checkpoint passes its records, so a crash between the two may write it twice but never loses it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec

from tavola.triggers.errors import TriggerFileRefused
from tavola.triggers.events import batch_event, utc_text
from tavola.triggers.outcomes import Discard

_FIRST_BYTES = b'{"requestContext":'


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """The shard that a batch was read from, and the function it was for."""

    stream_arn: str
    shard_id: str
    function_arn: str


class DeadLetters(Protocol):
    """Stores the documents of discarded records."""

    def append(self, document: dict[str, Any]) -> None:
        """Store a document durably."""
        ...

    def close(self) -> None:
        """Release resources; does nothing the second time."""
        ...


def failure_document(
    discard: Discard, origin: BatchOrigin, *, request_id: str, now_s: float, payload: bool
) -> dict[str, Any]:
    """Return AWS's on-failure document for discarded records; `payload` adds the records."""
    first, last = discard.records[0], discard.records[-1]
    context: dict[str, Any] = {
        "requestContext": {
            "requestId": request_id,
            "functionArn": origin.function_arn,
            "condition": discard.condition,
            "approximateInvokeCount": discard.invocations,
        }
    }
    if discard.reason is not None:
        context["responseContext"] = {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        }
    context |= {
        "version": "1.0",
        "timestamp": utc_text(now_s, milliseconds=True),
        "DDBStreamBatchInfo": {
            "shardId": origin.shard_id,
            "startSequenceNumber": first.sequence,
            "endSequenceNumber": last.sequence,
            "approximateArrivalOfFirstRecord": utc_text(first.created_at_s),
            "approximateArrivalOfLastRecord": utc_text(last.created_at_s),
            "batchSize": len(discard.records),
            "streamArn": origin.stream_arn,
        },
    }
    if payload:
        context["payload"] = batch_event(discard.records)
    return context


class MemoryDeadLetters:
    """Documents in a list, for tests."""

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []

    def append(self, document: dict[str, Any]) -> None:
        """Append a document."""
        self.documents.append(document)

    def close(self) -> None:
        """Leave the list readable."""


class DeadLetterFile:
    """Documents in a file, one line of JSON each."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._closed = False
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TriggerFileRefused(
                self.path, f"cannot be opened as a dead-letter file: {error.strerror}"
            ) from error
        try:
            self._cut_torn_end()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, document: dict[str, Any]) -> None:
        """Append a document and sync the file."""
        line = msgspec.json.encode(document) + b"\n"
        before = os.fstat(self._file).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, before)  # so that the next line does not continue a partial one
            raise TriggerFileRefused(self.path, f"cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        if not self._closed:
            self._closed = True
            os.close(self._file)

    def __enter__(self) -> DeadLetterFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cut_torn_end(self) -> None:
        """Cut off the partial line of a killed process; the checkpoint has not passed its records yet."""
        content = self.path.read_bytes()
        torn = content[content.rfind(b"\n") + 1 :]
        if not torn:
            return
        if not (torn.startswith(_FIRST_BYTES) or _FIRST_BYTES.startswith(torn)):
            raise TriggerFileRefused(self.path, "ends in a line that is not a dead letter; give another file")
        os.ftruncate(self._file, len(content) - len(torn))
