"""Backends: implementations of the client's port.

They answer from an engine in this process, from AWS or any other endpoint over HTTP, or from another backend while they
record its calls; each exists with and without an event loop. Import names from the module that owns them, so that a program
loads only what it uses: `embedded` loads the engine, `http` and `async_http` need sockets, `aws` and `mocking` need botocore,
which is an extra and takes a fifth of a second to import.
"""
