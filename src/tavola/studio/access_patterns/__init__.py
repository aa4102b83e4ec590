"""The access patterns of a design, run against live tables.

`catalogue` lists the patterns, `plans` turns the values typed into a form into requests, `runs` sends them and measures
what they cost, and `coverage` shows which index serves which pattern. All of it works from the design as data, so an
imported document behaves like declared classes.
"""
