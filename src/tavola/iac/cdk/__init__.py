"""Render a plan as a Python app for the AWS CDK, version 2.

A table is a `TableV2`, which supports keys of several attributes, replicas and scaling. External values (the code bucket, the network) are stack
parameters; the topic of alarms is CDK context.
"""

from tavola.iac.cdk.app import cdk_files

__all__ = ["cdk_files"]
