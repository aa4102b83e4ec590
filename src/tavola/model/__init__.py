"""Model: a design declared in Python types.

Holds entities, their key templates, tables, indexes and access patterns, as a person declares them.
Knows keys and expressions, and neither an engine nor a client: a model is data, and the same one is
linted, priced, provisioned and served. Nothing is declared here yet.
"""
