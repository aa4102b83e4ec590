"""Terraform: a plan as HCL for the AWS provider, in the files that a module has.

The keys of an index are `key_schema` blocks, which is how the provider takes a key of several attributes (from 6.29 on); `hash_key = […]` is
no syntax of it. Where a table is auto scaled its indexes are resources of their own, so that what scaling changed in one is let be and
a new one is made all the same. Tables and keys are not destroyed by a plan.
"""

from tavola.iac.terraform.migration import index_steps
from tavola.iac.terraform.module import render_terraform, terraform_files

__all__ = ["index_steps", "render_terraform", "terraform_files"]
