"""Policy: a document made into rules for one principal.

A rule has functions where the statement has texts. Variables that only the principal fills are filled, and
conditions that only the principal decides are decided, once; the rest waits for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tavola.iam.conditions import Test, compile_test
from tavola.iam.patterns import Context, Match, Values, action_match, expand, fill, matching, solid_of
from tavola.iam.principals import Principal
from tavola.protocol.policy_documents import PolicyDocument, PolicyStatement, Principals
from tavola.protocol.policy_values import Piece, parse_pieces

Source: TypeAlias = Literal["identity", "boundary", "session", "resource"]
Reach: TypeAlias = Literal["nobody", "account", "everybody", "role", "direct"]
"""How a statement of a resource policy names the principal: not at all, by its account, among everybody, by
the role of its session, by its own name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One statement, ready to be asked."""

    source: Source
    policy: str  # what a person calls it
    place: str
    sid: str | None
    denies: bool
    reach: Reach
    acts: Match  # on an action in small letters
    covers: Callable[[str, Context | None], bool]  # on a resource; a request fills what is open
    is_open: bool  # its resources have variables that a request fills
    tests: tuple[tuple[str, Test], ...]  # with their places
    dead_at: str | None = None  # the place of a condition that never holds for this principal

    @property
    def name(self) -> str:
        """What a person finds it by."""
        return f"{self.policy}, {self.place}{f' ({self.sid})' if self.sid else ''}"

    def failing(self, context: Context) -> str | None:
        """Return the place of the first condition that does not hold, None if all do."""
        for place, test in self.tests:
            if not test(context):
                return place
        return None

    def holds(self, context: Context) -> bool:
        """Tell whether every condition holds."""
        for _, test in self.tests:  # noqa: SIM110 - a generator costs more than the test
            if not test(context):
                return False
        return True


def compile_policy(
    document: PolicyDocument, source: Source, policy: str, principal: Principal, known: Mapping[str, Values]
) -> tuple[Rule, ...]:
    """Return a policy's statements as rules for one principal; `known` is what is known of it."""
    variables = document.has_variables
    return tuple(_rule(each, source, policy, principal, known, variables) for each in document.statements)


def _rule(
    statement: PolicyStatement,
    source: Source,
    policy: str,
    principal: Principal,
    known: Mapping[str, Values],
    variables: bool,
) -> Rule:
    denies = not statement.allows
    covers, is_open = _covers(statement, known, variables)
    tests: list[tuple[str, Test]] = []
    dead_at = None
    for condition in statement.conditions:
        test = compile_test(condition, known, variables=variables, denies=denies)
        if test is False:
            dead_at = dead_at or condition.place
        elif test is not True:
            tests.append((condition.place, test))
    return Rule(
        source=source,
        policy=policy,
        place=statement.place,
        sid=statement.sid,
        denies=denies,
        reach=reach_of(statement, principal) if source == "resource" else "direct",
        acts=_acts(statement),
        covers=covers,
        is_open=is_open,
        tests=tuple(tests),
        dead_at=dead_at,
    )


def reach_of(statement: PolicyStatement, principal: Principal) -> Reach:
    """Return how a statement names a principal."""
    if statement.not_principals is not None:
        spared = statement.not_principals
        # AWS spares nobody whose account, role and own name are not all listed.
        names = {principal.arn, principal.account_arn, *((principal.role_arn,) if principal.role_arn else ())}
        return "nobody" if spared.everybody or names <= set(spared.arns) else "everybody"
    named = statement.principals or Principals(everybody=False)
    if principal.arn in named.arns:
        return "direct"
    if principal.role_arn is not None and principal.role_arn in named.arns:
        return "role"
    if named.everybody:
        return "everybody"
    return "account" if principal.account_arn in named.arns else "nobody"


def _acts(statement: PolicyStatement) -> Match:
    if statement.not_actions is not None:
        spared = [action_match(text) for text in statement.not_actions]
        return lambda action: not any(fits(action) for fits in spared)
    named = [action_match(text) for text in statement.actions or ()]
    if len(named) == 1:
        return named[0]
    return lambda action: any(fits(action) for fits in named)


def _covers(
    statement: PolicyStatement, known: Mapping[str, Values], variables: bool
) -> tuple[Callable[[str, Context | None], bool], bool]:
    """Return what tells whether a resource is meant, and whether it needs a request to tell."""
    inverted = statement.not_resources is not None
    texts = statement.not_resources if inverted else statement.resources
    closed: list[Match] = []
    open_: list[tuple[Piece, ...]] = []
    for text in texts or ():
        pieces = expand(parse_pieces(text, wildcards=True, variables=variables), known)
        solid = solid_of(pieces)
        if solid is None:
            open_.append(pieces)
        else:
            closed.append(matching(solid))

    def covers(resource: str, context: Context | None) -> bool:
        for fits in closed:
            if fits(resource):
                return not inverted
        if open_ and context is not None:
            for pieces in open_:
                solid = fill(pieces, context)
                if solid is not None and matching(solid)(resource):
                    return not inverted
        return inverted

    return covers, bool(open_)
