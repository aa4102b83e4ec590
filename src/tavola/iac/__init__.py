"""IaC: a design as infrastructure.

Holds the plan, which knows no vendor's syntax, one folder for each vendor that renders it, and the readers of what others wrote
(`formats`). Knows the model and the client: it emits text, and deploys by the operations that anybody has.
"""

from tavola.iac.cdk import cdk_files
from tavola.iac.changes import (
    DesignChange,
    TableComparison,
    compare_designs,
    compare_live,
    compare_nothing,
    comparison_steps,
)
from tavola.iac.cloudformation import build_template, render_template
from tavola.iac.deployment import (
    AppliedChange,
    Deployment,
    DeployPermissions,
    backfill_progress,
    required_option,
)
from tavola.iac.errors import DeployRefused, FileNotOverwritten, IacError, PlanRefused
from tavola.iac.files import WrittenFile, check_overwrite, read_contents, write_files
from tavola.iac.plan import InfrastructurePlan, PlanOptions, TablePlan, plan_infrastructure, plan_table
from tavola.iac.policies import RolePolicy, derive_policies, render_policy
from tavola.iac.terraform import index_steps, render_terraform, terraform_files

__all__ = [
    "AppliedChange",
    "DeployPermissions",
    "DeployRefused",
    "Deployment",
    "DesignChange",
    "FileNotOverwritten",
    "IacError",
    "InfrastructurePlan",
    "PlanOptions",
    "PlanRefused",
    "RolePolicy",
    "TableComparison",
    "TablePlan",
    "WrittenFile",
    "backfill_progress",
    "build_template",
    "cdk_files",
    "check_overwrite",
    "compare_designs",
    "compare_live",
    "compare_nothing",
    "comparison_steps",
    "derive_policies",
    "index_steps",
    "plan_infrastructure",
    "plan_table",
    "read_contents",
    "render_policy",
    "render_template",
    "render_terraform",
    "required_option",
    "terraform_files",
    "write_files",
]
