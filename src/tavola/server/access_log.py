"""AccessLog: one record per call in the format of CloudTrail: who called what, when, and the decision.

A record has the names of tables and indexes, the consumed units, and a keyed hash of each item key. The secret of the
hash is in a separate file beside the log: the log alone cannot be used to test guessed keys; with both, the
calls for a known item can be found. Values, attributes, expressions and tokens are never logged (see `scrubbing`).

    note() ── calls ──64 calls or 50 ms──► lines ──after the group commit──► `log_files` thread ──► file

Lines are assembled from cached byte strings, since most calls differ only in key, time and request id. They are
handed to the writing thread after the writes that they describe are durable; if that commit fails, the lines say so.
"""

from __future__ import annotations

import asyncio
import os
from binascii import hexlify
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.folders import PRIVATE_MODE
from tavola.protocol.faults import AccessDeniedFault, Fault, InternalServerFault
from tavola.server.callers import Caller
from tavola.server.errors import AccessLogUnusable
from tavola.server.log_files import LogFiles, check_regular_file
from tavola.server.records import (
    accessed_parameters,
    consumed_units,
    event_time,
    gap_members,
    head_members,
    joined_members,
    named_members,
    resources_of,
)
from tavola.server.scrubbing import decode_body, denying_policy, scrub_message

FLUSH_S: Final = 0.05
BATCH_CALLS: Final = 64
HASH_BYTES: Final = 8
SECRET_BYTES: Final = 32
COUNT_BEGINS: Final = 10**11  # the last twelve digits of an event id: enough for years at 1,000 a second

_TEMPLATES_MAX = 4096
_LATENCIES_US_MAX = 2000  # most calls take less
_LATENCIES = [f"{us / 1000:.3f}".encode() for us in range(_LATENCIES_US_MAX)]

_encode = msgspec.json.Encoder().encode

_Units = float | tuple[float, ...]
_Shape = tuple[str, str | tuple[str | None, ...] | None, bool, _Units, _Units]  # the bool: no key
# Caller, operation, request id, start, end; then the accesses, or else the rest of the line.
_Accesses = ItemAccess | tuple[ItemAccess, ...] | None
_Call = tuple[Caller, str, bytes, float, float, _Accesses, bytes | None]
_MARK = _encode("\x00")[1:-1]  # placeholder for the hash; no table or index name contains it


class AccessLog:
    """Logs every call; `attach` it to an event loop first, `close` it at the end."""

    def __init__(
        self,
        path: Path,
        *,
        file_bytes_max: int = 64 * 1024 * 1024,
        files_max: int = 8,
        clock: Clock = SYSTEM_CLOCK,
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        self._now = clock.now
        self._hasher = blake2b(key=secret_of(path, entropy), digest_size=HASH_BYTES)
        self._files = LogFiles(
            path, file_bytes_max=file_bytes_max, files_max=files_max, format_dropped=self._render_gap
        )
        random = entropy.bytes(10).hex()
        identity = f"{random[:8]}-{random[8:12]}-4{random[13:16]}-a{random[17:20]}"
        self._id_form = f'","eventID":"{identity}-%d"'.encode()
        self._count = self._handed = COUNT_BEGINS
        self._second = -1
        self._time = b""
        self._calls: list[_Call] = []  # without lines yet
        self._chunks: list[bytes] = []  # the lines before them
        self._templates: dict[_Shape, tuple[bytes, bytes]] = {}  # the text before and after the key's hash
        self._loop: asyncio.AbstractEventLoop | None = None
        self._group_is_open: Callable[[], bool] = bool

    def attach(self, loop: asyncio.AbstractEventLoop, group_is_open: Callable[[], bool]) -> None:
        """Flush lines from this loop; `group_is_open` returns whether some writes are not durable yet."""
        self._loop = loop
        self._group_is_open = group_is_open

    def close(self) -> None:
        """Write all remaining lines and close the files."""
        self._hand_over()
        self._files.close()

    def note(
        self,
        caller: Caller,
        operation: str,
        request_id: bytes,
        began_s: float,
        accesses: Sequence[ItemAccess],
        body: bytes,
        fault: Fault | None = None,
        denied: int = 0,
        named: Mapping[str, Any] | None = None,
    ) -> None:
        """Log one call, with its fault if it failed, and the number of denied statements of a batch.

        `named` replaces the parameters and resources that are otherwise found in the body.
        """
        calls = self._calls
        if fault is None and accesses and not denied:
            accessed = accesses[0] if len(accesses) == 1 else tuple(accesses)
            calls.append((caller, operation, request_id, began_s, self._now(), accessed, None))
        else:
            took_us = int((self._now() - began_s) * 1e6)
            rest = self._render_rest(caller, accesses, body, fault, took_us, denied, named)
            calls.append((caller, operation, request_id, began_s, 0.0, None, rest))
        if len(calls) == 1:
            if not self._chunks and self._loop is not None:
                self._loop.call_later(FLUSH_S, self.flush)
        elif len(calls) == BATCH_CALLS:
            self._render_lines()

    def mark_failed(self, request_ids: Collection[bytes]) -> None:
        """Mark calls as failed whose commit failed after they were logged."""
        fault = InternalServerFault()
        self._render_lines()
        lines = b"".join(self._chunks).splitlines(keepends=True)
        for number, line in enumerate(lines):
            record: dict[str, Any] = msgspec.json.decode(line)
            if record["requestID"].encode() in request_ids:
                record |= {"errorCode": fault.code, "errorMessage": fault.message}
                lines[number] = _encode(record) + b"\n"
        self._chunks = [b"".join(lines)]

    def flush(self) -> None:
        """Pass the lines to the writing thread, after the open commit group if there is one."""
        if self._group_is_open() and self._loop is not None:
            self._loop.call_soon(self.flush)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        self._render_lines()
        chunks, self._chunks = self._chunks, []
        if chunks:
            count, self._handed = self._count - self._handed, self._count
            self._files.write(chunks, count)

    def _render_lines(self) -> None:
        """Render the lines of the logged calls.

        Many at once, so that code and data are in the processor's caches: a line rendered between two requests costs
        four times as much.
        """
        calls = self._calls
        if not calls:
            return
        parts: list[bytes] = []
        count, templates, hasher, form = self._count, self._templates, self._hasher, self._id_form
        for caller, operation, request_id, began_s, ended_s, accessed, rest in calls:
            count += 1
            if not self._second <= began_s < self._second + 1:
                self._begin_second(began_s)
            head = caller.heads.get(operation) or self._head(caller, operation)
            if accessed is None:
                assert rest is not None, "a call without accesses was rendered when it was noted"
                parts += (head, self._time, request_id, form % count, rest)
                continue
            if isinstance(accessed, ItemAccess):
                table, index, key, reads, writes, _ = accessed
                shape = (table, index, key is None, reads, writes)
                before, after = templates.get(shape) or self._make_template(shape, (accessed,))
            else:
                key, (before, after) = self._render_accesses(accessed)
            if key is None:
                key_hash = b""
            else:
                hashing = hasher.copy()
                hashing.update(key)
                key_hash = hexlify(hashing.digest())
            took_us = int((ended_s - began_s) * 1e6)
            if 0 <= took_us < _LATENCIES_US_MAX:
                latency = _LATENCIES[took_us]
            else:
                latency = f"{max(0, took_us) / 1000:.3f}".encode()
            tail = caller.tail or _tail(caller)
            parts += (head, self._time, request_id, form % count, before, key_hash, after, latency, tail)
        self._count = count
        self._chunks.append(b"".join(parts))
        calls.clear()

    def _begin_second(self, epoch_s: float) -> None:
        self._second = int(epoch_s)
        self._time = b',"eventTime":"%b","requestID":"' % event_time(epoch_s).encode()

    def _head(self, caller: Caller, operation: str) -> bytes:
        """Return the start of a record, which all calls of one caller and operation share."""
        head = caller.heads[operation] = _encode(head_members(caller, operation))[:-1]
        return head

    def _render_accesses(self, accesses: Sequence[ItemAccess]) -> tuple[bytes | None, tuple[bytes, bytes]]:
        """Return the common key of several accesses with the text around its hash; without one, None and the text."""
        tables, indexes, keys, reads, writes, _ = zip(*accesses, strict=True)
        table, count = tables[0], len(accesses)
        key = keys[0] if keys[-1] is None else keys[-1]  # the last is the partition of a queried index
        if tables.count(table) != count or keys.count(key) + keys.count(None) < count:
            return None, (
                b',%b,"additionalEventData":{"consumed":%b,"latencyMs":'
                % (_encode(self._accessed_members(accesses))[1:-1], _encode(consumed_units(accesses))),
                b"",
            )
        shape = (table, indexes, key is None, reads, writes)
        return key, self._templates.get(shape) or self._make_template(shape, accesses)

    def _accessed_members(self, accesses: Sequence[ItemAccess]) -> dict[str, Any]:
        hashed = [
            access if access.key is None else access._replace(key=self._hash(access.key))
            for access in accesses
        ]
        parameters = accessed_parameters(hashed)
        return {
            "requestParameters": {"tables": parameters} if len(parameters) > 1 else parameters[0],
            "resources": resources_of(dict.fromkeys(access.table for access in accesses)),
        }

    def _make_template(self, shape: _Shape, accesses: Sequence[ItemAccess]) -> tuple[bytes, bytes]:
        """Return, and cache, the text before and after the key's hash in records of such accesses."""
        mark = b"\x00" if accesses[-1].key is not None else None
        (parameters,) = accessed_parameters([access._replace(key=mark) for access in accesses])
        members = {"requestParameters": parameters, "resources": resources_of([accesses[0].table])}
        text = b',%b,"additionalEventData":{"consumed":%b,"latencyMs":' % (
            _encode(members)[1:-1],
            _encode(consumed_units(accesses)),
        )
        before, _, after = text.partition(_MARK)
        if len(self._templates) >= _TEMPLATES_MAX:
            self._templates.clear()
        self._templates[shape] = before, after
        return before, after

    def _hash(self, key: bytes) -> bytes:
        """Return the hash of a key, in hexadecimal."""
        hasher = self._hasher.copy()
        hasher.update(key)
        return hexlify(hasher.digest())

    def _render_rest(
        self,
        caller: Caller,
        accesses: Sequence[ItemAccess],
        body: bytes,
        fault: Fault | None,
        took_us: int,
        denied: int,
        named: Mapping[str, Any] | None,
    ) -> bytes:
        """Return the varying part of a record that accesses several items or none, or failed."""
        request = decode_body(body)
        members: dict[str, Any] = {}
        decision = "denied" if denied and caller.decision == "allowed" else caller.decision
        decided_by: str | None = None
        if fault is not None:
            members["errorCode"] = fault.code
            message = scrub_message(fault, request)
            if message is not None:
                members["errorMessage"] = message
            if isinstance(fault, AccessDeniedFault) and decision == "allowed":
                decision = "denied"
                decided_by = denying_policy(fault)
        if accesses and not denied:
            members |= self._accessed_members(accesses)
        elif accesses:
            members |= joined_members(self._accessed_members(accesses), named_members(caller.scope, request))
        else:
            members |= named_members(caller.scope, request) if named is None else named
        members["additionalEventData"] = {
            "consumed": consumed_units(accesses),
            "latencyMs": max(0, took_us) / 1000,
            "decision": decision,
            **({} if decided_by is None else {"decidedBy": decided_by}),
            **({"deniedStatements": denied} if denied else {}),
            **({"source": caller.source} if caller.source else {}),
        }
        return b",%b\n" % _encode(members)[1:]

    def _render_gap(self, count: int) -> bytes:
        """Return the line that replaces `count` dropped ones."""
        return _encode(gap_members(self._now(), count)) + b"\n"


def _tail(caller: Caller) -> bytes:
    """Return the end of the records of a caller's accepted calls."""
    members = {
        "decision": caller.decision,
        **({"source": caller.source} if caller.source else {}),
    }
    tail = caller.tail = b",%b}\n" % _encode(members)[1:]
    return tail


def hash_key(secret: bytes, key: bytes) -> str:
    """Return the hash of an item key as records show it."""
    return blake2b(key, key=secret, digest_size=HASH_BYTES).hexdigest()


def secret_path(path: Path) -> Path:
    """Return the path of a log's secret."""
    return path.with_name(f"{path.name}.secret")


def secret_of(path: Path, entropy: Entropy = SYSTEM_ENTROPY) -> bytes:
    """Return the secret for the hashes of a log; create it, readable by its owner only, if it does not exist."""
    secret_file = secret_path(path)
    check_regular_file(path)  # before a secret is created beside it
    try:
        try:
            file = os.open(secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
        except FileExistsError:
            secret = bytes.fromhex(secret_file.read_text("ascii"))
        else:
            secret = entropy.bytes(SECRET_BYTES)
            with os.fdopen(file, "w") as opened:
                opened.write(secret.hex() + "\n")
    except OSError as error:
        raise AccessLogUnusable(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise AccessLogUnusable(path, f"{secret_file} does not contain a valid secret") from error
    if len(secret) != SECRET_BYTES:
        raise AccessLogUnusable(path, f"{secret_file} does not contain a valid secret")
    return secret
