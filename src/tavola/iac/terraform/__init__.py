"""Render a plan as a Terraform module for the AWS provider.

Index keys are `key_schema` blocks, the provider's syntax for keys of several attributes (since 6.29); `hash_key = […]` is invalid. The indexes of
an auto scaled table are separate resources, so that changes made by scaling can be ignored while new indexes are still created. A
plan never destroys tables and keys.
"""

from tavola.iac.terraform.module import index_steps, render_terraform, terraform_files

__all__ = ["index_steps", "render_terraform", "terraform_files"]
