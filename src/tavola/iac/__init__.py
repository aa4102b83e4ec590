"""IaC: the infrastructure of a design, planned, written, compared and deployed.

`plan` describes the infrastructure without any vendor's syntax; `cloudformation`, `terraform` and `cdk` render the same plan. `formats`
reads designs from other tools' files. The package uses the model and the client; it writes text, and deploys with the public operations.
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
from tavola.iac.errors import DeployError, FileNotOverwritten, IacError, PlanError
from tavola.iac.files import WrittenFile, check_overwrite, read_contents, write_files
from tavola.iac.plan import InfrastructurePlan, PlanOptions, TablePlan, plan_infrastructure, plan_table
from tavola.iac.policies import RolePolicy, derive_policies, render_policy
from tavola.iac.terraform import index_steps, render_terraform, terraform_files

__all__ = [
    "AppliedChange",
    "DeployError",
    "DeployPermissions",
    "Deployment",
    "DesignChange",
    "FileNotOverwritten",
    "IacError",
    "InfrastructurePlan",
    "PlanError",
    "PlanOptions",
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
