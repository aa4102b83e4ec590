"""The global condition keys of AWS, used to find mistyped ones.

AWS accepts a policy with an unknown key. Such a key is absent from every request, so an Allow that tests it never
applies, and a Deny with IfExists or ForAllValues always does. That deserves a warning rather than an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tavola.iam.directory import Directory
from tavola.protocol.policy_documents import CONDITION_KEYS, PolicyStatement
from tavola.protocol.policy_values import Variable, parse_pieces

GLOBAL_KEYS: tuple[str, ...] = tuple(
    f"aws:{name}"
    for name in """
    AssumedRoot CalledVia CalledViaFirst CalledViaLast ChatbotSourceArn CurrentTime Ec2InstanceSourcePrivateIPv4
    Ec2InstanceSourceVpc EpochTime FederatedProvider IsMcpServiceAction MultiFactorAuthAge
    MultiFactorAuthPresent PrincipalAccount PrincipalArn PrincipalIsAWSService PrincipalOrgID PrincipalOrgPaths
    PrincipalServiceName PrincipalServiceNamesList PrincipalType RequestedRegion ResourceAccount ResourceOrgID
    ResourceOrgPaths SecureTransport SignInSessionArn SourceAccount SourceArn SourceIdentity SourceIp SourceOrgID
    SourceOrgPaths SourceVpc SourceVpcArn SourceVpce TagKeys TokenIssueTime UserAgent ViaAWSMCPService
    ViaAWSService VpcSourceIp VpceAccount VpceOrgID VpceOrgPaths referer userid username
    """.split()
)
"""AWS's spelling; keys are compared without case."""

_TAGGED = ("aws:PrincipalTag/", "aws:RequestTag/", "aws:ResourceTag/")
_NAMES = {name.lower(): name for name in (*GLOBAL_KEYS, *CONDITION_KEYS)}
_TAGGED_NAMES = {name.lower(): name for name in _TAGGED}
_OURS = ("aws:", "dynamodb:")  # keys of other services and identity providers are not known here


def unknown_keys(directory: Directory) -> Iterator[tuple[str, str, str | None]]:
    """Yield the unknown condition keys and variables of policies: location, name, and a suggestion."""
    for policy, document in directory.documents():
        for statement in document.statements:
            for place, key in _list_keys(statement, variables=document.has_variables):
                if key.lower().startswith(_OURS) and not _is_known(key.lower()):
                    yield f"{policy}, {place}", key, _near(key)


def _list_keys(statement: PolicyStatement, *, variables: bool) -> Iterator[tuple[str, str]]:
    """Yield each condition key and variable of a statement with its location."""
    for test in statement.conditions:
        yield test.place, test.key
    texts = [
        *((f"{statement.place}.Resource", text) for text in statement.resources or ()),
        *((f"{statement.place}.NotResource", text) for text in statement.not_resources or ()),
        *((test.place, text) for test in statement.conditions for text in test.values),
    ]
    for place, text in texts:
        for piece in parse_pieces(text, wildcards=False, variables=variables):
            if isinstance(piece, Variable):
                yield place, piece.key


def _is_known(key: str) -> bool:
    return key in _NAMES or any(key.startswith(prefix) and key != prefix for prefix in _TAGGED_NAMES)


def _near(key: str) -> str | None:
    head, slash, tag = key.partition("/")
    if slash:
        matches = get_close_matches(f"{head.lower()}/", _TAGGED_NAMES, n=1)
        return f"{_TAGGED_NAMES[matches[0]]}{tag}" if matches else None
    matches = get_close_matches(key.lower(), _NAMES, n=1, cutoff=0.75)
    return _NAMES[matches[0]] if matches else None
