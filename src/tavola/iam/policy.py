"""Policies compiled to rules for one principal.

A rule has functions where its statement has patterns. Variables and conditions that depend only on the principal are
resolved once, at compile time; the others are evaluated per request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tavola.iam.conditions import Test, compile_test
from tavola.iam.patterns import (
    ConditionContext,
    Match,
    Values,
    compile_action,
    compile_pattern,
    expand,
    fill,
    without_variables,
)
from tavola.iam.principals import Principal
from tavola.protocol.policy_documents import PolicyDocument, PolicyStatement, Principals
from tavola.protocol.policy_values import Piece, parse_pieces

Source: TypeAlias = Literal["identity", "boundary", "session", "resource"]
Reach: TypeAlias = Literal["none", "account", "anyone", "role", "direct"]
"""How a statement of a resource policy refers to the principal.

Not at all, by account, by `*`, by the role of its session, or by its own ARN.
"""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One compiled policy statement."""

    source: Source
    policy: str  # display name
    place: str
    sid: str | None
    denies: bool
    reach: Reach
    matches_action: Match  # matches lower-case action names
    # Matches a resource; the request fills variables
    matches_resource: Callable[[str, ConditionContext | None], bool]
    has_open_variables: bool  # its resources contain variables that a request fills
    conditions: tuple[tuple[str, Test], ...]  # (location, condition)
    never_holds_at: str | None = None  # location of a condition that never holds for this principal

    @property
    def name(self) -> str:
        """Policy name, location and Sid, for messages."""
        return f"{self.policy}, {self.place}{f' ({self.sid})' if self.sid else ''}"

    def first_failing(self, context: ConditionContext) -> str | None:
        """Return the location of the first condition that fails, None if all hold."""
        for place, test in self.conditions:
            if not test(context):
                return place
        return None

    def holds(self, context: ConditionContext) -> bool:
        """Return whether every condition holds."""
        for _, test in self.conditions:  # noqa: SIM110 - a generator costs more than the test
            if not test(context):
                return False
        return True


def compile_policy(
    document: PolicyDocument, source: Source, policy: str, principal: Principal, known: Mapping[str, Values]
) -> tuple[PolicyRule, ...]:
    """Compile a policy's statements for one principal; `known` holds its constant condition keys."""
    variables = document.has_variables
    return tuple(
        _rule(statement, source, policy, principal, known, variables) for statement in document.statements
    )


def _rule(
    statement: PolicyStatement,
    source: Source,
    policy: str,
    principal: Principal,
    known: Mapping[str, Values],
    variables: bool,
) -> PolicyRule:
    denies = not statement.allows
    covers, is_open = _compile_resources(statement, known, variables)
    tests: list[tuple[str, Test]] = []
    dead_at = None
    for condition in statement.conditions:
        test = compile_test(condition, known, variables=variables, denies=denies)
        if test is False:
            dead_at = dead_at or condition.place
        elif test is not True:
            tests.append((condition.place, test))
    return PolicyRule(
        source=source,
        policy=policy,
        place=statement.place,
        sid=statement.sid,
        denies=denies,
        reach=principal_reach(statement, principal) if source == "resource" else "direct",
        matches_action=_compile_actions(statement),
        matches_resource=covers,
        has_open_variables=is_open,
        conditions=tuple(tests),
        never_holds_at=dead_at,
    )


def principal_reach(statement: PolicyStatement, principal: Principal) -> Reach:
    """Return how a statement refers to a principal."""
    if principal.kind == "federated":
        return _federated_reach(statement, principal)
    if statement.not_principals is not None:
        exempt = statement.not_principals
        # NotPrincipal exempts a session only if its account, role and session ARN are all listed.
        names = {principal.arn, principal.account_arn, *((principal.role_arn,) if principal.role_arn else ())}
        return "none" if exempt.anyone or names <= set(exempt.arns) else "anyone"
    named = statement.principals or Principals(anyone=False)
    if principal.arn in named.arns:
        return "direct"
    if principal.role_arn is not None and principal.role_arn in named.arns:
        return "role"
    if named.anyone:
        return "anyone"
    return "account" if principal.account_arn in named.arns else "none"


def _federated_reach(statement: PolicyStatement, principal: Principal) -> Reach:
    """Return how a statement refers to a web identity: by its provider only, since `*` means signed callers."""
    provider = ("Federated", principal.arn)
    if statement.not_principals is not None:
        return "none" if provider in statement.not_principals.others else "anyone"
    named = statement.principals or Principals(anyone=False)
    if provider in named.others:
        return "direct"
    return "anyone" if named.anyone and not statement.allows else "none"


def _compile_actions(statement: PolicyStatement) -> Match:
    if statement.not_actions is not None:
        exempt = [compile_action(text) for text in statement.not_actions]
        return lambda action: not any(fits(action) for fits in exempt)
    named = [compile_action(text) for text in statement.actions or ()]
    if len(named) == 1:
        return named[0]
    return lambda action: any(fits(action) for fits in named)


def _compile_resources(
    statement: PolicyStatement, known: Mapping[str, Values], variables: bool
) -> tuple[Callable[[str, ConditionContext | None], bool], bool]:
    """Return a predicate for resources, and whether it depends on the request.

    A trust policy names no resource: it applies to its role.
    """
    if statement.resources is None and statement.not_resources is None:
        return lambda resource, context: True, False
    inverted = statement.not_resources is not None
    texts = statement.not_resources if inverted else statement.resources
    closed: list[Match] = []
    open_: list[tuple[Piece, ...]] = []
    for text in texts or ():
        pieces = expand(parse_pieces(text, wildcards=True, variables=variables), known)
        solid = without_variables(pieces)
        if solid is None:
            open_.append(pieces)
        else:
            closed.append(compile_pattern(solid))

    def covers(resource: str, context: ConditionContext | None) -> bool:
        for fits in closed:
            if fits(resource):
                return not inverted
        if open_ and context is not None:
            for pieces in open_:
                solid = fill(pieces, context)
                if solid is not None and compile_pattern(solid)(resource):
                    return not inverted
        return inverted

    return covers, bool(open_)
