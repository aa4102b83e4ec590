"""Costing: a month of the design for a page whose sliders move, by the functions of `tavola cost`.

Holds what a month is asked with, the months themselves, kept while they stand, and the command line that prints the same.
"""
