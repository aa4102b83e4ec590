"""A backend over HTTP without botocore, for consumers that are started again and again: it is there at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from tavola.backends.errors import EndpointUnreachable
from tavola.backends.responses import parse_response
from tavola.protocol.operations import OPERATIONS


class PlainEndpoint:
    """Meets `Backend`; one thread at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._url = url
        self._connection = HTTPConnection(parts.hostname, parts.port, timeout=20)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response, or raise the fault."""
        headers = {
            "X-Amz-Target": OPERATIONS[operation].target,
            "Content-Type": "application/x-amz-json-1.0",
        }
        try:
            self._connection.request("POST", "/", json.dumps(request), headers)
            answer = self._connection.getresponse()
            body = answer.read()
        except OSError as error:
            self._connection.close()
            raise EndpointUnreachable(self._url, str(error)) from error
        return parse_response(self._url, answer.status, body, answer.headers.get("x-amz-crc32"))

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()
