"""The typed client and its peers: one script a library, each run by the Python of its own environment.

A script needs the library it is named for, `timing`, and nothing else. `python -m benchmarks.clients.with_tavola`
times one alone; `benchmarks.entities` lets all take turns.
"""
