"""Records of exports, imports and bulk loads, kept until ninety days after their start.

A record holds the description in AWS's format, so describing it means reading it. It is saved in the transaction of
each slice, so its counts always match the work done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from tavola.engine.storage import Store
from tavola.limits import TRANSFER_RECORD_LIFE_S, TRANSFER_TOKEN_LIFE_S
from tavola.protocol.arns import Scope

Kind: TypeAlias = Literal["export", "import", "bulk"]


class Transfer(msgspec.Struct, frozen=True):
    """One export, import or bulk load."""

    id: str
    account: str
    region: str
    table: str  # the name
    table_uuid: str
    started_at_s: float  # in store time
    token: str
    digest: str  # of the request, to detect a token reused for another one
    description: dict[str, Any]
    job: str = ""  # the job working on it; a record whose job is gone has failed
    cancelled: bool = False

    @property
    def scope(self) -> Scope:
        """Return its account and region."""
        return Scope(self.account, self.region)

    def with_description(self, **members: Any) -> Transfer:
        """Return the record with changed members of its description."""
        return msgspec.structs.replace(self, description={**self.description, **members})


class TransferRecords:
    """All records of one kind."""

    __slots__ = ("_kind", "_store")

    def __init__(self, store: Store, kind: Kind) -> None:
        self._store = store
        self._kind = kind

    def save(self, transfer: Transfer) -> None:
        """Save a record."""
        due_s = transfer.started_at_s + TRANSFER_RECORD_LIFE_S
        self._store.put_record(
            self._kind, _name(transfer.scope, transfer.id), msgspec.json.encode(transfer), due_s
        )

    def find(self, scope: Scope, id_: str) -> Transfer | None:
        """Return a record by its id."""
        data = self._store.get_record(self._kind, _name(scope, id_))
        return None if data is None else msgspec.json.decode(data, type=Transfer)

    def find_by_token(self, scope: Scope, token: str, store_s: float) -> Transfer | None:
        """Return the transfer that a client token started in the last hours."""
        since_s = store_s - TRANSFER_TOKEN_LIFE_S
        for transfer in self.newest(scope):
            if transfer.token == token and transfer.started_at_s > since_s:
                return transfer
        return None

    def newest(
        self, scope: Scope, before: str | None = None, keep: Callable[[Transfer], bool] | None = None
    ) -> Iterator[Transfer]:
        """Yield the records of an account and region that `keep` accepts, newest first, starting after an id."""
        prefix = _name(scope, "")
        mine = [(name, data) for name, data in self._store.records(self._kind) if name.startswith(prefix)]
        for name, data in reversed(mine):
            if before is None or name < _name(scope, before):
                transfer = msgspec.json.decode(data, type=Transfer)
                if keep is None or keep(transfer):
                    yield transfer

    def sweep(self, store_s: float) -> None:
        """Delete expired records."""
        self._store.delete_due(self._kind, store_s)


def _name(scope: Scope, id_: str) -> str:
    return f"{scope.account}/{scope.region}/{id_}"
