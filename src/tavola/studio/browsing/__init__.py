"""Browsing: how a table is read for a person who looks.

Conditions become one Get, Query or Scan, and what it will read is said before it is asked; what comes back are rows,
grouped as the table keeps them. The same question can be had as code. Knows requests and designs, and nothing of pages.
"""
