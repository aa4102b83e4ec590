"""TavolaError, the base of every exception that Tavola raises on purpose.

Each package defines its own subclasses next to the code that raises them. The widest families:

    TavolaError
    ├── Fault              protocol   an error response that DynamoDB defines; the same on every backend
    ├── ValueRefused       values     an attribute value that DynamoDB does not accept
    ├── KeyRefused         keys       an item or key that does not match a key schema
    ├── TemplateRefused    keys       a key template that cannot be declared
    ├── ExpressionError    expressions  an expression that does not parse, check or apply
    ├── ModelError         model      a declaration, query, value or document that the model does not allow
    ├── StoreError         engine     a database file that cannot be opened, read or written
    ├── TransferError      engine     an export or import that cannot be read or written
    ├── ConditionFailed    client     a write whose condition, lock or uniqueness check failed
    ├── TransactionCancelled  client  a transaction that was not applied, with a reason per write
    ├── StreamError        client     a stream or stream record that cannot be read
    ├── BackendError       backends   an endpoint that does not answer, or does not answer as DynamoDB
    ├── PatternError       patterns   an operation that a pattern cannot carry out
    ├── TriggerError       triggers   an event source mapping, filter, handler or file that cannot be used
    ├── IamError           iam        an identity file that cannot be read, or a name missing from it
    ├── IacError           iac        a plan or file that cannot be carried out or overwritten
    ├── LintError          design     a rule that the linter does not have
    └── ProblemError       web        an HTTP error response, ready to be rendered

Every exception carries what a program needs to present it, so that the command line, the applications and the
studio choose an exit code or an HTTP status without a table of exception classes:

    code    a stable identifier for programs, such as "cursor-refused"
    kind    the category, an `ErrorKind`
    remedy  one sentence that says what to do, or None where the message already says it
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ErrorKind(StrEnum):
    """The category of an error: decides the exit code of a command and the status of an HTTP response."""

    USAGE = "usage"  # an argument, option or parameter that the caller has to change
    INVALID = "invalid"  # a value, document or declaration that breaks a rule
    NOT_FOUND = "not_found"
    IN_USE = "in_use"  # a file, port or name that is taken
    CONFLICT = "conflict"  # the stored data does not allow it, often because it changed meanwhile
    DENIED = "denied"  # known caller, not allowed
    UNAUTHENTICATED = "unauthenticated"  # missing, unknown or expired credentials
    TOO_LARGE = "too_large"
    THROTTLED = "throttled"  # retry later
    UNAVAILABLE = "unavailable"  # an address that cannot be reached or listened on
    NOT_INSTALLED = "not_installed"  # an optional dependency is missing
    INTERNAL = "internal"  # Tavola, its store or its environment failed


class _CodeFromClassName:
    """The default `code`: the class name in kebab case. A class that declares `code` passes it to its subclasses."""

    def __get__(self, instance: object, owner: type) -> str:
        return _WORD_STARTS.sub("-", owner.__name__).lower()


class TavolaError(Exception):
    """An error whose message a person can act on; the data behind the message is in attributes.

    `code`, `kind` and `remedy` are class attributes; an instance may override them.
    """

    if TYPE_CHECKING:
        code: str
    else:
        code = _CodeFromClassName()
    kind: ErrorKind = ErrorKind.INVALID
    remedy: str | None = None
