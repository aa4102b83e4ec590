"""Decisions: is an action on a resource allowed, and by which statement?

Four kinds of policy can take part. *Identity* policies are attached to the caller. A *resource* policy is attached to a
table or stream and names principals. A *permissions boundary* and a *session policy* grant nothing; they limit what
identity policies grant. The order of evaluation is AWS's:

    any policy has a matching Deny ────────────────────────────► denied (explicit)
      │ no
    caller is the root of the owning account ──────────────────► allowed
      │ no
    same account, resource policy names this very principal ───► allowed, boundary or not
      │ no
    enough Allows?    same account:  identity OR resource
                      cross account: identity AND resource ────► if not, denied (implicit)
      │ yes
    boundary and session policy, where set, allow it too ──────► allowed, otherwise denied (implicit)

A statement of a resource policy that names the caller's own *account* only delegates to the account's identity policies
and does not count as an Allow. Conditions decide whether a statement matches at all; see `conditions`.

Evaluating all statements for every request would be slow, so it happens in three steps, each reused by more requests
than the next:

    compile_policy  per principal          resolves variables and conditions that depend on the principal only
    select_rules    per action + resource  keeps the rules whose action and resource match; most requests are settled
                                           here, when an unconditional Allow and no Deny is left
    decide          per request            evaluates the remaining conditions

Not supported: service control policies and resource control policies of AWS Organizations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tavola.iam.patterns import ConditionContext
from tavola.iam.policy import PolicyRule, Source
from tavola.iam.principals import Principal

Outcome: TypeAlias = Literal[
    "decided", "applies", "condition", "another action", "another resource", "another principal"
]

_WORDS: dict[Source, str] = {
    "identity": "identity-based policy",
    "boundary": "permissions boundary",
    "session": "session policy",
    "resource": "resource-based policy",
}
_UNDELETABLE = "dynamodb:deleteresourcepolicy"


@dataclass(frozen=True, slots=True)
class PrincipalPolicies:
    """All identity-side policies of a principal; None means there is no such policy and no such limit."""

    principal: Principal
    identity: tuple[PolicyRule, ...]
    boundary: tuple[PolicyRule, ...] | None = None
    session: tuple[PolicyRule, ...] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a check, with the rule that decided it or the kind of policy that lacks an Allow."""

    allowed: bool
    rule: PolicyRule | None = None  # the rule that allowed or denied; None: no rule did
    missing_allow: Source | None = None  # where an Allow is missing

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        if self.rule is not None:
            return f"{'allowed' if self.allowed else 'denied'} by {self.rule.name}"
        if self.allowed:
            return "allowed: the root user may do everything in its account"
        assert self.missing_allow is not None, "a denial names a rule or a missing Allow"
        return f"denied: no {_WORDS[self.missing_allow]} allows it"


@dataclass(frozen=True, slots=True)
class ApplicableRules:
    """The rules that can apply to one action on one resource; reused by all requests with that pair."""

    denials: tuple[PolicyRule, ...]
    identity: tuple[PolicyRule, ...]
    boundary: tuple[PolicyRule, ...] | None
    session: tuple[PolicyRule, ...] | None
    grants: tuple[PolicyRule, ...]  # of the resource policy
    cross_account: bool  # the resource belongs to another account
    root: bool
    identity_only: bool  # only identity policies apply
    always_allowed: bool = False  # allowed for every possible request


@dataclass(frozen=True, slots=True)
class EvaluatedRule:
    """A rule and how it was evaluated, for `explain`."""

    rule: PolicyRule
    outcome: Outcome
    place: str | None = None  # the location of the condition that failed


def select_rules(
    policies: PrincipalPolicies,
    resource_rules: Sequence[PolicyRule],
    action: str,
    resource: str,
    *,
    cross_account: bool,
) -> ApplicableRules:
    """Return the rules that can apply to an action on a resource, for any request."""
    action = action.lower()
    root = policies.principal.kind == "root"

    def matching(rules: Sequence[PolicyRule]) -> Iterator[PolicyRule]:
        for rule in rules:
            if (
                rule.never_holds_at is None
                and rule.matches_action(action)
                and (rule.has_open_variables or rule.matches_resource(resource, None))
            ):
                yield rule

    identity = tuple(matching(policies.identity))
    boundary = None if policies.boundary is None else tuple(matching(policies.boundary))
    session = None if policies.session is None else tuple(matching(policies.session))
    resource_matches = tuple(rule for rule in matching(resource_rules) if rule.reach != "none")
    if root and not cross_account and action == _UNDELETABLE:
        resource_matches = ()  # a root user can always remove a resource policy, so no account locks itself out
    everything = (*identity, *(boundary or ()), *(session or ()), *resource_matches)
    selected = ApplicableRules(
        denials=tuple(rule for rule in everything if rule.denies),
        identity=_allow_rules(identity),
        boundary=None if boundary is None else _allow_rules(boundary),
        session=None if session is None else _allow_rules(session),
        grants=_allow_rules(resource_matches),
        cross_account=cross_account,
        root=root,
        identity_only=not root
        and not cross_account
        and not resource_matches
        and boundary is None
        and session is None,
    )
    return _mark_always_allowed(selected)


def decide(rules: ApplicableRules, context: ConditionContext, resource: str) -> Decision:
    """Decide one check with the values of its request; the module docstring gives the order."""
    denial = _first_match(rules.denials, context, resource)
    if denial is not None:
        return Decision(allowed=False, rule=denial)
    if rules.identity_only:
        allowing = _first_match(rules.identity, context, resource)
        return (
            Decision(allowed=False, missing_allow="identity")
            if allowing is None
            else Decision(True, allowing)
        )
    granted = _first_match(rules.grants, context, resource)
    if not rules.cross_account and rules.root:
        return Decision(allowed=True)
    if not rules.cross_account:
        direct = _first_match([rule for rule in rules.grants if rule.reach == "direct"], context, resource)
        if direct is not None:
            return Decision(allowed=True, rule=direct)
        if granted is not None and granted.reach == "account":
            # A statement that names the account delegates to the account's own policies and grants nothing itself.
            granted = _first_match(
                [rule for rule in rules.grants if rule.reach != "account"], context, resource
            )
    allowing = _first_match(rules.identity, context, resource)
    if rules.cross_account:
        if allowing is None and not rules.root:
            return Decision(allowed=False, missing_allow="identity")
        if granted is None:
            return Decision(allowed=False, missing_allow="resource")
    elif allowing is None and granted is None:
        return Decision(allowed=False, missing_allow="identity")
    for source, bound in (("boundary", rules.boundary), ("session", rules.session)):
        if bound is not None and _first_match(bound, context, resource) is None:
            return Decision(allowed=False, missing_allow="boundary" if source == "boundary" else "session")
    return Decision(allowed=True, rule=allowing or granted)


def evaluate_rules(
    rules: Sequence[PolicyRule], decision: Decision, action: str, resource: str, context: ConditionContext
) -> tuple[EvaluatedRule, ...]:
    """Return how each rule was evaluated for a decision."""
    return tuple(_evaluate_rule(rule, decision, action.lower(), resource, context) for rule in rules)


def denial_message(decision: Decision, principal: Principal, action: str, resource: str) -> str:
    """Return AWS's AccessDenied message."""
    message = f"User: {principal.arn} is not authorized to perform: {action} on resource: {resource}"
    if decision.rule is not None:
        words = _WORDS[decision.rule.source]
        article = "an" if words.startswith("i") else "a"
        return f"{message} with an explicit deny in {article} {words}"
    assert decision.missing_allow is not None, "a denial names a rule or a missing Allow"
    return f"{message} because no {_WORDS[decision.missing_allow]} allows the {action} action"


def _evaluate_rule(
    rule: PolicyRule, decision: Decision, action: str, resource: str, context: ConditionContext
) -> EvaluatedRule:
    if rule.reach == "none":
        return EvaluatedRule(rule, "another principal")
    if not rule.matches_action(action):
        return EvaluatedRule(rule, "another action")
    if not rule.matches_resource(resource, context):
        return EvaluatedRule(rule, "another resource")
    place = rule.never_holds_at or rule.first_failing(context)
    if place is not None:
        return EvaluatedRule(rule, "condition", place)
    return EvaluatedRule(rule, "decided" if rule is decision.rule else "applies")


def _allow_rules(rules: Sequence[PolicyRule]) -> tuple[PolicyRule, ...]:
    """Return the Allow rules, unconditional ones first."""
    return tuple(
        sorted(
            (rule for rule in rules if not rule.denies),
            key=lambda rule: bool(rule.conditions or rule.has_open_variables),
        )
    )


def _first_match(rules: Sequence[PolicyRule], context: ConditionContext, resource: str) -> PolicyRule | None:
    for rule in rules:
        if rule.holds(context) and (not rule.has_open_variables or rule.matches_resource(resource, context)):
            return rule
    return None


def _mark_always_allowed(rules: ApplicableRules) -> ApplicableRules:
    """Mark the rules as settled if every request is allowed, so that conditions need no evaluation."""

    def unconditional(candidates: Sequence[PolicyRule]) -> bool:
        return any(not rule.conditions and not rule.has_open_variables for rule in candidates)

    if rules.denials or rules.cross_account:
        return rules
    allowed = rules.root or (
        unconditional(rules.identity)
        and (rules.boundary is None or unconditional(rules.boundary))
        and (rules.session is None or unconditional(rules.session))
    )
    if not allowed:
        return rules
    return replace(rules, always_allowed=True)
