"""Wire: an answer as bytes, with the headers that AWS sends and the checksum that SDKs verify.

What stays the same is kept ready: a head is made once a second for each status and content type, and
request ids are cut from one piece of randomness for many requests. A small body is joined to its head; a
large one is handed on beside it, because copying a megabyte costs more than sending it.
"""

from __future__ import annotations

import time
from http import HTTPStatus

from tavola.clock import Clock
from tavola.entropy import Entropy

try:  # twelve times as fast on a large page; zlib gives the same number where it is missing
    from isal.isal_zlib import crc32
except ImportError:  # pragma: no cover - the extra is installed wherever the tests run
    from zlib import crc32

Payload = bytes | tuple[bytes, bytes]
"""What is sent for one request: the whole answer, or its head and its body."""

JSON = b"application/x-amz-json-1.0"
PLAIN_JSON = b"application/json"
TEXT = b"text/plain"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

REQUEST_ID_CHARACTERS = 52
JOINED_BODY_BYTES_MAX = 8 * 1024

_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
_LETTERS = bytes(_ALPHABET[number % 32] for number in range(256))  # 256 is a multiple of 32: no bias
_IDS_AT_ONCE = 256
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Wire:
    """Makes answers; `refresh` is due once a second, for the date in them."""

    __slots__ = ("_clock", "_date", "_entropy", "_heads", "_ids")

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._ids: list[bytes] = []
        self._heads: dict[tuple[int, bytes, bool], bytes] = {}
        self._date = http_date(clock.now())

    def refresh(self) -> None:
        """Take the present time into the heads."""
        date = http_date(self._clock.now())
        if date != self._date:
            self._date = date
            self._heads.clear()

    def request_id(self) -> bytes:
        """Return an id that no other request has, in AWS's form."""
        if not self._ids:
            self._ids = self._cut_ids()
        return self._ids.pop()

    def answer(
        self, status: int, content_type: bytes, body: bytes, close: bool, request_id: bytes | None = None
    ) -> Payload:
        """Return a whole answer; `close` tells the client that the connection ends with it."""
        head = self._heads.get((status, content_type, close)) or self._head(status, content_type, close)
        if request_id is None:
            ids = self._ids
            request_id = ids.pop() if ids else self.request_id()
        size = len(body)
        if size <= JOINED_BODY_BYTES_MAX:
            return b"%b%b\r\nx-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n%b" % (
                head,
                request_id,
                crc32(body),
                size,
                body,
            )
        return b"%b%b\r\nx-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n" % (
            head,
            request_id,
            crc32(body),
            size,
        ), body

    def headers_only(
        self, status: int, content_type: bytes, body: bytes, close: bool, request_id: bytes | None = None
    ) -> bytes:
        """Return what a HEAD request is answered: the headers of `body` without it."""
        payload = self.answer(status, content_type, body, close, request_id)
        return payload[: len(payload) - len(body)] if isinstance(payload, bytes) else payload[0]

    def _head(self, status: int, content_type: bytes, close: bool) -> bytes:
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Server: Server\r\nDate: {self._date}\r\nContent-Type: {content_type.decode('latin-1')}\r\n"
            f"Connection: {'close' if close else 'keep-alive'}\r\nx-amzn-RequestId: "
        ).encode("latin-1")
        self._heads[status, content_type, close] = head
        return head

    def _cut_ids(self) -> list[bytes]:
        size = REQUEST_ID_CHARACTERS
        letters = self._entropy.bytes(size * _IDS_AT_ONCE).translate(_LETTERS)
        return [letters[start : start + size] for start in range(0, len(letters), size)]


def http_date(epoch_s: float) -> str:
    """Return a time as HTTP writes it; the names are English whatever the machine's language is."""
    t = time.gmtime(epoch_s)
    return (
        f"{_DAYS[t.tm_wday]}, {t.tm_mday:02} {_MONTHS[t.tm_mon - 1]} {t.tm_year} "
        f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} GMT"
    )


def payload_bytes(payload: Payload) -> int:
    """Return how many bytes an answer has on the wire."""
    return len(payload) if isinstance(payload, bytes) else len(payload[0]) + len(payload[1])
