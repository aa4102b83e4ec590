"""Backends: the other ends of the client's port.

Holds the engine in this process, and AWS or any endpoint by botocore. Modules that need botocore are entered
by name and never by this door, because botocore is an extra and takes a fifth of a second to import.
"""
