"""Errors of triggers: a mapping, filter pattern, handler, stream or file that cannot be used."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class TriggerError(TavolaError):
    """Base class: something that a trigger cannot do. A handler that raises is not one of these: it is retried."""

    remedy = "Fix the problem above and start again; the trigger continues from its checkpoint."


class MappingRefused(TriggerError):
    """A setting of an event source mapping that AWS would refuse."""

    kind = ErrorKind.USAGE
    remedy = "Change the option; see `tavola trigger --help`."

    def __init__(self, setting: str, value: object, rule: str) -> None:
        self.setting = setting
        self.value = value
        self.rule = rule
        super().__init__(f"{setting} is {value!r}; {rule}")


class FilterRefused(TriggerError):
    """An invalid filter pattern; `place` is the path to the mistake."""

    kind = ErrorKind.USAGE
    remedy = "Change the option; see `tavola trigger --help`."

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"The filter pattern is invalid at {place}: {reason}" if place else reason)


class HandlerRefused(TriggerError):
    """A handler that cannot be called with an event and a context."""

    kind = ErrorKind.USAGE
    remedy = "Give a function that takes an event and a context, as module:function."


class HandlerBroken(HandlerRefused):
    """A handler whose module cannot be imported because of an error in it."""

    kind = ErrorKind.INVALID

    def __init__(self, module: str, reason: str) -> None:
        self.module = module
        self.reason = reason
        self.remedy = f"Fix the module {module}, or install what it imports, and start again."
        super().__init__(f"cannot import {module}: {reason}")


class DrainUnfinished(TriggerError):
    """A drain that did not reach the end of the stream in time; `left` records wait in memory."""

    def __init__(self, timeout_s: float, left: int, reason: str | None) -> None:
        self.timeout_s = timeout_s
        self.left = left
        self.reason = reason
        failure = "" if reason is None else f"; the last failure was: {reason}"
        super().__init__(
            f"The stream was not drained in {timeout_s:g} s; {left} records are waiting{failure}. "
            "Fix the handler, set maximum_retry_attempts, or give drain a longer timeout"
        )


class HandlerFailing(TriggerError):
    """A drain that does not wait for a handler that fails with unlimited retries; `left` records wait in memory."""

    def __init__(self, left: int, reason: str | None) -> None:
        self.left = left
        self.reason = reason
        failure = "" if reason is None else f" ({reason})"
        super().__init__(f"The handler fails{failure}; at least {left} records are left and will be retried")


class TriggerFileRefused(TriggerError):
    """A checkpoint or dead-letter file that cannot be opened or written; no record is lost."""

    remedy = "Give another file with --checkpoints or --dead-letters, or repair this one."

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


class FileInUse(TriggerFileRefused):
    """A checkpoint file that another trigger is using."""

    kind = ErrorKind.IN_USE
    remedy = "Stop the other trigger, or give another file with --checkpoints."

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            "is used by another running trigger; stop it, or use a separate file for each trigger",
        )
