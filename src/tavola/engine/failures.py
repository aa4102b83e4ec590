"""Failures: work that was given up after its caller had been answered, and why.

A restore is answered when it begins. If it cannot be finished, the table goes away, as on AWS; there the console
tells why. Here whoever asks for the table, or the backup, that did not come about is told for a day.
"""

from __future__ import annotations

import msgspec

from tavola.engine.storage import Store
from tavola.protocol.instants import instant_text

_KIND = "failure"
_KEPT_S = 86_400.0


class Failure(msgspec.Struct, frozen=True):
    """What was given up, when and why."""

    at_s: float
    what: str
    why: str

    @property
    def sentence(self) -> str:
        """Return it for a person."""
        at = instant_text(round(self.at_s * 1000) * 1000)
        return f"{self.what} was given up at {at}: {self.why}"


def record_failure(store: Store, arn: str, failure: Failure) -> None:
    """Keep why the thing of an ARN did not come about, in the open transaction."""
    store.delete_due(_KIND, failure.at_s)
    store.put_record(_KIND, arn, msgspec.json.encode(failure), due_s=failure.at_s + _KEPT_S)


def failure_of(store: Store, arn: str, now_s: float) -> Failure | None:
    """Return why the thing of an ARN did not come about, if that was lately."""
    data = store.get_record(_KIND, arn)
    failure = None if data is None else msgspec.json.decode(data, type=Failure)
    return failure if failure is not None and now_s < failure.at_s + _KEPT_S else None


def forget_failure(store: Store, arn: str) -> None:
    """Forget it, because the thing is made anew, in the open transaction."""
    store.delete_record(_KIND, arn)
