"""IAM: who may do what.

Holds policies made into rules, the accesses that a request makes, the decision with the statement that made it,
and the directory of users and roles that policies belong to. Knows requests as data and no socket and no engine:
whoever carries requests out asks a guard first. Why members of batches are decided one by one: an item must be as
safe on one path as on another.
"""

from tavola.iam.accesses import Access, ItemAccess, RangeAccess, StatedAccess
from tavola.iam.actions import ACTIONS, accesses, unknown_actions
from tavola.iam.changes import (
    add_account,
    add_group,
    add_key,
    add_role,
    add_user,
    assume_role,
    attach,
    detach,
    put_inline,
    put_policy,
    remove,
)
from tavola.iam.condition_keys import GLOBAL_KEYS, unknown_keys
from tavola.iam.decisions import Considered, Decision, Rulebook, decide, denial, narrow
from tavola.iam.directory import (
    Account,
    Credential,
    Directory,
    Group,
    Key,
    Role,
    Session,
    User,
    parse_directory,
    render_directory,
)
from tavola.iam.errors import (
    AlreadyInDirectory,
    AssumeRefused,
    DirectoryRefused,
    DirectoryUnreadable,
    DocumentUnreadable,
    IamError,
    NotInDirectory,
)
from tavola.iam.explaining import (
    ConditionMisfit,
    DescribedTable,
    KeyUnknown,
    explain_action,
    explain_request,
    explanation,
)
from tavola.iam.files import DirectoryFile, load_directory, save_directory
from tavola.iam.guard import Circumstances, Compiled, Explained, Guard, Guards
from tavola.iam.managed import MANAGED
from tavola.iam.policy import Rule, compile_policy
from tavola.iam.principals import Principal
from tavola.iam.resources import Resources

__all__ = [
    "ACTIONS",
    "GLOBAL_KEYS",
    "MANAGED",
    "Access",
    "Account",
    "AlreadyInDirectory",
    "AssumeRefused",
    "Circumstances",
    "Compiled",
    "ConditionMisfit",
    "Considered",
    "Credential",
    "Decision",
    "DescribedTable",
    "Directory",
    "DirectoryFile",
    "DirectoryRefused",
    "DirectoryUnreadable",
    "DocumentUnreadable",
    "Explained",
    "Group",
    "Guard",
    "Guards",
    "IamError",
    "ItemAccess",
    "Key",
    "KeyUnknown",
    "NotInDirectory",
    "Principal",
    "RangeAccess",
    "Resources",
    "Role",
    "Rule",
    "Rulebook",
    "Session",
    "StatedAccess",
    "User",
    "accesses",
    "add_account",
    "add_group",
    "add_key",
    "add_role",
    "add_user",
    "assume_role",
    "attach",
    "compile_policy",
    "decide",
    "denial",
    "detach",
    "explain_action",
    "explain_request",
    "explanation",
    "load_directory",
    "narrow",
    "parse_directory",
    "put_inline",
    "put_policy",
    "remove",
    "render_directory",
    "save_directory",
    "unknown_actions",
    "unknown_keys",
]
