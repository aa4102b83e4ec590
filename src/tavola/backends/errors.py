"""Errors of the backends: what stands between a request and an answer of DynamoDB's."""

from __future__ import annotations

from tavola.client.backend import Unanswered
from tavola.errors import ErrorKind, TavolaError


class BackendError(TavolaError):
    """A backend that cannot be made or asked; a refusal by DynamoDB itself is a `Fault` instead."""


class ExtraMissing(BackendError):
    """What was asked for needs botocore, which is not installed."""

    kind = ErrorKind.NOT_INSTALLED
    remedy = "Install it, or name the file of a store with --store, which needs none."

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} needs botocore, which is not installed: pip install 'tavola[aws]'")


class EndpointUnreachable(BackendError, Unanswered):
    """No answer came from an endpoint.

    Where `sent` is true, the request was sent whole, so whether a write was carried out is not known. Where it is
    false, the endpoint cannot have had all of it: nothing was done, and to ask again does nothing twice.
    """

    code = "endpoint-lost"
    remedy = "Start a server with `tavola serve`, or name another with --endpoint."

    def __init__(self, endpoint: str, reason: str, *, sent: bool = True) -> None:
        self.endpoint = endpoint
        self.reason = reason
        self.sent = sent
        super().__init__(
            f"{endpoint} does not answer ({reason}); check that a server listens there and that no proxy or "
            f"firewall stands between"
        )


class EndpointUntrusted(BackendError):
    """An endpoint that shows a certificate which nobody here vouches for; nothing was sent to it."""

    kind = ErrorKind.UNAVAILABLE
    remedy = "Set AWS_CA_BUNDLE to the PEM file of the certificate that signed it."

    def __init__(self, endpoint: str, reason: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        super().__init__(
            f"The certificate of {endpoint} is not trusted ({reason}); set AWS_CA_BUNDLE to the PEM file of the "
            "certificate that signed it"
        )


class AnswerDamaged(BackendError, Unanswered):
    """The bytes of an answer are not those that the endpoint sent."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        super().__init__(
            f"The answer of {endpoint} does not match its checksum, so it was changed on its way; ask again"
        )


class AnswerUnreadable(BackendError, Unanswered):
    """Something answered, and it was not DynamoDB."""

    remedy = "Name the endpoint of a DynamoDB with --endpoint."

    def __init__(self, endpoint: str, status: int | None) -> None:
        self.endpoint = endpoint
        self.status = status  # None: it was no HTTP either
        told = "with what is no HTTP" if status is None else f"with status {status} and not as DynamoDB does"
        super().__init__(
            f"{endpoint} answered {told}; check that it is an endpoint "
            f"of DynamoDB and not a web page or a proxy"
        )


class CredentialsMissing(BackendError):
    """botocore found no credentials, or could not load them."""

    code = "credentials-missing"
    kind = ErrorKind.UNAUTHENTICATED

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"There are no usable AWS credentials ({reason}); set AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY, or configure a profile with `aws configure`"
        )


class RegionMissing(BackendError):
    """botocore knows no region."""

    code = "credentials-missing"
    kind = ErrorKind.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__(
            'No region is configured; name it, as in connect("aws:eu-west-1"), or set AWS_DEFAULT_REGION'
        )


class PastUnavailable(BackendError):
    """A backend that cannot be read as of a time."""

    kind = ErrorKind.CONFLICT

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} cannot be read as of a time; restore the table to that time with RestoreTableToPointInTime, "
            "and read the new table"
        )


class MockRefused(BackendError):
    """A mock that was asked for what it cannot do."""


def extra_missing(error: ModuleNotFoundError, what: str) -> ExtraMissing:
    """Return the error for a missing botocore; re-raise if another module is missing, which is no extra."""
    if (error.name or "").partition(".")[0] != "botocore":
        raise error
    return ExtraMissing(what)
