"""Design: judging a design before it costs anything.

Holds cost, lint, simulation, targets and the solver, each over a model and its access patterns. Returns findings and
numbers; never touches a table.
"""
