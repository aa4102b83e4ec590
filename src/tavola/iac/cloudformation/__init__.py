"""Render a plan as a CloudFormation template, in JSON or YAML.

A table is an `AWS::DynamoDB::Table`, one with replicas an `AWS::DynamoDB::GlobalTable`. Keys of several attributes repeat HASH and RANGE in one
list, as in the API. Tables and keys are retained when their stack is deleted.
"""

from tavola.iac.cloudformation.template import build_template, render_template

__all__ = ["build_template", "render_template"]
