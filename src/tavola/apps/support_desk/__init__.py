"""Support desk: tickets, feedback, events, sessions and numbers in one table.

Holds the rules of a technical support desk (`domain`), its tables and access patterns (`model`), the patterns wired
to a connection (`store`) and one function for each use case (`service`). Stands on the public names alone.
"""
