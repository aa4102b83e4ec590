"""Errors of the backends: failures between a request and DynamoDB's response."""

from __future__ import annotations

from tavola.client.backend import BackendError, ResponseMissing
from tavola.errors import ErrorKind


class ExtraMissing(BackendError):
    """The feature needs botocore, which is not installed."""

    kind = ErrorKind.NOT_INSTALLED
    remedy = "Install it, or use a store file with --store, which does not need it."

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} needs botocore, which is not installed: pip install 'tavola[aws]'")


class EndpointUnreachable(BackendError, ResponseMissing):
    """No response came from an endpoint.

    If `sent` is true, the whole request was sent, so it is unknown whether a write was executed. If it is false, the endpoint
    cannot have received the whole request: nothing was executed, and sending it again is safe.
    """

    code = "endpoint-lost"
    remedy = "Start a server with `tavola serve`, or name another with --endpoint."

    def __init__(self, endpoint: str, reason: str, *, sent: bool = True) -> None:
        self.endpoint = endpoint
        self.reason = reason
        self.sent = sent
        super().__init__(
            f"{endpoint} does not respond ({reason}); check that a server is listening there and that no proxy or "
            f"firewall blocks the connection"
        )


class EndpointUntrusted(BackendError):
    """The certificate of an endpoint is not trusted; nothing was sent."""

    kind = ErrorKind.UNAVAILABLE
    remedy = "Set AWS_CA_BUNDLE to the PEM file of the certificate that signed it."

    def __init__(self, endpoint: str, reason: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        super().__init__(
            f"The certificate of {endpoint} is not trusted ({reason}); set AWS_CA_BUNDLE to the PEM file of the "
            "certificate that signed it"
        )


class ResponseCorrupted(BackendError, ResponseMissing):
    """A response does not match its checksum."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        super().__init__(
            f"The response of {endpoint} does not match its checksum, so it was corrupted in transit; try again"
        )


class ResponseUnreadable(BackendError, ResponseMissing):
    """The endpoint responded, but not as DynamoDB does."""

    remedy = "Use the endpoint of a DynamoDB server with --endpoint."

    def __init__(self, endpoint: str, status: int | None) -> None:
        self.endpoint = endpoint
        self.status = status  # None: the response was not HTTP
        what = (
            "with something other than HTTP"
            if status is None
            else f"with status {status}, and not as DynamoDB does"
        )
        super().__init__(
            f"{endpoint} responded {what}; check that it is a DynamoDB endpoint and not a web page or a proxy"
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
    """No region is configured."""

    code = "credentials-missing"
    kind = ErrorKind.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__("No region is configured; name one, as in aws:eu-west-1, or set AWS_DEFAULT_REGION")


class MockRefused(BackendError):
    """A use of mock() that is not supported."""


def extra_missing(error: ModuleNotFoundError, what: str) -> ExtraMissing:
    """Return the error for a missing botocore; raise the original error if another module is missing."""
    if (error.name or "").partition(".")[0] != "botocore":
        raise error
    return ExtraMissing(what)
