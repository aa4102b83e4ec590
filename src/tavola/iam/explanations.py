"""Explanations of decisions as data: the outcome, the deciding statement, and every rule considered.

Shared by the command line, which describes tables in words, and the studio, which inspects live tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tavola.iam.access_checks import StatedAccessCheck
from tavola.iam.decisions import Outcome
from tavola.iam.errors import IamError
from tavola.iam.guard import ExplainedDecision, Guard
from tavola.iam.policy import PolicyRule, Source
from tavola.iam.principals import Principal
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.requests import parse
from tavola.protocol.resources import GuardResources, TableFacts


class UnknownConditionKey(IamError):
    """The table's key is unknown, but policies depend on key values."""

    code = "key-unknown"

    def __init__(self) -> None:
        super().__init__("Policies depend on key values, but the table's key is unknown.")


class ConditionMisfit(IamError):
    """The query's condition does not use the key of the table or index."""

    def __init__(self) -> None:
        super().__init__("The key condition does not match the described key.")


class DescribedTable:
    """A table described in words instead of read from an engine: `pk sk`, or `a b / c d`."""

    def __init__(
        self, scope: Scope, table_key: str | None, indexes: Sequence[str] = (), policy: str | None = None
    ) -> None:
        """Take the table's key, and index keys as `NAME=pk sk`; `pk:N` is a number."""
        self._scope = scope
        self._policy = policy
        self._types: dict[str, str] = {}
        self._key = None if table_key is None else self._names(table_key)
        self._indexes = {name: self._names(key) for name, _, key in (text.partition("=") for text in indexes)}

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the described table, whatever name is requested."""
        if self._key is None:
            return None
        hashes, ranges = self._key
        return TableFacts(
            arn=name_or_arn if name_or_arn.startswith("arn:") else table_arn(self._scope, name_or_arn),
            hash=hashes[0],
            range=ranges[0] if ranges else None,
            types=self._types,
            indexes=self._indexes,
            policy=self._policy,
        )

    def iterator_stream(self, iterator: str) -> str | None:
        """Return None: only the engine that issued an iterator can read it."""
        return None

    def _names(self, key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the partition and sort attributes of a key description."""
        hashes, _, ranges = key.partition("/") if "/" in key else key.strip().partition(" ")
        both = []
        for words in (hashes, ranges):
            names = [word.partition(":") for word in words.split()]
            self._types |= {name: kind or "S" for name, _, kind in names}
            both.append(tuple(name for name, _, _ in names))
        return both[0], both[1]


def explain_request(
    guard: Guard, operation: str, body: bytes, resources: GuardResources
) -> tuple[ExplainedDecision, ...]:
    """Return the decision on each access check of a JSON request, with its evaluation."""
    name = operation.removeprefix("dynamodb:")
    parsed = parse(name, body)
    checks = list(guard.access_checks(name, parsed, resources))
    if any(check.is_of_items and check.facts is None for check in checks):
        raise UnknownConditionKey
    if name == "Query" and not any(check.values("dynamodb:leadingkeys") for check in checks):
        raise ConditionMisfit
    return tuple(guard.explain_access(check) for check in checks)


def explain_action(
    guard: Guard,
    action: str,
    resource: str,
    scope: Scope,
    *,
    keys: Sequence[str] = (),
    context: Mapping[str, Sequence[str]] | None = None,
    facts: TableFacts | None = None,
    policy: str | None = None,
) -> ExplainedDecision:
    """Return the decision on an action on a resource under stated conditions, given the table's facts or a policy."""
    arn = resource if resource == "*" or resource.startswith("arn:") else table_arn(scope, resource)
    values = {name.lower(): tuple(context_values) for name, context_values in (context or {}).items()}
    if keys:
        values |= dict.fromkeys(("dynamodb:leadingkeys", "dynamodb:firstpartitionkeyvalues"), tuple(keys))
    known = facts or TableFacts(arn=arn, hash="", range=None, types={}, indexes={}, policy=policy)
    named = action if ":" in action else f"dynamodb:{action}"
    return guard.explain_access(StatedAccessCheck(named, arn, known, values))


@dataclass(frozen=True, slots=True)
class DecidingStatement:
    """A statement of a policy and where it is."""

    source: Source
    policy: str
    statement: str
    sid: str | None
    effect: Literal["Allow", "Deny"]


@dataclass(frozen=True, slots=True)
class ConsideredStatement(DecidingStatement):
    """A statement that was considered, and its outcome."""

    outcome: Outcome
    condition: str | None  # the condition that does not hold


@dataclass(frozen=True, slots=True)
class ExplainedAccess:
    """One action on one resource: whether it is allowed, the deciding statement, and all considered ones."""

    action: str
    resource: str
    allowed: bool
    reason: str
    decided_by: DecidingStatement | None
    considered: tuple[ConsideredStatement, ...]


@dataclass(frozen=True, slots=True)
class AccessExplanation:
    """The decision on every access of a request, in the format of `tavola iam explain --json`."""

    principal: str
    allowed: bool
    accesses: tuple[ExplainedAccess, ...]


def render_explanation(principal: Principal, explained: Sequence[ExplainedDecision]) -> AccessExplanation:
    """Return decisions as data: whether everything is allowed, and what decided each check."""
    return AccessExplanation(
        principal.arn,
        all(explanation.decision.allowed for explanation in explained),
        tuple(_render_decision(explanation) for explanation in explained),
    )


def _render_decision(explained: ExplainedDecision) -> ExplainedAccess:
    decision = explained.decision
    return ExplainedAccess(
        explained.action,
        explained.resource,
        decision.allowed,
        decision.reason,
        None if decision.rule is None else DecidingStatement(*_statement(decision.rule)),
        tuple(
            ConsideredStatement(*_statement(evaluated.rule), evaluated.outcome, evaluated.place)
            for evaluated in explained.evaluated
        ),
    )


def _statement(rule: PolicyRule) -> tuple[Source, str, str, str | None, Literal["Allow", "Deny"]]:
    return rule.source, rule.policy, rule.place, rule.sid, "Deny" if rule.denies else "Allow"
