"""Explanations of decisions as JSON documents: the outcome, the deciding statement, and every rule considered.

Shared by the command line, which describes tables in words, and the studio, which inspects live tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tavola.iam.access_checks import StatedAccessCheck
from tavola.iam.errors import IamError
from tavola.iam.guard import ExplainedDecision, Guard
from tavola.iam.policy import Rule
from tavola.iam.principals import Principal
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.requests import parse
from tavola.protocol.resources import GuardResources, TableFacts


class KeyUnknown(IamError):
    """The table's key is unknown, but policies depend on key values."""

    def __init__(self) -> None:
        super().__init__("Policies go by the values of keys, and nothing says which attribute is one.")


class ConditionMisfit(IamError):
    """The query's condition does not use the key of the table or index."""

    def __init__(self) -> None:
        super().__init__("The key condition does not fit the key that was described.")


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
    asked = list(guard.access_checks(name, parsed, resources))
    if any(each.is_of_items and each.facts is None for each in asked):
        raise KeyUnknown
    if name == "Query" and not any(each.values("dynamodb:leadingkeys") for each in asked):
        raise ConditionMisfit
    return tuple(guard.explain_access(each) for each in asked)


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
    values = {name.lower(): tuple(given) for name, given in (context or {}).items()}
    if keys:
        values |= dict.fromkeys(("dynamodb:leadingkeys", "dynamodb:firstpartitionkeyvalues"), tuple(keys))
    known = facts or TableFacts(arn=arn, hash="", range=None, types={}, indexes={}, policy=policy)
    named = action if ":" in action else f"dynamodb:{action}"
    return guard.explain_access(StatedAccessCheck(named, arn, known, values))


def render_explanation(principal: Principal, explained: Sequence[ExplainedDecision]) -> dict[str, Any]:
    """Return decisions as a document: whether everything is allowed, and what decided each check."""
    return {
        "principal": principal.arn,
        "allowed": all(each.decision.allowed for each in explained),
        "accesses": [_render_decision(each) for each in explained],
    }


def _render_decision(explained: ExplainedDecision) -> dict[str, Any]:
    return {
        "action": explained.action,
        "resource": explained.resource,
        "allowed": explained.decision.allowed,
        "reason": explained.decision.reason,
        "decided_by": None if explained.decision.rule is None else _render_rule(explained.decision.rule),
        "considered": [
            {**_render_rule(each.rule), "outcome": each.outcome, "condition": each.place}
            for each in explained.evaluated
        ],
    }


def _render_rule(rule: Rule) -> dict[str, Any]:
    return {
        "source": rule.source,
        "policy": rule.policy,
        "statement": rule.place,
        "sid": rule.sid,
        "effect": "Deny" if rule.denies else "Allow",
    }
