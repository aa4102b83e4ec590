"""Studio: the web face for people.

Holds a JSON API and the pages that use it; can do nothing that the API and the command line cannot. Knows
neither the server nor the applications. Empty so far.
"""
