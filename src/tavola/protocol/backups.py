"""Backups: the shapes of the backup operations that are served."""

from __future__ import annotations

from tavola.protocol.fields import ControlTableName, Shape, Unfit, is_control_table
from tavola.protocol.wording import Wording


class DescribeContinuousBackupsRequest(Shape, frozen=True, kw_only=True):
    """What DescribeContinuousBackups is asked."""

    table_name: ControlTableName


def check_continuous(request: DescribeContinuousBackupsRequest, wording: Wording) -> None:
    """Refuse a name that no table can have."""
    if not is_control_table(request.table_name):
        raise Unfit
