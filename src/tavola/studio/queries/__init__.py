"""Ad-hoc queries of a table for the data page.

Conditions become one GetItem, Query or Scan, with an estimate of its cost before it runs. Results are rows grouped by
partition key. The same query can be exported as code. Knows requests and designs, nothing about pages.
"""
