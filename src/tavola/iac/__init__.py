"""IaC: a design as infrastructure.

Holds the plan, which knows no vendor's syntax, and one file for each vendor that renders it. Knows the
model and emits text; applies nothing. Empty so far.
"""
