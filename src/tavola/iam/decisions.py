"""Decisions: allow or deny, and the statement that decided.

An explicit Deny wins, wherever it stands. Within an account one Allow is enough, of an identity's policy or of
the resource's; between accounts it takes both. A permissions boundary and a session policy allow nothing by
themselves, and nothing passes that they do not allow. What nobody allows is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tavola.iam.patterns import Context
from tavola.iam.policy import Rule, Source
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
class Rulebook:
    """What applies to a principal wherever it goes; None: there is no such policy, and so no such bound."""

    principal: Principal
    identity: tuple[Rule, ...]
    boundary: tuple[Rule, ...] | None = None
    session: tuple[Rule, ...] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an access is allowed; the rule that said so, or the kind of policy that did not say it."""

    allowed: bool
    rule: Rule | None = None  # that allowed or denied; None: nothing did
    lacking: Source | None = None  # where an Allow would have been needed

    @property
    def reason(self) -> str:
        """Why, in a person's words."""
        if self.rule is not None:
            return f"{'allowed' if self.allowed else 'denied'} by {self.rule.name}"
        if self.allowed:
            return "allowed: an account's root may do everything in it"
        assert self.lacking is not None, "a denial has a rule or lacks one"
        return f"denied: no {_WORDS[self.lacking]} allows it"


@dataclass(frozen=True, slots=True)
class Question:
    """One action on one resource, the rules that could apply to it and what they do not leave open."""

    denials: tuple[Rule, ...]
    identity: tuple[Rule, ...]
    boundary: tuple[Rule, ...] | None
    session: tuple[Rule, ...] | None
    grants: tuple[Rule, ...]  # of the resource's policy
    foreign: bool  # the resource is another account's
    root: bool
    plain: bool  # an identity's own policies are all there is
    settled: bool = False  # allowed, whatever else the request says


@dataclass(frozen=True, slots=True)
class Considered:
    """A rule, and what became of it: how `explain` shows the way to a decision."""

    rule: Rule
    outcome: Outcome
    place: str | None = None  # of the condition that did not hold


def narrow(
    book: Rulebook, resource_rules: Sequence[Rule], action: str, resource: str, *, foreign: bool
) -> Question:
    """Return the question that an action on a resource poses; good for every request that does it."""
    action = action.lower()
    root = book.principal.kind == "root"

    def fitting(rules: Sequence[Rule]) -> Iterator[Rule]:
        for rule in rules:
            if rule.dead_at is None and rule.acts(action) and (rule.is_open or rule.covers(resource, None)):
                yield rule

    identity = tuple(fitting(book.identity))
    boundary = None if book.boundary is None else tuple(fitting(book.boundary))
    session = None if book.session is None else tuple(fitting(book.session))
    given = tuple(rule for rule in fitting(resource_rules) if rule.reach != "nobody")
    if root and not foreign and action == _UNDELETABLE:
        given = ()  # so that nobody is locked out of their own table for good
    everything = (*identity, *(boundary or ()), *(session or ()), *given)
    question = Question(
        denials=tuple(rule for rule in everything if rule.denies),
        identity=_allowing(identity),
        boundary=None if boundary is None else _allowing(boundary),
        session=None if session is None else _allowing(session),
        grants=_allowing(given),
        foreign=foreign,
        root=root,
        plain=not root and not foreign and not given and boundary is None and session is None,
    )
    return _settle(question)


def decide(question: Question, context: Context, resource: str) -> Decision:
    """Return the decision on one request."""
    denial = _first(question.denials, context, resource)
    if denial is not None:
        return Decision(allowed=False, rule=denial)
    if question.plain:
        allowing = _first(question.identity, context, resource)
        return Decision(allowed=False, lacking="identity") if allowing is None else Decision(True, allowing)
    granted = _first(question.grants, context, resource)
    if not question.foreign and question.root:
        return Decision(allowed=True)
    if not question.foreign:
        direct = _first([rule for rule in question.grants if rule.reach == "direct"], context, resource)
        if direct is not None:
            return Decision(allowed=True, rule=direct)
        if granted is not None and granted.reach == "account":
            # To name one's own account is to leave it to the account's own policies.
            granted = _first([rule for rule in question.grants if rule.reach != "account"], context, resource)
    allowing = _first(question.identity, context, resource)
    if question.foreign:
        if allowing is None and not question.root:
            return Decision(allowed=False, lacking="identity")
        if granted is None:
            return Decision(allowed=False, lacking="resource")
    elif allowing is None and granted is None:
        return Decision(allowed=False, lacking="identity")
    for source, bound in (("boundary", question.boundary), ("session", question.session)):
        if bound is not None and _first(bound, context, resource) is None:
            return Decision(allowed=False, lacking="boundary" if source == "boundary" else "session")
    return Decision(allowed=True, rule=allowing or granted)


def trace(
    rules: Sequence[Rule], decision: Decision, action: str, resource: str, context: Context
) -> tuple[Considered, ...]:
    """Return what became of each rule on the way to a decision."""
    return tuple(_considered(rule, decision, action.lower(), resource, context) for rule in rules)


def denial(decision: Decision, principal: Principal, action: str, resource: str) -> str:
    """Return the words in which AWS denies."""
    said = f"User: {principal.arn} is not authorized to perform: {action} on resource: {resource}"
    if decision.rule is not None:
        words = _WORDS[decision.rule.source]
        article = "an" if words.startswith("i") else "a"
        return f"{said} with an explicit deny in {article} {words}"
    assert decision.lacking is not None, "a denial has a rule or lacks one"
    return f"{said} because no {_WORDS[decision.lacking]} allows the {action} action"


def _considered(rule: Rule, decision: Decision, action: str, resource: str, context: Context) -> Considered:
    if rule.reach == "nobody":
        return Considered(rule, "another principal")
    if not rule.acts(action):
        return Considered(rule, "another action")
    if not rule.covers(resource, context):
        return Considered(rule, "another resource")
    place = rule.dead_at or rule.failing(context)
    if place is not None:
        return Considered(rule, "condition", place)
    return Considered(rule, "decided" if rule is decision.rule else "applies")


def _allowing(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules that allow, those first that ask nothing more."""
    return tuple(
        sorted((rule for rule in rules if not rule.denies), key=lambda rule: bool(rule.tests or rule.is_open))
    )


def _first(rules: Sequence[Rule], context: Context, resource: str) -> Rule | None:
    for rule in rules:
        if rule.holds(context) and (not rule.is_open or rule.covers(resource, context)):
            return rule
    return None


def _settle(question: Question) -> Question:
    """Return the question, settled if no request could change the answer from yes."""

    def certain(rules: Sequence[Rule]) -> bool:
        return any(not rule.tests and not rule.is_open for rule in rules)

    if question.denials or question.foreign:
        return question
    allowed = question.root or (
        certain(question.identity)
        and (question.boundary is None or certain(question.boundary))
        and (question.session is None or certain(question.session))
    )
    if not allowed:
        return question
    return replace(question, settled=True)
