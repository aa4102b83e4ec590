"""Transactions: idempotency tokens, kept with the writes they stand for.

One writer at a time makes every transaction strictly serializable: it sees all that was done before it and
nothing in between. What is left to do is the token: the same one with the same payload, within ten minutes
of completion, is answered and not done again, also after a restart, for it is committed with the writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from tavola.clock import Clock
from tavola.engine.storage import Store
from tavola.limits import TRANSACTION_TOKEN_LIFE_S
from tavola.protocol.arns import Scope
from tavola.protocol.faults import IdempotentParameterMismatchFault

_KIND = "token"
_SWEEP_EVERY = 256


class TransactionReceipt(msgspec.Struct, frozen=True):
    """What is kept of a completed transaction: its payload's digest, its end, what a replay is billed."""

    digest: str
    expires_at_s: float
    reads: list[tuple[str, float]]  # table as the request named it, units of reading its items back


@dataclass(slots=True)
class ClientTokens:
    """The client request tokens of the last ten minutes."""

    store: Store
    clock: Clock
    _since_sweep: int = _SWEEP_EVERY  # the first one after opening sweeps

    def find_receipt(self, scope: Scope, token: str, digest: str) -> TransactionReceipt | None:
        """Return the receipt of a transaction done before; refuse the token of another payload."""
        data = self.store.get_record(_KIND, _name(scope, token))
        if data is None:
            return None
        receipt = msgspec.json.decode(data, type=TransactionReceipt)
        if receipt.expires_at_s <= self.clock.now():
            return None
        if receipt.digest != digest:
            raise IdempotentParameterMismatchFault()
        return receipt

    def save_receipt(self, scope: Scope, token: str, digest: str, reads: list[tuple[str, float]]) -> None:
        """Keep a token in the transaction that did its writes, and sweep out old ones now and then."""
        now_s = self.clock.now()
        receipt = TransactionReceipt(digest, now_s + TRANSACTION_TOKEN_LIFE_S, reads)
        self.store.put_record(
            _KIND, _name(scope, token), msgspec.json.encode(receipt), due_s=receipt.expires_at_s
        )
        self._since_sweep += 1
        if self._since_sweep >= _SWEEP_EVERY:
            self._since_sweep = 0
            self.store.delete_due(_KIND, now_s)


def digest_payload(payload: Any) -> str:
    """Return the digest of a payload, the same whatever the order of its members."""
    return blake2b(msgspec.json.encode(payload, order="deterministic"), digest_size=16).hexdigest()


def _name(scope: Scope, token: str) -> str:
    return f"{scope.account}/{scope.region}/{token}"
