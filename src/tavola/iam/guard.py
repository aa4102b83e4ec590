"""The guard: checks a request before it is executed.

A guard belongs to one principal in one account and region. Its policies are compiled once, and for each action on
each resource the rules that can apply are selected once. A request then evaluates only those, usually a handful.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.iam.access_checks import AccessCheck, owner_of, statement_access_checks
from tavola.iam.actions import required_checks
from tavola.iam.decisions import (
    ApplicableRules,
    Decision,
    EvaluatedRule,
    PrincipalPolicies,
    decide,
    denial_message,
    evaluate_rules,
    select_rules,
)
from tavola.iam.directory import Directory, NamedPolicy
from tavola.iam.patterns import Values
from tavola.iam.policy import PolicyRule, Source, compile_policy
from tavola.iam.principals import Principal
from tavola.protocol.arns import Scope
from tavola.protocol.faults import AccessDeniedFault
from tavola.protocol.policy_documents import PolicyDocument, PolicyRefused, parse_policy
from tavola.protocol.resources import GuardResources, TableFacts

_CACHED_RULES_MAX = 4096  # actions on resources, per principal
_GUARDS_MAX = 4096
_LOCKED_OUT = "The new resource policy will not allow you to update the resource policy in the future."


@dataclass(frozen=True, slots=True)
class ConnectionProperties:
    """Properties of the connection that conditions may test."""

    source_ip: str | None = None
    secure: bool = False
    user_agent: str | None = None


HERE = ConnectionProperties()


@dataclass(frozen=True, slots=True)
class ExplainedDecision:
    """A decision on one access check and how every rule was evaluated."""

    action: str
    resource: str
    decision: Decision
    evaluated: tuple[EvaluatedRule, ...]


class CompiledPolicies:
    """The compiled rules of one principal, with a cache of those that apply to each action and resource."""

    def __init__(self, directory: Directory, principal: Principal) -> None:
        policies = directory.policies_of(principal)
        self.known = principal.condition_keys()
        self.policies = PrincipalPolicies(
            principal=principal,
            identity=tuple(
                rule for named in policies.identity for rule in self._rules(named, "identity", principal)
            ),
            boundary=None
            if policies.boundary is None
            else self._rules(policies.boundary, "boundary", principal),
            session=None
            if policies.session is None
            else tuple(
                rule for named in policies.session for rule in self._rules(named, "session", principal)
            ),
        )
        self._selected: dict[tuple[str, str, str | None], ApplicableRules] = {}
        self._resource_rules: dict[str, tuple[PolicyRule, ...]] = {}

    def applicable_rules(self, action: str, resource: str, policy: str | None) -> ApplicableRules:
        """Return the rules that can apply to an action on a resource with this resource policy."""
        key = (action, resource, policy)
        selected = self._selected.get(key)
        if selected is None:
            owner = owner_of(resource)
            selected = select_rules(
                self.policies,
                self.resource_rules(policy),
                action,
                resource,
                cross_account=owner is not None and owner != self.policies.principal.account,
            )
            if len(self._selected) >= _CACHED_RULES_MAX:
                self._selected.clear()
            self._selected[key] = selected
        return selected

    def resource_rules(self, policy: str | None) -> tuple[PolicyRule, ...]:
        """Return the rules of a resource policy; an unreadable policy denies everything."""
        if policy is None:
            return ()
        selected = self._resource_rules.get(policy)
        if selected is None:
            principal = self.policies.principal
            try:
                document = parse_policy(policy, "resource")
            except PolicyRefused:
                document = parse_policy(_CLOSED, "resource")
            selected = compile_policy(document, "resource", "resource policy", principal, self.known)
            if len(self._resource_rules) >= _CACHED_RULES_MAX:
                self._resource_rules.clear()
            self._resource_rules[policy] = selected
        return selected

    def _rules(self, named: NamedPolicy, source: Source, principal: Principal) -> tuple[PolicyRule, ...]:
        return compile_policy(named.document, source, named.name, principal, self.known)


class Guard:
    """Authorizes the requests of one principal, in one account and region, over one kind of connection."""

    __slots__ = ("_circumstances", "_clock", "_compiled", "_scope", "principal")

    def __init__(
        self,
        compiled: CompiledPolicies,
        scope: Scope,
        circumstances: ConnectionProperties = HERE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.principal = compiled.policies.principal
        self._compiled = compiled
        self._scope = scope
        self._circumstances = circumstances
        self._clock = clock

    def check(self, operation: str, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless everything the parsed request touches is allowed."""
        for access in required_checks(operation, request, resources, self._scope):
            self._check(access)
        if operation == "PutResourcePolicy" and not request.confirm_remove_self_resource_access:
            self._check_lockout(request.resource_arn, request.policy, resources)

    def check_statement(self, operation: str, place: int, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless one statement of the batch `request` is allowed."""
        for access in statement_access_checks(
            request.statements[place], resources, self._scope, shared=request
        ):
            self._check(access)

    def decide(self, access: AccessCheck) -> Decision:
        """Return the decision on one access check."""
        rules = self._compiled.applicable_rules(access.action, access.resource, resource_policy_of(access))
        return decide(rules, ConditionValues(access, self._compiled.known, self), access.resource)

    def decide_trust(self, access: AccessCheck, trust: PolicyDocument) -> Decision:
        """Return the decision on an action of STS on a role with this trust policy.

        Unlike a table's policy, it must allow the action in any case. If it only names the caller's account, the
        caller's own policies must allow it too.
        """
        compiled = self._compiled
        rules = select_rules(
            compiled.policies,
            compile_policy(trust, "resource", "trust policy", self.principal, compiled.known),
            access.action,
            access.resource,
            cross_account=owner_of(access.resource) != self.principal.account,
        )
        values = ConditionValues(access, compiled.known, self)
        decision = decide(rules, values, access.resource)
        is_denied_explicitly = not decision.allowed and decision.rule is not None
        if not is_denied_explicitly and not any(rule.holds(values) for rule in rules.grants):
            return Decision(allowed=False, missing_allow="resource")
        return decision

    def explain(
        self, operation: str, request: Any, resources: GuardResources
    ) -> tuple[ExplainedDecision, ...]:
        """Return the decision on each access check of a request, with the evaluation of every rule."""
        return tuple(
            self.explain_access(check) for check in self.access_checks(operation, request, resources)
        )

    def explain_access(self, access: AccessCheck) -> ExplainedDecision:
        """Return the decision on an access check, with the evaluation of every rule."""
        decision = self.decide(access)
        policies = self._compiled.policies
        rules = (
            *policies.identity,
            *(policies.boundary or ()),
            *(policies.session or ()),
            *self._compiled.resource_rules(resource_policy_of(access)),
        )
        values = ConditionValues(access, self._compiled.known, self)
        considered = evaluate_rules(rules, decision, access.action, access.resource, values)
        return ExplainedDecision(access.action, access.resource, decision, considered)

    def access_checks(self, operation: str, request: Any, resources: GuardResources) -> Iterable[AccessCheck]:
        """Return the access checks of a request, including those of a batch's statements."""
        if operation == "BatchExecuteStatement":
            return [
                access
                for statement in request.statements
                for access in statement_access_checks(statement, resources, self._scope, shared=request)
            ]
        return required_checks(operation, request, resources, self._scope)

    def connection_value(self, key: str) -> Values:
        """Return the values of the condition keys for time and connection."""
        connection = self._circumstances
        match key:
            case "aws:currenttime" | "aws:epochtime":
                return (f"{self._clock.now():.6f}",)
            case "aws:requestedregion":
                return (self._scope.region,)
            case "aws:securetransport":
                return ("true" if connection.secure else "false",)
            case "aws:sourceip":
                return () if connection.source_ip is None else (connection.source_ip,)
            case "aws:useragent":
                return () if connection.user_agent is None else (connection.user_agent,)
            case _:
                return ()

    def _check(self, access: AccessCheck) -> None:
        compiled = self._compiled
        rules = compiled.applicable_rules(access.action, access.resource, resource_policy_of(access))
        if rules.always_allowed:
            return
        decision = decide(rules, ConditionValues(access, compiled.known, self), access.resource)
        if not decision.allowed:
            raise AccessDeniedFault(denial_message(decision, self.principal, access.action, access.resource))

    def _check_lockout(self, resource: str, policy: str, resources: GuardResources) -> None:
        """Refuse a policy that would prevent its author from replacing it.

        Invalid ones are refused elsewhere.
        """
        try:
            document = parse_policy(policy, "resource")
        except PolicyRefused:
            return
        facts = resources.facts(resource.partition("/stream/")[0])
        access = AccessCheck("dynamodb:PutResourcePolicy", resource, facts=facts)
        rules = compile_policy(document, "resource", "resource policy", self.principal, self._compiled.known)
        applicable = select_rules(
            self._compiled.policies, rules, access.action, resource, cross_account=False
        )
        decision = decide(applicable, ConditionValues(access, self._compiled.known, self), resource)
        if not decision.allowed and decision.rule is not None:
            raise AccessDeniedFault(_LOCKED_OUT)


class ConditionValues:
    """The values of all condition keys for one access check."""

    __slots__ = ("_access", "_guard", "_known")

    def __init__(self, access: AccessCheck, known: dict[str, Values], guard: Guard) -> None:
        self._access = access
        self._known = known
        self._guard = guard

    def values(self, key: str) -> Values:
        """Return the values of a condition key, from the principal, the request or the connection."""
        values = self._known.get(key)
        if values is not None:
            return values
        if key == "aws:resourceaccount":
            return (owner_of(self._access.resource) or self._guard.principal.account,)
        return self._access.values(key) or self._guard.connection_value(key)


class Guards:
    """The guards of a server, created on demand and reused until the directory changes."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._directory: Directory | None = None
        self._compiled: dict[Principal, CompiledPolicies] = {}
        self._guards: dict[tuple[Principal, Scope, ConnectionProperties], Guard] = {}

    def guard(
        self,
        directory: Directory,
        principal: Principal,
        scope: Scope,
        circumstances: ConnectionProperties = HERE,
    ) -> Guard:
        """Return the guard of a principal."""
        if directory is not self._directory:
            self._directory = directory
            self._compiled.clear()
            self._guards.clear()
        key = (principal, scope, circumstances)
        guard = self._guards.get(key)
        if guard is None:
            compiled = self._compiled.get(principal)
            if compiled is None:
                compiled = self._compiled[principal] = CompiledPolicies(directory, principal)
            guard = Guard(compiled, scope, circumstances, self._clock)
            if len(self._guards) >= _GUARDS_MAX:  # callers can make sessions, each a principal, without end
                self._guards.clear()
                self._compiled.clear()
            self._guards[key] = guard
        return guard


def resource_policy_of(access: AccessCheck) -> str | None:
    """Return the resource policy that applies: the stream's own, or the table's."""
    facts: TableFacts | None = access.facts
    if facts is None:
        return None
    if "/stream/" in access.resource:
        return facts.stream_policies.get(access.resource)
    return facts.policy


_CLOSED = '{"Version":"2012-10-17","Statement":{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}}'
