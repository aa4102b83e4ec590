"""Faults: every error response of DynamoDB, as an exception with code, status, message and whether it is retryable.

A fault is raised where its rule is checked and returned unchanged by every backend. AWS uses three namespaces for the
codes and two spellings of the message member; each class knows its own.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from tavola.errors import ErrorKind, TavolaError

_MODELLED = "com.amazonaws.dynamodb.v20120810"
_VALIDATION = "com.amazon.coral.validate"
_SERVICE = "com.amazon.coral.service"

_encode = msgspec.json.Encoder().encode


class Fault(TavolaError):
    """An error response of DynamoDB; `message` is None if AWS sends no text."""

    code: str = "InternalServerError"
    status: ClassVar[int] = 400
    namespace: ClassVar[str] = _MODELLED
    member: ClassVar[str] = "message"  # the name of the message member in the body
    retryable: ClassVar[bool] = False  # whether the same request may succeed later
    remedy = "Change what was asked for, as the sentence above says."

    def __init__(self, message: str | None = None, extra: dict[str, Any] | None = None) -> None:
        self.message = message
        self.extra: dict[str, Any] = {} if extra is None else extra
        super().__init__(message if message is not None else self.code)

    @property
    def type(self) -> str:
        """The `__type` of the body: the code with its namespace."""
        return f"{self.namespace}#{self.code}"

    def body(self) -> bytes:
        """Return the error body as AWS writes it."""
        members: dict[str, Any] = {"__type": self.type}
        if self.message is not None:
            members[self.member] = self.message
        members.update(self.extra)
        return _encode(members)


class ValidationFault(Fault):
    """A request that breaks a rule; the text says which."""

    code = "ValidationException"
    namespace = _VALIDATION

    def __init__(self, message: str) -> None:
        super().__init__(message)


class SerializationFault(Fault):
    """A body that is no JSON (without a text), or JSON of another type than the member has."""

    code = "SerializationException"
    namespace = _SERVICE
    member = "Message"


class UnknownOperationFault(Fault):
    """A target that names no operation, or one that is not served."""

    code = "UnknownOperationException"
    namespace = _SERVICE


class ResourceNotFoundFault(Fault):
    """A table, index or stream that does not exist."""

    code = "ResourceNotFoundException"
    kind = ErrorKind.NOT_FOUND
    remedy = "Look at the name, and at whose it is: --region and --account say so."

    def __init__(self, message: str = "Requested resource not found") -> None:
        super().__init__(message)

    @classmethod
    def of_table(cls, name: str) -> ResourceNotFoundFault:
        """Return the sentence of the control plane, which names the table."""
        return cls(f"Requested resource not found: Table: {name} not found")


class ResourceInUseFault(Fault):
    """A table that exists already, or is changing."""

    code = "ResourceInUseException"
    kind = ErrorKind.CONFLICT


class LimitExceededFault(Fault):
    """Too many control-plane operations, or too many of one thing."""

    code = "LimitExceededException"
    retryable = True


class TableNotFoundFault(Fault):
    """A table that does not exist, as the backup operations say it."""

    code = "TableNotFoundException"
    kind = ErrorKind.NOT_FOUND
    remedy = "Look at the name, and at whose it is: --region and --account say so."

    @classmethod
    def of_table(cls, name: str) -> TableNotFoundFault:
        """Return the sentence that names the table."""
        return cls(f"Table not found: {name}")


class PolicyNotFoundFault(Fault):
    """A resource policy that does not exist, or not in the revision that was expected."""

    code = "PolicyNotFoundException"


class GlobalTableNotFoundFault(Fault):
    """A legacy global table that does not exist, as every one does not."""

    code = "GlobalTableNotFoundException"

    @classmethod
    def of_table(cls, name: str) -> GlobalTableNotFoundFault:
        """Return the sentence that names the table."""
        return cls(f"Global table with name: '{name}' does not exist.")


class ExpiredIteratorFault(Fault):
    """A shard iterator that is older than fifteen minutes."""

    code = "ExpiredIteratorException"


class TrimmedDataAccessFault(Fault):
    """A place in a stream whose records are gone, because they are older than a day."""

    code = "TrimmedDataAccessException"


class TableAlreadyExistsFault(Fault):
    """A table that a restore would have to make, and that is there."""

    code = "TableAlreadyExistsException"
    kind = ErrorKind.CONFLICT

    @classmethod
    def of_table(cls, name: str) -> TableAlreadyExistsFault:
        """Return the sentence that names the table."""
        return cls(f"Table already exists: {name}")


class TableInUseFault(Fault):
    """A table that is being created or deleted, as the backup operations say it."""

    code = "TableInUseException"
    kind = ErrorKind.CONFLICT


class BackupNotFoundFault(Fault):
    """A backup that does not exist."""

    code = "BackupNotFoundException"

    @classmethod
    def of_arn(cls, arn: str) -> BackupNotFoundFault:
        """Return the sentence that names the backup."""
        return cls(f"Backup not found: {arn}")


class BackupInUseFault(Fault):
    """A backup that is being made, or that something is being restored from."""

    code = "BackupInUseException"
    kind = ErrorKind.CONFLICT


class ContinuousBackupsUnavailableFault(Fault):
    """A table whose backups cannot be switched yet."""

    code = "ContinuousBackupsUnavailableException"


class PointInTimeRecoveryUnavailableFault(Fault):
    """A table whose past is not kept."""

    code = "PointInTimeRecoveryUnavailableException"
    remedy = "Keep its past from now on with `tavola backup enable TABLE`."

    @classmethod
    def of_table(cls, name: str) -> PointInTimeRecoveryUnavailableFault:
        """Return the sentence that names the table."""
        return cls(f"Point in time recovery is not enabled for table '{name}'")


class InvalidExportTimeFault(Fault):
    """A time, or a period, outside of what is kept of a table's past."""

    code = "InvalidExportTimeException"


class ExportNotFoundFault(Fault):
    """An export that does not exist."""

    code = "ExportNotFoundException"


class ExportConflictFault(Fault):
    """A token that came again with another export."""

    code = "ExportConflictException"
    kind = ErrorKind.CONFLICT

    def __init__(
        self, message: str = "Export conflict: Duplicate request detected with conflicting parameters"
    ) -> None:
        super().__init__(message)


class ImportNotFoundFault(Fault):
    """An import that does not exist."""

    code = "ImportNotFoundException"


class ImportConflictFault(Fault):
    """A token that came again with another import."""

    code = "ImportConflictException"
    kind = ErrorKind.CONFLICT

    def __init__(
        self, message: str = "Import conflict: Duplicate request detected with conflicting parameters"
    ) -> None:
        super().__init__(message)


class InvalidRestoreTimeFault(Fault):
    """A time outside of what is kept of a table's past."""

    code = "InvalidRestoreTimeException"


class ConditionalCheckFailedFault(Fault):
    """A condition that was false; `item` is the item that made it so, where the caller asked for it."""

    code = "ConditionalCheckFailedException"
    kind = ErrorKind.CONFLICT

    def __init__(self, item: msgspec.Raw | None = None) -> None:
        self.item = item
        super().__init__("The conditional request failed", {} if item is None else {"Item": item})


class DuplicateItemFault(Fault):
    """An item that INSERT would have to make, and that is there."""

    code = "DuplicateItemException"
    kind = ErrorKind.CONFLICT

    def __init__(self, message: str = "Duplicate primary key exists in table") -> None:
        super().__init__(message)


class CancellationReason(Struct, frozen=True):
    """Why one action of a transaction stood in its way; code "None": it did not."""

    code: str
    message: str | None = None
    item: msgspec.Raw | None = None


class TransactionCanceledFault(Fault):
    """A transaction of which nothing was applied, with a reason for each action in the request's order."""

    code = "TransactionCanceledException"
    member = "Message"
    kind = ErrorKind.CONFLICT

    def __init__(self, reasons: list[CancellationReason]) -> None:
        self.reasons = tuple(reasons)
        rendered = []
        for reason in reasons:
            members: dict[str, Any] = {"Code": reason.code}
            if reason.message is not None:
                members["Message"] = reason.message
            if reason.item is not None:
                members["Item"] = reason.item
            rendered.append(members)
        codes = ", ".join(reason.code for reason in reasons)
        super().__init__(
            f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
            {"CancellationReasons": rendered},
        )


class TransactionConflictFault(Fault):
    """A single write that met a transaction on the same item."""

    code = "TransactionConflictException"
    retryable = True
    kind = ErrorKind.CONFLICT

    def __init__(self, message: str = "Transaction is ongoing for the item") -> None:
        super().__init__(message)


class TransactionInProgressFault(Fault):
    """A transaction whose token is still at work."""

    code = "TransactionInProgressException"
    member = "Message"
    retryable = True
    kind = ErrorKind.CONFLICT

    def __init__(
        self, message: str = "The transaction with the given request token is already in progress."
    ) -> None:
        super().__init__(message)


class IdempotentParameterMismatchFault(Fault):
    """A token that came again with another payload."""

    code = "IdempotentParameterMismatchException"
    member = "Message"

    def __init__(self, message: str = "Idempotent parameters did not match") -> None:
        super().__init__(message)


class ItemCollectionSizeLimitExceededFault(Fault):
    """A partition of a table with local indexes that is full."""

    code = "ItemCollectionSizeLimitExceededException"
    kind = ErrorKind.TOO_LARGE

    def __init__(self, message: str = "Collection size exceeded.") -> None:
        super().__init__(message)


class _Throttled(Fault):
    retryable = True
    kind = ErrorKind.THROTTLED

    def __init__(self, message: str, reasons: list[dict[str, str]] | None = None) -> None:
        super().__init__(message, {} if reasons is None else {self.reasons_member: reasons})

    reasons_member: ClassVar[str] = "ThrottlingReasons"


class ProvisionedThroughputExceededFault(_Throttled):
    """More than the provisioned capacity of a table or index."""

    code = "ProvisionedThroughputExceededException"

    def __init__(
        self,
        message: str = "The level of configured provisioned throughput for the table was exceeded. "
        "Consider increasing your provisioning level with the UpdateTable API.",
        reasons: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message, reasons)


class ThrottlingFault(_Throttled):
    """More than an on-demand table can do, or too many control-plane requests."""

    code = "ThrottlingException"
    reasons_member = "throttlingReasons"  # the one member that AWS writes with a small letter

    def __init__(
        self,
        message: str = "Rate of requests exceeds the allowed throughput.",
        reasons: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message, reasons)


class RequestLimitExceededFault(_Throttled):
    """More than the account may ask for."""

    code = "RequestLimitExceeded"

    def __init__(
        self,
        message: str = "Throughput exceeds the current throughput limit for your account.",
        reasons: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message, reasons)


THROTTLING_CODES = frozenset(
    fault.code for fault in (ProvisionedThroughputExceededFault, ThrottlingFault, RequestLimitExceededFault)
)
"""The codes by which a request is refused now that may pass later."""


class InternalServerFault(Fault):
    """A failure of the service's own."""

    code = "InternalServerError"
    status = 500
    retryable = True
    kind = ErrorKind.INTERNAL

    def __init__(
        self, message: str = "The request processing has failed because of an unknown error."
    ) -> None:
        super().__init__(message)


class ServiceUnavailableFault(Fault):
    """A service that is closing, or has too much to do."""

    code = "ServiceUnavailable"
    status = 503
    namespace = _SERVICE
    retryable = True
    kind = ErrorKind.INTERNAL


class AccessDeniedFault(Fault):
    """A caller that no policy allows."""

    code = "AccessDeniedException"
    namespace = _SERVICE
    kind = ErrorKind.DENIED
    remedy = "Ask for a policy that allows it; `tavola iam explain` says what decides."


class MissingAuthenticationTokenFault(Fault):
    """A request without a signature."""

    code = "MissingAuthenticationTokenException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED
    remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that `tavola iam add-key` gave."

    def __init__(self, message: str = "Request is missing Authentication Token") -> None:
        super().__init__(message)


class IncompleteSignatureFault(Fault):
    """A signature that lacks a part."""

    code = "IncompleteSignatureException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED


class InvalidSignatureFault(Fault):
    """A signature that does not match, or is out of its time or scope."""

    code = "InvalidSignatureException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED
    remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that `tavola iam add-key` gave."

    def __init__(
        self,
        message: str = "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for details.",
    ) -> None:
        super().__init__(message)


class UnrecognizedClientFault(Fault):
    """An unknown access key."""

    code = "UnrecognizedClientException"
    namespace = _SERVICE
    retryable = True
    kind = ErrorKind.UNAUTHENTICATED
    remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that `tavola iam add-key` gave."

    def __init__(self, message: str = "The security token included in the request is invalid.") -> None:
        super().__init__(message)


class ExpiredTokenFault(Fault):
    """A session that has ended."""

    code = "ExpiredTokenException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED

    def __init__(self, message: str = "The security token included in the request is expired") -> None:
        super().__init__(message)


AUTHENTICATION_CODES = frozenset(
    {
        *(fault.code for fault in Fault.__subclasses__() if fault.kind is ErrorKind.UNAUTHENTICATED),
        "ExpiredToken",
        "InvalidClientTokenId",
        "IncompleteSignature",
        "SignatureDoesNotMatch",
    }
)
"""The codes for missing, unknown or expired credentials, including those that only other AWS services send."""
