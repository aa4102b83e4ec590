"""CDK: a plan as an app in Python, for version 2 of the AWS CDK.

A table is a `TableV2`, which takes keys of several attributes, replicas and scaling in one construct. What comes from outside (the
bucket of the code, the network) is a parameter of the stack; a topic for alarms is context, as CDK users are used to.
"""

from tavola.iac.cdk.app import cdk_files

__all__ = ["cdk_files"]
