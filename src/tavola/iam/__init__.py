"""IAM: decides whether a caller may do what a request asks.

A request is broken into access checks, one per item or resource it touches, and each is decided against the policies
of the caller and of the resource; `decisions` explains how. The directory holds the users, groups, roles, keys and
sessions that policies belong to. The package knows requests as data: no socket, no engine. Items of a batch or
transaction are checked one by one, so that an item is protected in the same way on every path to it.
"""

from tavola.iam.access_checks import AccessCheck, ItemAccessCheck, RangeAccessCheck, StatedAccessCheck
from tavola.iam.actions import ACTIONS, required_checks, unknown_actions
from tavola.iam.changes import (
    add_account,
    add_group,
    add_key,
    add_role,
    add_user,
    assume_role,
    attach_policy,
    detach_policy,
    put_inline_policy,
    put_policy,
    remove_entry,
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
    RoleSession,
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

__all__ = [
    "ACTIONS",
    "GLOBAL_KEYS",
    "MANAGED",
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
    "NotInDirectory",
    "PolicyFileError",
    "PolicyRule",
    "Principal",
    "PrincipalPolicies",
    "RangeAccessCheck",
    "Role",
    "RoleSession",
    "StatedAccessCheck",
    "UnknownConditionKey",
    "User",
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
    "load_directory",
    "parse_directory",
    "put_inline_policy",
    "put_policy",
    "remove_entry",
    "render_directory",
    "render_explanation",
    "required_checks",
    "save_directory",
    "select_rules",
    "unknown_actions",
    "unknown_keys",
]
