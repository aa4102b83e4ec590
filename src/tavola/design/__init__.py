"""Design: analysis of designs before they are deployed.

Contains cost, lint, simulation, targets and the solver. All of them read a design and its access patterns and return findings
and numbers. None of them reads a table, except the probe in `targets`, which creates its own.
"""
