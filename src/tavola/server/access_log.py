"""AccessLog: who asked for what, when, and what was decided; one record a call, shaped as CloudTrail's.

A record has names of tables and indexes, units, and a keyed hash of each key; the hash's secret lies beside the
log in a file of its own, so who has the log cannot try values against it, and who has both can find an item's
calls. Values, attributes, expressions and tokens are in no record (see `scrubbing`).

A call is made a line at once, out of parts that are mostly the same from call to call and kept ready. The lines
of 50 ms are handed to a thread that writes them (`log_files`), never before the group of writes
that they tell of is durable: should its commit fail, the lines say so.
"""

from __future__ import annotations

import asyncio
import os
from binascii import hexlify
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.faults import AccessDeniedFault, Fault, InternalServerFault
from tavola.server.callers import Caller
from tavola.server.errors import AccessLogUnusable
from tavola.server.log_files import PRIVATE, LogFiles, check_place
from tavola.server.records import (
    consumed_units,
    event_time,
    gap_members,
    head_members,
    joined_members,
    named_members,
    resources_of,
    touched_parameters,
)
from tavola.server.scrubbing import decode_body, denying_policy, scrub_message

FLUSH_S: Final = 0.05
BATCH_CALLS: Final = 64
HASH_BYTES: Final = 8
SECRET_BYTES: Final = 32
COUNT_BEGINS: Final = (
    10**11
)  # the twelve last digits of an event's id, for twelve years at a thousand a second

_PLACES_MAX = 4096
_MS_MAX = 2000
_MS = [f"{us / 1000:.3f}".encode() for us in range(_MS_MAX)]  # as most calls take no longer

_encode = msgspec.json.Encoder().encode

_Units = float | tuple[float, ...]
_Place = tuple[str, str | tuple[str | None, ...] | None, bool, _Units, _Units]  # True: without a key
# Caller, operation, request's id, beginning, end; what was touched, or else the rest of the line.
_Touched = ItemAccess | tuple[ItemAccess, ...] | None
_Call = tuple[Caller, str, bytes, float, float, _Touched, bytes | None]
_MARK = _encode("\x00")[1:-1]  # where the hash will stand; no name of a table or index has it


class AccessLog:
    """Takes a note of every call; `attach` it to a loop before, `close` it after."""

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
        self._files = LogFiles(path, file_bytes_max=file_bytes_max, files_max=files_max, gap=self._gap)
        random = entropy.bytes(10).hex()
        identity = f"{random[:8]}-{random[8:12]}-4{random[13:16]}-a{random[17:20]}"
        self._id_form = f'","eventID":"{identity}-%d"'.encode()
        self._count = self._handed = COUNT_BEGINS
        self._second = -1
        self._time = b""
        self._calls: list[_Call] = []  # noted, and no lines yet
        self._chunks: list[bytes] = []  # the lines before them
        self._places: dict[_Place, tuple[bytes, bytes]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsettled: Callable[[], bool] = bool

    def attach(self, loop: asyncio.AbstractEventLoop, unsettled: Callable[[], bool]) -> None:
        """Hand lines over from this loop; `unsettled` tells that writes are not durable yet."""
        self._loop = loop
        self._unsettled = unsettled

    def close(self) -> None:
        """Write every line that was noted."""
        self._pass_batch()
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
    ) -> None:
        """Note one call, with the fault that was its answer, and how many statements of a batch were denied."""
        calls = self._calls
        if fault is None and accesses and not denied:
            touched = accesses[0] if len(accesses) == 1 else tuple(accesses)
            calls.append((caller, operation, request_id, began_s, self._now(), touched, None))
        else:
            took_us = int((self._now() - began_s) * 1e6)
            rest = self._rest(caller, accesses, body, fault, took_us, denied)
            calls.append((caller, operation, request_id, began_s, 0.0, None, rest))
        if len(calls) == 1:
            self._begin_batch()
        elif len(calls) == BATCH_CALLS:
            self._write_lines()

    def failed(self, request_ids: Collection[bytes]) -> None:
        """Mend the lines of calls whose answers were held, for their commit has failed."""
        fault = InternalServerFault()
        self._write_lines()
        lines = b"".join(self._chunks).splitlines(keepends=True)
        for place, line in enumerate(lines):
            record: dict[str, Any] = msgspec.json.decode(line)
            if record["requestID"].encode() in request_ids:
                record |= {"errorCode": fault.code, "errorMessage": fault.message}
                lines[place] = _encode(record) + b"\n"
        self._chunks = [b"".join(lines)]

    def flush(self) -> None:
        """Hand the lines over, or wait for the end of the turn if they tell of what is not yet durable."""
        if self._unsettled() and self._loop is not None:
            self._loop.call_soon(self.flush)
        else:
            self._pass_batch()

    def _pass_batch(self) -> None:
        self._write_lines()
        chunks, self._chunks = self._chunks, []
        if chunks:
            count, self._handed = self._count - self._handed, self._count
            self._files.write(chunks, count)

    def _begin_batch(self) -> None:
        if not self._chunks and self._loop is not None:
            self._loop.call_later(FLUSH_S, self.flush)

    def _write_lines(self) -> None:
        """Make lines of the calls that were noted.

        Many at once, because the processor then has code and parts at hand: a line made between two requests
        costs it four times as much.
        """
        calls = self._calls
        if not calls:
            return
        parts: list[bytes] = []
        count, places, hasher, form = self._count, self._places, self._hasher, self._id_form
        for caller, operation, request_id, began_s, ended_s, touched, rest in calls:
            count += 1
            if not self._second <= began_s < self._second + 1:
                self._begin_second(began_s)
            head = caller.heads.get(operation) or self._head(caller, operation)
            if touched is None:
                assert rest is not None, "what touched nothing was told at once"
                parts += (head, self._time, request_id, form % count, rest)
                continue
            if isinstance(touched, ItemAccess):
                table, index, key, reads, writes, _ = touched
                place = (table, index, key is None, reads, writes)
                begins, ends = places.get(place) or self._place(place, (touched,))
            else:
                key, (begins, ends) = self._render_accesses(touched)
            if key is None:
                shown = b""
            else:
                hashing = hasher.copy()
                hashing.update(key)
                shown = hexlify(hashing.digest())
            took_us = int((ended_s - began_s) * 1e6)
            took = _MS[took_us] if 0 <= took_us < _MS_MAX else f"{max(0, took_us) / 1000:.3f}".encode()
            tail = caller.tail or _tail(caller)
            parts += (head, self._time, request_id, form % count, begins, shown, ends, took, tail)
        self._count = count
        self._chunks.append(b"".join(parts))
        calls.clear()

    def _begin_second(self, epoch_s: float) -> None:
        self._second = int(epoch_s)
        self._time = b',"eventTime":"%b","requestID":"' % event_time(epoch_s).encode()

    def _head(self, caller: Caller, operation: str) -> bytes:
        """Return the part of a record that one caller's calls of one operation share."""
        head = caller.heads[operation] = _encode(head_members(caller, operation))[:-1]
        return head

    def _render_accesses(self, accesses: Sequence[ItemAccess]) -> tuple[bytes | None, tuple[bytes, bytes]]:
        """Return the one key of several accesses and what stands around its hash; of many keys, all in one text."""
        tables, indexes, keys, reads, writes, _ = zip(*accesses, strict=True)
        table, many = tables[0], len(accesses)
        key = (
            keys[0] if keys[-1] is None else keys[-1]
        )  # the last is an index's partition, if one was queried
        if tables.count(table) != many or keys.count(key) + keys.count(None) < many:
            return None, (
                b',%b,"additionalEventData":{"consumed":%b,"latencyMs":'
                % (_encode(self._touched_members(accesses))[1:-1], _encode(consumed_units(accesses))),
                b"",
            )
        place = (table, indexes, key is None, reads, writes)
        return key, self._places.get(place) or self._place(place, accesses)

    def _touched_members(self, accesses: Sequence[ItemAccess]) -> dict[str, Any]:
        hashed = [
            access if access.key is None else access._replace(key=self._hash(access.key))
            for access in accesses
        ]
        named = touched_parameters(hashed)
        return {
            "requestParameters": {"tables": named} if len(named) > 1 else named[0],
            "resources": resources_of(dict.fromkeys(access.table for access in accesses)),
        }

    def _place(self, place: _Place, accesses: Sequence[ItemAccess]) -> tuple[bytes, bytes]:
        """Return what stands before and behind the key's hash in a record that accesses these places."""
        mark = b"\x00" if accesses[-1].key is not None else None
        (named,) = touched_parameters([access._replace(key=mark) for access in accesses])
        members = {"requestParameters": named, "resources": resources_of([accesses[0].table])}
        text = b',%b,"additionalEventData":{"consumed":%b,"latencyMs":' % (
            _encode(members)[1:-1],
            _encode(consumed_units(accesses)),
        )
        begins, _, ends = text.partition(_MARK)
        if len(self._places) >= _PLACES_MAX:
            self._places.clear()
        self._places[place] = begins, ends
        return begins, ends

    def _hash(self, key: bytes) -> bytes:
        """Return a key's hash, in hexadecimal."""
        hasher = self._hasher.copy()
        hasher.update(key)
        return hexlify(hasher.digest())

    def _rest(
        self,
        caller: Caller,
        accesses: Sequence[ItemAccess],
        body: bytes,
        fault: Fault | None,
        took_us: int,
        denied: int,
    ) -> bytes:
        """Return the varying part of a record that accesses several items or none, or failed."""
        request = decode_body(body)
        members: dict[str, Any] = {}
        decision = "denied" if denied and caller.decision == "allowed" else caller.decision
        decided_by: str | None = None
        if fault is not None:
            members["errorCode"] = fault.code
            told = scrub_message(fault, request)
            if told is not None:
                members["errorMessage"] = told
            if isinstance(fault, AccessDeniedFault) and decision == "allowed":
                decision = "denied"
                decided_by = denying_policy(fault)
        if accesses and not denied:
            members |= self._touched_members(accesses)
        elif accesses:
            members |= joined_members(self._touched_members(accesses), named_members(caller.scope, request))
        else:
            members |= named_members(caller.scope, request)
        members["additionalEventData"] = {
            "consumed": consumed_units(accesses),
            "latencyMs": max(0, took_us) / 1000,
            "decision": decision,
            **({} if decided_by is None else {"decidedBy": decided_by}),
            **({"deniedStatements": denied} if denied else {}),
        }
        return b",%b\n" % _encode(members)[1:]

    def _gap(self, count: int) -> bytes:
        """Return the line that tells of lines which are missing."""
        return _encode(gap_members(self._now(), count)) + b"\n"


def _tail(caller: Caller) -> bytes:
    """Return the end of a record of a call that was not refused."""
    tail = caller.tail = b",%b}\n" % _encode({"decision": caller.decision})[1:]
    return tail


def key_hash(secret: bytes, key: bytes) -> str:
    """Return the hash by which records name a key."""
    return blake2b(key, key=secret, digest_size=HASH_BYTES).hexdigest()


def secret_path(path: Path) -> Path:
    """Return where the secret of a log lies."""
    return path.with_name(f"{path.name}.secret")


def secret_of(path: Path, entropy: Entropy = SYSTEM_ENTROPY) -> bytes:
    """Return the secret that a log's hashes are made with; the first time it is made, for its owner alone."""
    place = secret_path(path)
    check_place(path)  # before a secret is laid beside it
    try:
        try:
            file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        except FileExistsError:
            secret = bytes.fromhex(place.read_text("ascii"))
        else:
            secret = entropy.bytes(SECRET_BYTES)
            with os.fdopen(file, "w") as opened:
                opened.write(secret.hex() + "\n")
    except OSError as error:
        raise AccessLogUnusable(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise AccessLogUnusable(path, f"{place} holds no secret") from error
    if len(secret) != SECRET_BYTES:
        raise AccessLogUnusable(path, f"{place} holds no secret")
    return secret
