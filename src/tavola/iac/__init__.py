"""IaC: a design as infrastructure.

Holds the plan, which knows no vendor's syntax, one folder for each vendor that renders it, and the readers of what others wrote
(`formats`). Knows the model and the client: it emits text, and deploys by the operations that anybody has.
"""

from tavola.iac.cdk import cdk_files
from tavola.iac.changes import Change, Comparison, compare_designs, compare_live, compare_nothing, comparing
from tavola.iac.cloudformation import render_template, template_of
from tavola.iac.deployment import Allowed, Deployment, Done, hindrance, progress_of
from tavola.iac.errors import DeployRefused, FileKept, IacError, PlanRefused
from tavola.iac.files import Written, deed_of, held_before, write_files
from tavola.iac.plan import Plan, PlanOptions, TablePlan, plan_of, table_plan
from tavola.iac.policies import RolePolicy, as_document, policies_of
from tavola.iac.terraform import index_steps, render_terraform, terraform_files

__all__ = [
    "Allowed",
    "Change",
    "Comparison",
    "DeployRefused",
    "Deployment",
    "Done",
    "FileKept",
    "IacError",
    "Plan",
    "PlanOptions",
    "PlanRefused",
    "RolePolicy",
    "TablePlan",
    "Written",
    "as_document",
    "cdk_files",
    "compare_designs",
    "compare_live",
    "compare_nothing",
    "comparing",
    "deed_of",
    "held_before",
    "hindrance",
    "index_steps",
    "plan_of",
    "policies_of",
    "progress_of",
    "render_template",
    "render_terraform",
    "table_plan",
    "template_of",
    "terraform_files",
    "write_files",
]
