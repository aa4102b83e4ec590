"""Asking: an access pattern of a design, asked of the tables as they stand.

Holds the list of patterns, the values that a person types for one, the requests that they make, what came of them, and
which index serves which. Goes by the design as data, so a document or an imported file is asked as classes are.
"""
