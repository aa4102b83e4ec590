"""Records: what is kept of each export, import and bulk load, from its start to ninety days after.

A record holds the description as AWS answers it, so that describing is reading; it is kept in the transaction
of each slice, so the counts that are shown are those of what is done.
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
    started_at_s: float
    token: str
    digest: str  # of the request, to tell the same from another under the same token
    description: dict[str, Any]
    job: str = ""  # that works on it; one that is gone leaves it failed
    cancelled: bool = False

    @property
    def scope(self) -> Scope:
        """Return whose it is."""
        return Scope(self.account, self.region)

    def with_description(self, **members: Any) -> Transfer:
        """Return the record with members of its description changed."""
        return msgspec.structs.replace(self, description={**self.description, **members})


class Records:
    """The records of one kind."""

    __slots__ = ("_kind", "_store")

    def __init__(self, store: Store, kind: Kind) -> None:
        self._store = store
        self._kind = kind

    def keep(self, transfer: Transfer) -> None:
        """Keep a record as it is now."""
        due_s = transfer.started_at_s + TRANSFER_RECORD_LIFE_S
        self._store.put_record(
            self._kind, _name(transfer.scope, transfer.id), msgspec.json.encode(transfer), due_s
        )

    def find(self, scope: Scope, id_: str) -> Transfer | None:
        """Return a record by its id."""
        data = self._store.get_record(self._kind, _name(scope, id_))
        return None if data is None else msgspec.json.decode(data, type=Transfer)

    def given(self, scope: Scope, token: str, now_s: float) -> Transfer | None:
        """Return what a client's token has started in the last hours."""
        since_s = now_s - TRANSFER_TOKEN_LIFE_S
        for found in self.newest(scope):
            if found.token == token and found.started_at_s > since_s:
                return found
        return None

    def newest(
        self, scope: Scope, before: str | None = None, wanted: Callable[[Transfer], bool] | None = None
    ) -> Iterator[Transfer]:
        """Give the records of an owner, the newest first, from past an id on."""
        prefix = _name(scope, "")
        mine = [(name, data) for name, data in self._store.records(self._kind) if name.startswith(prefix)]
        for name, data in reversed(mine):
            if before is None or name < _name(scope, before):
                found = msgspec.json.decode(data, type=Transfer)
                if wanted is None or wanted(found):
                    yield found

    def sweep(self, now_s: float) -> None:
        """Let go of what is past its time."""
        self._store.delete_due(self._kind, now_s)


def _name(scope: Scope, id_: str) -> str:
    return f"{scope.account}/{scope.region}/{id_}"
