"""Apps: three applications on the public names alone.

Holds a support desk, a service desk and a Terraform review history. They import what a user may import: what
they cannot do, users cannot do. Empty so far.
"""
