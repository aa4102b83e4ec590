"""Patterns: single-table recipes on the public client, one file each.

Holds what users would otherwise write themselves: sharded writes, versions, idempotency, sessions,
counters. Knows the client and nothing beneath it, so each file is also an example. Empty so far.
"""
