"""HTTP as an SDK sends it: the headers of a request, and a small client for what is not timed.

The signature is plausible rather than true: the peers read the credential's scope and do not verify.
"""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.template import Template

_HEADERS: Final = (
    "POST / HTTP/1.1\r\n"
    "Host: 127.0.0.1:{port}\r\n"
    "Accept-Encoding: identity\r\n"
    "X-Amz-Target: DynamoDB_20120810.{target}\r\n"
    "Content-Type: application/x-amz-json-1.0\r\n"
    "User-Agent: aws-sdk/1.0 tavola-benchmark\r\n"
    "X-Amz-Date: 20261101T120000Z\r\n"
    "Authorization: {authorization}\r\n"
    "amz-sdk-invocation-id: 8b3e0a52-5f0c-4b0a-9d0e-6f6a1c1f7a10\r\n"
    "Content-Length: {length}\r\n"
    "\r\n"
)
_AUTHORIZATION: Final = (
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
    "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
)


def http_template(target: str, body: Template, port: int) -> Template:
    """The whole request, headers included, for a body of fixed length."""
    return body.after(
        _HEADERS.format(port=port, target=target, authorization=_AUTHORIZATION, length=body.length)
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, and the body as bytes and as JSON ({} where it is none)."""

    status: int
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The body decoded; an answer that is not a JSON object reads as empty."""
        try:
            decoded = json.loads(self.raw)
        except ValueError:
            return {}
        return decoded if isinstance(decoded, dict) else {}

    @property
    def refusal(self) -> str:
        """Why it is not a 200, in a line: the fault's name and words."""
        body = self.body
        name = str(body.get("__type", "")).rpartition("#")[2]
        words = str(body.get("message") or body.get("Message") or "")
        return " ".join(filter(None, (f"status {self.status}", name, words[:120])))


class Client:
    """One call after another to a server on this machine; a fresh connection for each, for simplicity."""

    def __init__(self, port: int, timeout_s: float = 30.0) -> None:
        self.port = port
        self.timeout_s = timeout_s

    def call(self, target: str, request: Mapping[str, Any] | str) -> Answer:
        """Send one operation; OSError or HTTPException where no answer comes."""
        body = request if isinstance(request, str) else json.dumps(request)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_s)
        try:
            connection.request(
                "POST",
                "/",
                body=body.encode(),
                headers={
                    "X-Amz-Target": f"DynamoDB_20120810.{target}",
                    "Content-Type": "application/x-amz-json-1.0",
                    "X-Amz-Date": "20261101T120000Z",
                    "Authorization": _AUTHORIZATION,
                },
            )
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()
