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

_USE_VALID_KEY = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key from `tavola iam add-key`."

_encode = msgspec.json.Encoder().encode


class Fault(TavolaError):
    """An error response of DynamoDB; `message` is None if AWS sends no text."""

    code: str = "InternalServerError"
    status: ClassVar[int] = 400
    namespace: ClassVar[str] = _MODELLED
    member: ClassVar[str] = "message"  # the name of the message member in the body
    retryable: ClassVar[bool] = False  # whether the same request may succeed later
    default_message: ClassVar[str | None] = None

    def __init__(self, message: str | None = None, extra: dict[str, Any] | None = None) -> None:
        self.message = self.default_message if message is None else message
        self.extra: dict[str, Any] = {} if extra is None else extra
        super().__init__(self.message if self.message is not None else self.code)

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
    """The request breaks a rule; the message says which."""

    code = "ValidationException"
    namespace = _VALIDATION

    def __init__(self, message: str) -> None:
        super().__init__(message)


class SerializationFault(Fault):
    """The body is not JSON (no message), or a member has the wrong JSON type."""

    code = "SerializationException"
    namespace = _SERVICE
    member = "Message"


class UnknownOperationFault(Fault):
    """X-Amz-Target does not name an operation."""

    code = "UnknownOperationException"
    namespace = _SERVICE


class ResourceNotFoundFault(Fault):
    """A table, index or stream does not exist."""

    code = "ResourceNotFoundException"
    kind = ErrorKind.NOT_FOUND
    remedy = "Check the name, and the region and account (--region, --account)."
    default_message = "Requested resource not found"

    @classmethod
    def of_table(cls, name: str) -> ResourceNotFoundFault:
        """Return the fault with the control plane's message, which names the table."""
        return cls(f"Requested resource not found: Table: {name} not found")


class ResourceInUseFault(Fault):
    """A table already exists, or is being changed."""

    code = "ResourceInUseException"
    kind = ErrorKind.CONFLICT


class LimitExceededFault(Fault):
    """Too many control plane operations, or too many resources of one kind."""

    code = "LimitExceededException"
    retryable = True


class TableNotFoundFault(Fault):
    """A table does not exist; the backup operations use this code."""

    code = "TableNotFoundException"
    kind = ErrorKind.NOT_FOUND
    remedy = "Check the name, and the region and account (--region, --account)."

    @classmethod
    def of_table(cls, name: str) -> TableNotFoundFault:
        """Return the fault for a table."""
        return cls(f"Table not found: {name}")


class PolicyNotFoundFault(Fault):
    """A resource policy does not exist, or not in the expected revision."""

    code = "PolicyNotFoundException"


class GlobalTableNotFoundFault(Fault):
    """A legacy global table does not exist; Tavola has none."""

    code = "GlobalTableNotFoundException"

    @classmethod
    def of_table(cls, name: str) -> GlobalTableNotFoundFault:
        """Return the fault for a table."""
        return cls(f"Global table with name: '{name}' does not exist.")


class ExpiredIteratorFault(Fault):
    """A shard iterator is older than fifteen minutes."""

    code = "ExpiredIteratorException"


class TrimmedDataAccessFault(Fault):
    """The records at a stream position were trimmed, because they are older than a day."""

    code = "TrimmedDataAccessException"


class TableAlreadyExistsFault(Fault):
    """The target table of a restore already exists."""

    code = "TableAlreadyExistsException"
    kind = ErrorKind.CONFLICT

    @classmethod
    def of_table(cls, name: str) -> TableAlreadyExistsFault:
        """Return the fault for a table."""
        return cls(f"Table already exists: {name}")


class TableInUseFault(Fault):
    """A table is being created or deleted; the backup operations use this code."""

    code = "TableInUseException"
    kind = ErrorKind.CONFLICT


class BackupNotFoundFault(Fault):
    """A backup does not exist."""

    code = "BackupNotFoundException"

    @classmethod
    def of_arn(cls, arn: str) -> BackupNotFoundFault:
        """Return the fault for a backup."""
        return cls(f"Backup not found: {arn}")


class BackupInUseFault(Fault):
    """A backup is being created, or a table is being restored from it."""

    code = "BackupInUseException"
    kind = ErrorKind.CONFLICT


class ContinuousBackupsUnavailableFault(Fault):
    """The continuous backups of a table cannot be changed yet."""

    code = "ContinuousBackupsUnavailableException"


class PointInTimeRecoveryUnavailableFault(Fault):
    """Point-in-time recovery is off for a table."""

    code = "PointInTimeRecoveryUnavailableException"
    remedy = "Turn it on with `tavola backup enable TABLE`; it covers changes from then on."

    @classmethod
    def of_table(cls, name: str) -> PointInTimeRecoveryUnavailableFault:
        """Return the fault for a table."""
        fault = cls(f"Point in time recovery is not enabled for table '{name}'")
        fault.remedy = f"Turn it on with `tavola backup enable {name}`; it covers changes from then on."
        return fault


class InvalidExportTimeFault(Fault):
    """The time or period of an export is outside the recovery window."""

    code = "InvalidExportTimeException"


class ExportNotFoundFault(Fault):
    """An export does not exist."""

    code = "ExportNotFoundException"


class ExportConflictFault(Fault):
    """A client token was used before, with another export."""

    code = "ExportConflictException"
    kind = ErrorKind.CONFLICT
    default_message = "Export conflict: Duplicate request detected with conflicting parameters"


class ImportNotFoundFault(Fault):
    """An import does not exist."""

    code = "ImportNotFoundException"


class ImportConflictFault(Fault):
    """A client token was used before, with another import."""

    code = "ImportConflictException"
    kind = ErrorKind.CONFLICT
    default_message = "Import conflict: Duplicate request detected with conflicting parameters"


class InvalidRestoreTimeFault(Fault):
    """The time of a restore is outside the recovery window."""

    code = "InvalidRestoreTimeException"


class ConditionalCheckFailedFault(Fault):
    """A condition was false; `item` is the current item, if the request asked for it."""

    code = "ConditionalCheckFailedException"
    kind = ErrorKind.CONFLICT

    def __init__(self, item: msgspec.Raw | None = None) -> None:
        self.item = item
        super().__init__("The conditional request failed", {} if item is None else {"Item": item})


class DuplicateItemFault(Fault):
    """The item of an INSERT already exists."""

    code = "DuplicateItemException"
    kind = ErrorKind.CONFLICT
    default_message = "Duplicate primary key exists in table"


class CancellationReason(Struct, frozen=True):
    """Why one action failed a transaction; code "None" if it did not."""

    code: str
    message: str | None = None
    item: msgspec.Raw | None = None


class TransactionCanceledFault(Fault):
    """A transaction was canceled as a whole; it has a reason for each action, in request order."""

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
    """A single write conflicts with a transaction on the same item."""

    code = "TransactionConflictException"
    retryable = True
    kind = ErrorKind.CONFLICT
    default_message = "Transaction is ongoing for the item"


class TransactionInProgressFault(Fault):
    """A transaction with the same token is still in progress."""

    code = "TransactionInProgressException"
    member = "Message"
    retryable = True
    kind = ErrorKind.CONFLICT
    default_message = "The transaction with the given request token is already in progress."


class IdempotentParameterMismatchFault(Fault):
    """A client token was used before, with another request."""

    code = "IdempotentParameterMismatchException"
    member = "Message"
    default_message = "Idempotent parameters did not match"


class ItemCollectionSizeLimitExceededFault(Fault):
    """An item collection of a table with local indexes is full."""

    code = "ItemCollectionSizeLimitExceededException"
    kind = ErrorKind.TOO_LARGE
    default_message = "Collection size exceeded."


class _ThroughputFault(Fault):
    retryable = True
    kind = ErrorKind.THROTTLED
    reasons_member: ClassVar[str] = "ThrottlingReasons"

    def __init__(self, message: str | None = None, reasons: list[dict[str, str]] | None = None) -> None:
        super().__init__(message, {} if reasons is None else {self.reasons_member: reasons})


class ProvisionedThroughputExceededFault(_ThroughputFault):
    """The provisioned capacity of a table or index was exceeded."""

    code = "ProvisionedThroughputExceededException"
    default_message = (
        "The level of configured provisioned throughput for the table was exceeded. "
        "Consider increasing your provisioning level with the UpdateTable API."
    )


class ThrottlingFault(_ThroughputFault):
    """An on-demand table cannot serve more yet, or there are too many control plane requests."""

    code = "ThrottlingException"
    reasons_member = "throttlingReasons"  # the one member that AWS writes in lower case
    default_message = "Rate of requests exceeds the allowed throughput."


class RequestLimitExceededFault(_ThroughputFault):
    """The throughput limit of the account was exceeded."""

    code = "RequestLimitExceeded"
    default_message = "Throughput exceeds the current throughput limit for your account."


THROTTLING_CODES = frozenset(
    fault.code for fault in (ProvisionedThroughputExceededFault, ThrottlingFault, RequestLimitExceededFault)
)
"""The codes of throttled requests, which may succeed later."""


class InternalServerFault(Fault):
    """The service failed."""

    code = "InternalServerError"
    status = 500
    retryable = True
    kind = ErrorKind.INTERNAL
    default_message = "The request processing has failed because of an unknown error."


class ServiceUnavailableFault(Fault):
    """The service is shutting down or overloaded."""

    code = "ServiceUnavailable"
    status = 503
    namespace = _SERVICE
    retryable = True
    kind = ErrorKind.INTERNAL


class AccessDeniedFault(Fault):
    """No policy allows the request, or one denies it."""

    code = "AccessDeniedException"
    namespace = _SERVICE
    kind = ErrorKind.DENIED
    remedy = "Add a policy that allows it; `tavola iam explain` shows which policies decide."


class MissingAuthenticationTokenFault(Fault):
    """The request is not signed."""

    code = "MissingAuthenticationTokenException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED
    remedy = _USE_VALID_KEY
    default_message = "Request is missing Authentication Token"


class IncompleteSignatureFault(Fault):
    """A part of the signature is missing."""

    code = "IncompleteSignatureException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED


class InvalidSignatureFault(Fault):
    """The signature does not match the request, or its date or scope is wrong."""

    code = "InvalidSignatureException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED
    remedy = _USE_VALID_KEY
    default_message = (
        "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for details."
    )


class UnrecognizedClientFault(Fault):
    """The access key is unknown."""

    code = "UnrecognizedClientException"
    namespace = _SERVICE
    retryable = True
    kind = ErrorKind.UNAUTHENTICATED
    remedy = _USE_VALID_KEY
    default_message = "The security token included in the request is invalid."


class ExpiredTokenFault(Fault):
    """The session has ended."""

    code = "ExpiredTokenException"
    namespace = _SERVICE
    kind = ErrorKind.UNAUTHENTICATED
    default_message = "The security token included in the request is expired"


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
