"""Benchmarks: this engine beside every other local DynamoDB that the registries offer.

One load, from a separate process, over raw HTTP, against servers that are started for it and ended
after it. Engines take turns within a round and the median of the rounds counts, because machines
are noisy. Knows Tavola by its command line; only `inprocess` enters by the engine's door.
"""
