"""CloudFormation: a plan as a template, in JSON or YAML.

A table is an `AWS::DynamoDB::Table`; one with replicas is an `AWS::DynamoDB::GlobalTable`. Keys of several attributes repeat
HASH and RANGE in one list, as the API has it. Tables and keys outlive their stack: what deletes data is done by hand.
"""

from tavola.iac.cloudformation.template import build_template, render_template

__all__ = ["build_template", "render_template"]
