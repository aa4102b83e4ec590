"""Idempotency tokens of transactions, stored with their writes.

The engine executes one call at a time, so every transaction is strictly serializable without further work. What remains
is the client request token: a transaction with the same token and the same payload, within ten minutes of the first one,
gets its response without being executed again. The token is committed with the writes, so that holds after a restart too.
The ten minutes are store time: setting the clock does not end them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from tavola.engine.storage import Store
from tavola.engine.store_time import StoreTime
from tavola.limits import TRANSACTION_TOKEN_LIFE_S
from tavola.protocol.arns import Scope
from tavola.protocol.faults import IdempotentParameterMismatchFault

_KIND = "token"
_SWEEP_EVERY = 256


class TransactionReceipt(msgspec.Struct, frozen=True):
    """A completed transaction: the digest of its payload, its expiry, and what a replay is billed."""

    digest: str
    expires_at_s: float  # in store time
    reads: list[tuple[str, float]]  # table name or ARN in the request, and the read units of its items


@dataclass(slots=True)
class ClientTokens:
    """The client request tokens of the last ten minutes."""

    store: Store
    time: StoreTime
    _since_sweep: int = _SWEEP_EVERY  # so that the first one after opening sweeps

    def find_receipt(self, scope: Scope, token: str, digest: str) -> TransactionReceipt | None:
        """Return the receipt of an earlier transaction; refuse a token that was used with another payload."""
        data = self.store.get_record(_KIND, _name(scope, token))
        if data is None:
            return None
        receipt = msgspec.json.decode(data, type=TransactionReceipt)
        if receipt.expires_at_s <= self.time.elapsed_s():
            return None
        if receipt.digest != digest:
            raise IdempotentParameterMismatchFault()
        return receipt

    def save_receipt(self, scope: Scope, token: str, digest: str, reads: list[tuple[str, float]]) -> None:
        """Store a token in the transaction of its writes, and occasionally delete expired ones."""
        now_s = self.time.stamp().store_s
        receipt = TransactionReceipt(digest, now_s + TRANSACTION_TOKEN_LIFE_S, reads)
        self.store.put_record(
            _KIND, _name(scope, token), msgspec.json.encode(receipt), due_s=receipt.expires_at_s
        )
        self._since_sweep += 1
        if self._since_sweep >= _SWEEP_EVERY:
            self._since_sweep = 0
            self.store.delete_due(_KIND, now_s)


def digest_payload(payload: Any) -> str:
    """Return the digest of a payload, independent of the order of its members."""
    return blake2b(msgspec.json.encode(payload, order="deterministic"), digest_size=16).hexdigest()


def _name(scope: Scope, token: str) -> str:
    return f"{scope.account}/{scope.region}/{token}"
