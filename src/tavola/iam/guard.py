"""Guard: asked before anything is done, it lets a request pass or denies it.

A guard is one principal in one place: its policies are compiled once, and each action on each resource is
narrowed once to the few rules that could apply. What is left for a request is to ask those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.iam.accesses import Access
from tavola.iam.actions import accesses
from tavola.iam.decisions import (
    Considered,
    Decision,
    Question,
    Rulebook,
    decide,
    denial,
    narrow,
    trace,
)
from tavola.iam.directory import Directory, NamedPolicy
from tavola.iam.patterns import Values
from tavola.iam.policy import Rule, Source, compile_policy
from tavola.iam.principals import Principal
from tavola.iam.resources import Resources, owner_of
from tavola.iam.statements import statement_accesses
from tavola.protocol.arns import Scope
from tavola.protocol.faults import AccessDeniedFault
from tavola.protocol.policy_documents import PolicyRefused, parse_policy
from tavola.protocol.resources import TableFacts

_QUESTIONS_MAX = 4096  # of one principal: actions on resources
_GUARDS_MAX = 4096
_LOCKED_OUT = "The new resource policy will not allow you to update the resource policy in the future."


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How a request came."""

    source_ip: str | None = None
    secure: bool = False
    user_agent: str | None = None


HERE = Circumstances()


@dataclass(frozen=True, slots=True)
class Explained:
    """A decision on one access, and what became of every rule on the way to it."""

    action: str
    resource: str
    decision: Decision
    considered: tuple[Considered, ...]


class Compiled:
    """A principal's rules, and the questions that they have answered in part."""

    def __init__(self, directory: Directory, principal: Principal) -> None:
        policies = directory.policies_of(principal)
        self.known = principal.known()
        self.book = Rulebook(
            principal=principal,
            identity=tuple(
                rule for named in policies.identity for rule in self._rules(named, "identity", principal)
            ),
            boundary=None
            if policies.boundary is None
            else self._rules(policies.boundary, "boundary", principal),
            session=None if policies.session is None else self._rules(policies.session, "session", principal),
        )
        self._questions: dict[tuple[str, str, str | None], Question] = {}
        self._resource_rules: dict[str, tuple[Rule, ...]] = {}

    def question(self, action: str, resource: str, policy: str | None) -> Question:
        """Return what an action on a resource with this policy asks."""
        key = (action, resource, policy)
        found = self._questions.get(key)
        if found is None:
            owner = owner_of(resource)
            found = narrow(
                self.book,
                self.resource_rules(policy),
                action,
                resource,
                foreign=owner is not None and owner != self.book.principal.account,
            )
            if len(self._questions) >= _QUESTIONS_MAX:
                self._questions.clear()
            self._questions[key] = found
        return found

    def resource_rules(self, policy: str | None) -> tuple[Rule, ...]:
        """Return the rules of a resource's policy; one that cannot be read lets nobody in."""
        if policy is None:
            return ()
        found = self._resource_rules.get(policy)
        if found is None:
            principal = self.book.principal
            try:
                document = parse_policy(policy, "resource")
            except PolicyRefused:
                document = parse_policy(_CLOSED, "resource")
            found = compile_policy(document, "resource", "resource policy", principal, self.known)
            if len(self._resource_rules) >= _QUESTIONS_MAX:
                self._resource_rules.clear()
            self._resource_rules[policy] = found
        return found

    def _rules(self, named: NamedPolicy, source: Source, principal: Principal) -> tuple[Rule, ...]:
        return compile_policy(named.document, source, named.name, principal, self.known)


class Guard:
    """Decides for one principal, in one scope, under the circumstances of one connection."""

    __slots__ = ("_circumstances", "_clock", "_compiled", "_scope", "principal")

    def __init__(
        self,
        compiled: Compiled,
        scope: Scope,
        circumstances: Circumstances = HERE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.principal = compiled.book.principal
        self._compiled = compiled
        self._scope = scope
        self._circumstances = circumstances
        self._clock = clock

    def check(self, operation: str, request: Any, resources: Resources) -> None:
        """Raise AccessDeniedFault unless all that the parsed request touches is allowed."""
        for access in accesses(operation, request, resources, self._scope):
            self._check(access)
        if operation == "PutResourcePolicy" and not request.confirm_remove_self_resource_access:
            self._check_lockout(request.resource_arn, request.policy, resources)

    def check_statement(self, operation: str, place: int, request: Any, resources: Resources) -> None:
        """Raise AccessDeniedFault unless one statement of a batch is allowed; `request` is the batch."""
        for access in statement_accesses(request.statements[place], resources, self._scope, shared=request):
            self._check(access)

    def decide(self, access: Access) -> Decision:
        """Return the decision on one access."""
        question = self._compiled.question(access.action, access.resource, policy_on(access))
        return decide(question, Asked(access, self._compiled.known, self), access.resource)

    def explain(self, operation: str, request: Any, resources: Resources) -> tuple[Explained, ...]:
        """Return the decision on each access of a request, with the way to it."""
        return tuple(self.explain_access(each) for each in self.asked(operation, request, resources))

    def explain_access(self, access: Access) -> Explained:
        """Return the decision on an access, with the way to it."""
        decision = self.decide(access)
        book = self._compiled.book
        rules = (
            *book.identity,
            *(book.boundary or ()),
            *(book.session or ()),
            *self._compiled.resource_rules(policy_on(access)),
        )
        asked = Asked(access, self._compiled.known, self)
        considered = trace(rules, decision, access.action, access.resource, asked)
        return Explained(access.action, access.resource, decision, considered)

    def asked(self, operation: str, request: Any, resources: Resources) -> Iterable[Access]:
        """Return the accesses of a request, those of each statement of a batch among them."""
        if operation == "BatchExecuteStatement":
            return [
                access
                for statement in request.statements
                for access in statement_accesses(statement, resources, self._scope, shared=request)
            ]
        return accesses(operation, request, resources, self._scope)

    def circumstance(self, key: str) -> Values:
        """Return the values of the condition keys that the moment and the connection give."""
        here = self._circumstances
        match key:
            case "aws:currenttime" | "aws:epochtime":
                return (f"{self._clock.now():.6f}",)
            case "aws:requestedregion":
                return (self._scope.region,)
            case "aws:securetransport":
                return ("true" if here.secure else "false",)
            case "aws:sourceip":
                return () if here.source_ip is None else (here.source_ip,)
            case "aws:useragent":
                return () if here.user_agent is None else (here.user_agent,)
            case _:
                return ()

    def _check(self, access: Access) -> None:
        compiled = self._compiled
        question = compiled.question(access.action, access.resource, policy_on(access))
        if question.settled:
            return
        decision = decide(question, Asked(access, compiled.known, self), access.resource)
        if not decision.allowed:
            raise AccessDeniedFault(denial(decision, self.principal, access.action, access.resource))

    def _check_lockout(self, resource: str, policy: str, resources: Resources) -> None:
        """Refuse a policy that would keep its author from putting another; a bad one is refused elsewhere."""
        try:
            document = parse_policy(policy, "resource")
        except PolicyRefused:
            return
        facts = resources.facts(resource.partition("/stream/")[0])
        access = Access("dynamodb:PutResourcePolicy", resource, facts=facts)
        rules = compile_policy(document, "resource", "resource policy", self.principal, self._compiled.known)
        question = narrow(self._compiled.book, rules, access.action, resource, foreign=False)
        decision = decide(question, Asked(access, self._compiled.known, self), resource)
        if not decision.allowed and decision.rule is not None:
            raise AccessDeniedFault(_LOCKED_OUT)


class Asked:
    """Everything that a condition can ask about one access."""

    __slots__ = ("_access", "_guard", "_known")

    def __init__(self, access: Access, known: dict[str, Values], guard: Guard) -> None:
        self._access = access
        self._known = known
        self._guard = guard

    def values(self, key: str) -> Values:
        """Return the values of a condition key: the principal's, the request's or the circumstances'."""
        found = self._known.get(key)
        if found is not None:
            return found
        if key == "aws:resourceaccount":
            return (owner_of(self._access.resource) or self._guard.principal.account,)
        return self._access.values(key) or self._guard.circumstance(key)


class Guards:
    """The guards of a server: made when first asked for, and kept while the directory is the same."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._directory: Directory | None = None
        self._compiled: dict[Principal, Compiled] = {}
        self._guards: dict[tuple[Principal, Scope, Circumstances], Guard] = {}

    def guard(
        self, directory: Directory, principal: Principal, scope: Scope, circumstances: Circumstances = HERE
    ) -> Guard:
        """Return the guard of a principal of this directory."""
        if directory is not self._directory:
            self._directory = directory
            self._compiled.clear()
            self._guards.clear()
        key = (principal, scope, circumstances)
        found = self._guards.get(key)
        if found is None:
            compiled = self._compiled.get(principal)
            if compiled is None:
                compiled = self._compiled[principal] = Compiled(directory, principal)
            found = Guard(compiled, scope, circumstances, self._clock)
            if len(self._guards) >= _GUARDS_MAX:
                self._guards.clear()
            self._guards[key] = found
        return found


def policy_on(access: Access) -> str | None:
    """Return the policy that stands on what is accessed: a stream's own, or that of the table."""
    facts: TableFacts | None = access.facts
    if facts is None:
        return None
    if "/stream/" in access.resource:
        return facts.stream_policies.get(access.resource)
    return facts.policy


_CLOSED = '{"Version":"2012-10-17","Statement":{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}}'
