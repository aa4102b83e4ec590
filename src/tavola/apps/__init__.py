"""Apps: three applications on the public names alone, and a gallery of sample designs.

Holds a support desk, a service desk and a Terraform review history, and the shell that their faces share. They import what a user
may import: what they cannot do, users cannot do. They need the extra `apps`; this door imports nothing of them.
"""
