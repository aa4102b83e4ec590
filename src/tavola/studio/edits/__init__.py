"""Editing items: validation, derived keys, cost, conflict-safe writes, bulk edits, and import and export files.

Knows tables from DescribeTable and entities from the design; nothing about pages or HTTP.
"""
