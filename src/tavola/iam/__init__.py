"""IAM: decides whether a caller may do what a request asks.

A request is broken into access checks, one per item or resource it touches, and each is decided against the policies
of the caller and of the resource; `decisions` explains how. The directory holds the users, groups, roles and keys
that policies belong to; credentials of an assumed role carry their session with them. The package knows requests as data: no socket, no engine. Items of a batch or
transaction are checked one by one, so that an item is protected in the same way on every path to it.
"""

from tavola.iam.access_checks import AccessCheck, ItemAccessCheck, RangeAccessCheck, StatedAccessCheck
from tavola.iam.actions import ACTIONS, required_checks, unknown_actions
from tavola.iam.assumed_roles import (
    RoleRequest,
    assume_role,
    issue_session,
    make_session,
    web_identity_principal,
)
from tavola.iam.changes import (
    add_account,
    add_group,
    add_key,
    add_role,
    add_user,
    attach_policy,
    detach_policy,
    put_inline_policy,
    put_policy,
    put_provider,
    remove_entry,
    replace_session_key,
)
from tavola.iam.condition_keys import GLOBAL_KEYS, unknown_keys
from tavola.iam.decisions import (
    Decision,
    EvaluatedRule,
    PrincipalPolicies,
    decide,
    denial_message,
    select_rules,
)
from tavola.iam.directory import (
    MANAGED,
    AccessKey,
    Account,
    Credential,
    Directory,
    Group,
    Role,
    User,
    parse_directory,
    render_directory,
)
from tavola.iam.errors import (
    AlreadyInDirectory,
    AssumeRoleDenied,
    DirectoryFileError,
    IamError,
    InvalidDirectory,
    NotInDirectory,
    PolicyFileError,
    SessionKeyMissing,
    SessionRefused,
)
from tavola.iam.explanations import (
    AccessExplanation,
    ConditionMisfit,
    DescribedTable,
    UnknownConditionKey,
    explain_action,
    explain_request,
    render_explanation,
)
from tavola.iam.files import DirectoryFile, load_directory, save_directory
from tavola.iam.guard import CompiledPolicies, ConnectionProperties, ExplainedDecision, Guard, Guards
from tavola.iam.policy import PolicyRule, compile_policy
from tavola.iam.principals import Principal
from tavola.iam.role_sessions import SESSION_KEY_BYTES, RoleCredentials, RoleSession, SessionSigner
from tavola.iam.web_identity import (
    JoserfcMissing,
    OidcProvider,
    ProviderRefused,
    WebIdentity,
    verify_web_identity,
)

__all__ = [
    "ACTIONS",
    "GLOBAL_KEYS",
    "MANAGED",
    "SESSION_KEY_BYTES",
    "AccessCheck",
    "AccessExplanation",
    "AccessKey",
    "Account",
    "AlreadyInDirectory",
    "AssumeRoleDenied",
    "CompiledPolicies",
    "ConditionMisfit",
    "ConnectionProperties",
    "Credential",
    "Decision",
    "DescribedTable",
    "Directory",
    "DirectoryFile",
    "DirectoryFileError",
    "EvaluatedRule",
    "ExplainedDecision",
    "Group",
    "Guard",
    "Guards",
    "IamError",
    "InvalidDirectory",
    "ItemAccessCheck",
    "JoserfcMissing",
    "NotInDirectory",
    "OidcProvider",
    "PolicyFileError",
    "PolicyRule",
    "Principal",
    "PrincipalPolicies",
    "ProviderRefused",
    "RangeAccessCheck",
    "Role",
    "RoleCredentials",
    "RoleRequest",
    "RoleSession",
    "SessionKeyMissing",
    "SessionRefused",
    "SessionSigner",
    "StatedAccessCheck",
    "UnknownConditionKey",
    "User",
    "WebIdentity",
    "add_account",
    "add_group",
    "add_key",
    "add_role",
    "add_user",
    "assume_role",
    "attach_policy",
    "compile_policy",
    "decide",
    "denial_message",
    "detach_policy",
    "explain_action",
    "explain_request",
    "issue_session",
    "load_directory",
    "make_session",
    "parse_directory",
    "put_inline_policy",
    "put_policy",
    "put_provider",
    "remove_entry",
    "render_directory",
    "render_explanation",
    "replace_session_key",
    "required_checks",
    "save_directory",
    "select_rules",
    "unknown_actions",
    "unknown_keys",
    "verify_web_identity",
    "web_identity_principal",
]
