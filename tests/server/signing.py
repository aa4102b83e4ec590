"""Requests signed by botocore's own signer, at a time of the test's choosing, as the server sees them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

JSON = "application/x-amz-json-1.0"
FORM = "application/x-www-form-urlencoded"
HOST = "localhost:8000"


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it arrives: URL, headers with lower-case names, body."""

    url: bytes
    fields: dict[bytes, bytes]
    body: bytes

    def with_field(self, name: bytes, value: bytes | None) -> SignedRequest:
        """Return it with one header changed, or without it."""
        fields = {key: value for key, value in self.fields.items() if key != name}
        return replace(self, fields=fields if value is None else {**fields, name: value})


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs as one client does."""

    key_id: str
    secret: str
    at_s: float
    token: str | None = None
    region: str = "us-east-1"
    service: str = "dynamodb"
    in_query: bool = False
    expires: int = 900
    headers: dict[str, str] = field(default_factory=dict)

    def sign(self, body: bytes = b"{}", target: str = "DynamoDB_20120810.ListTables") -> SignedRequest:
        """Return a request for an operation, with its signature."""
        return self._sign("POST", body, {"X-Amz-Target": target, "Content-Type": JSON})

    def sign_form(self, body: bytes, method: str = "POST") -> SignedRequest:
        """Return a request of the query protocol, with its signature."""
        return self._sign(method, body, {"Content-Type": FORM})

    def _sign(self, method: str, body: bytes, headers: dict[str, str]) -> SignedRequest:
        request = AWSRequest(
            method, f"http://{HOST}/", data=body, headers={**headers, "Host": HOST, **self.headers}
        )
        credentials = Credentials(self.key_id, self.secret, self.token)
        signer = (
            _QueryAuth(credentials, self.service, self.region, expires=self.expires)
            if self.in_query
            else SigV4Auth(credentials, self.service, self.region)
        )
        moment = datetime.fromtimestamp(self.at_s, UTC)
        with patch("botocore.auth.get_current_datetime", lambda: moment):
            signer.add_auth(request)
        parts = urlsplit(request.url)
        url = parts.path + (f"?{parts.query}" if parts.query else "")
        fields = {name.lower().encode(): str(value).encode() for name, value in request.headers.items()}
        return SignedRequest(url.encode(), fields, body)


class _QueryAuth(SigV4QueryAuth):  # type: ignore[misc]  # botocore has no types
    """The signature in the query, with an unchanged body:

    botocore moves the body into the query for some services.
    """

    def _modify_request_before_signing(self, request: Any) -> None:
        body, request.data = request.data, None
        super()._modify_request_before_signing(request)
        request.data = body
