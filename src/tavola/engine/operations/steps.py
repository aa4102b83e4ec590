"""Steps: what a slice of each kind of job does.

A step gets the job's state, works a few milliseconds in the open transaction and returns the state to go
on from, None when there is nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tavola.engine.operations.backups import BACKUP_JOB, backup_abandoned, backup_step
from tavola.engine.operations.bulk import BULK_JOB, bulk_abandoned, bulk_step
from tavola.engine.operations.call import Services
from tavola.engine.operations.exports import EXPORT_JOB, export_abandoned, export_step
from tavola.engine.operations.imports import IMPORT_JOB, import_abandoned, import_step
from tavola.engine.operations.restores import RESTORE_JOB, restore_abandoned, restore_step

Step: TypeAlias = Callable[[Services, dict[str, Any]], dict[str, Any] | None]

STEPS: dict[str, Step] = {
    BACKUP_JOB: backup_step,
    BULK_JOB: bulk_step,
    EXPORT_JOB: export_step,
    IMPORT_JOB: import_step,
    RESTORE_JOB: restore_step,
}

ABANDONED: dict[str, Callable[[Services, dict[str, Any]], None]] = {
    BACKUP_JOB: backup_abandoned,
    BULK_JOB: bulk_abandoned,
    EXPORT_JOB: export_abandoned,
    IMPORT_JOB: import_abandoned,
    RESTORE_JOB: restore_abandoned,
}
"""What becomes of a job that has failed in a way nobody foresaw, where something must."""
