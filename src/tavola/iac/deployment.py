"""Create the tables of a design, or change existing ones to match it, one change at a time.

Nothing is stored between runs: the deployed tables are compared again, so an interrupted deployment continues where it stopped. Changes that remove
or replace something need permission. No table is ever deleted: a table with another key is another table, and its items must be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.connection import Connection
from tavola.client.effects import Call, Program
from tavola.client.table_changes import (
    KmsKeyMissing,
    TableChange,
    create_table,
    is_active,
    is_allowed_later,
    is_key_to_create,
    order_changes,
    wait_until_active,
)
from tavola.iac.changes import DesignChange, TableComparison, compare_live
from tavola.iac.design_backend import blueprint_of
from tavola.iac.errors import DeployError
from tavola.model.document import Design, TableDesign
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault

WaitForTable = Callable[[str], None]  # returns when a table and its indexes are active
StepListener = Callable[[str], None]  # called with each step before it is made

_DROP, _REPLACE = "--drop", "--allow-replacement"
_HAND, _INFRASTRUCTURE, _BACKFILL = "a manual copy", "infrastructure", "tavola backfill"
_MANUAL_STEPS = {"replace": _HAND, "elsewhere": _INFRASTRUCTURE, "rewrite": _BACKFILL}


@dataclass(frozen=True, slots=True)
class DeployPermissions:
    """What a deployment may do besides adding and changing."""

    drop: bool = False  # remove what the design does not have
    replace: bool = False  # drop and recreate something: an index, a stream, a TTL


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that was made, with a note if something remains to be done."""

    change: DesignChange
    note: str = ""


def required_option(change: DesignChange, table: TableDesign, allowed: DeployPermissions) -> str | None:
    """Return the option or the manual step that a change still needs; None if `deploy` may make it."""
    if not change.parts:
        return _MANUAL_STEPS.get(change.effect, _HAND)
    if allowed.drop:
        return None
    replaces = len(change.parts) > 1 or len(change.calls) > 1
    indexes = {index.name for index in table.indexes}
    needs = {name for part in change.parts for name in part.needs}
    if needs - indexes or (change.removes and not replaces):
        return _DROP
    return _REPLACE if (change.removes or needs) and not allowed.replace else None


class Deployment:
    """The tables of a design in the DynamoDB behind a connection."""

    def __init__(
        self,
        db: Connection,
        design: Design,
        *,
        names: Mapping[str, str] | None = None,
        allowed: DeployPermissions | None = None,
        wait: WaitForTable | None = None,
    ) -> None:
        self._db = db
        self._tables: dict[str, TableDesign] = {
            (names or {}).get(table.name, table.name): table for table in design.tables
        }
        self._design = design
        self._names = dict(names or {})
        self._allowed = allowed or DeployPermissions()
        self._wait = wait or self._poll
        self._pending: dict[str, tuple[TableChange, ...]] = {}

    def compare(self) -> tuple[TableComparison, ...]:
        """Return the differences, after pending changes of the tables have finished.

        Raises `KmsKeyMissing` where a table would be created with a KMS key that does not exist.
        """
        for name, table in self._tables.items():
            if self._exists(name):
                try:
                    self._wait(name)
                    continue
                except ResourceNotFoundFault:
                    pass  # its deletion has finished
            if is_key_to_create(table.settings.encryption):
                raise KmsKeyMissing(name, str(table.settings.encryption))
        comparisons = compare_live(self._db, self._design, names=self._names)
        self._pending = {comparison.table: comparison.parts for comparison in comparisons}
        return comparisons

    def required_option(self, change: DesignChange) -> str | None:
        """Return the option or the manual step that a change still needs; None if `deploy` may make it."""
        return required_option(change, self._tables[change.table], self._allowed)

    def apply(self, *changes: DesignChange, on_step: StepListener | None = None) -> tuple[AppliedChange, ...]:
        """Make changes in the order that DynamoDB requires, waiting for each; raises `DeployError` before any that
        is not permitted.
        """
        for change in changes:
            option = self.required_option(change)
            if option is not None:
                raise DeployError(
                    change.table, f"{change.what}; this needs {option}. {' '.join(change.warnings)}".rstrip()
                )
        self._refuse_separated(changes)
        done: list[AppliedChange] = []
        for table in dict.fromkeys(change.table for change in changes):
            table_changes = [change for change in changes if change.table == table]
            later = self._apply_parts(
                table, [part for change in table_changes for part in change.parts], on_step
            )
            done += [AppliedChange(change, _describe_postponed(change, later)) for change in table_changes]
        return tuple(done)

    def _refuse_separated(self, changes: tuple[DesignChange, ...]) -> None:
        """Refuse to replace an index without the others that must be dropped first: it would be missing meanwhile."""
        dropped = {(c.table, p.index) for c in changes for p in c.parts if p.kind == "drop index"}
        for change in changes:
            missing = [
                name for part in change.parts for name in part.needs if (change.table, name) not in dropped
            ]
            if missing:
                raise DeployError(
                    change.table,
                    f"{change.what}; apply it together with the change of {' and '.join(missing)}",
                )

    def _apply_parts(
        self, table: str, parts: list[TableChange], on_step: StepListener | None
    ) -> list[TableChange]:
        """Apply the changes of one table and return those that DynamoDB accepts only later."""
        postponed = []
        for part in order_changes(parts, self._pending.get(table, ())):
            if on_step is not None:
                on_step(f"{table}: {'creating the table' if part.kind == 'create' else part}")
            if part.kind == "create":
                self._db.run(create_table(blueprint_of(self._tables[table], table)))
                self._wait(table)
            try:
                for call in part.calls:
                    self._db.run(_send(call))
                    self._wait(table)
            except ValidationFault as fault:
                if not is_allowed_later(part, fault):
                    raise
                postponed.append(part)
        return postponed

    def _exists(self, name: str) -> bool:
        try:
            self._db.run(_send(Call("DescribeTable", {"TableName": name})))
        except ResourceNotFoundFault:
            return False
        return True

    def _poll(self, name: str) -> None:
        self._db.run(wait_until_active(name))


def _describe_postponed(change: DesignChange, later: list[TableChange]) -> str:
    postponed = [part for part in change.parts if part in later]
    if not postponed:
        return ""
    ended = " the old TTL is disabled;" if len(postponed) < len(change.parts) else ""
    return f"DynamoDB allows one TTL change per hour:{ended} deploy again later"


def backfill_progress(described: Mapping[str, Any]) -> int | None:
    """Return how many items an index that is being built has; None if the table and its indexes are active.

    Raises `TableUnusable` if they never become active.
    """
    if is_active(described):
        return None
    indexes = described.get("GlobalSecondaryIndexes", ())
    return max(
        (index.get("ItemCount", 0) for index in indexes if index["IndexStatus"] != "ACTIVE"), default=0
    )


def _send(call: Call) -> Program[dict[str, Any]]:
    response: dict[str, Any] = yield call
    return response
