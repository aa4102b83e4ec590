"""Serving: a `tavola serve` in a process of its own, asked over HTTP as an engine is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from tavola.protocol.faults import InternalServerFault, ValidationFault

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


PROGRAM = ("-m", "tavola")
STREAM_OPERATIONS = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")


@contextmanager
def serving(
    file: str | None = None,
    *,
    program: Sequence[str] = PROGRAM,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Ask]:
    """Give a way to ask a server, with a connection for each thread; stop the server afterwards.

    `program` are Python's arguments in front of the command, and `environment` is added to this process's own.
    """
    arguments = [sys.executable, *program, "serve", "--port", "0", "--json", *([file] if file else [])]
    environment = {**os.environ, **(environment or {})}
    connections: list[HTTPConnection] = []
    mine = threading.local()
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as server:
        assert server.stdout is not None
        result = json.loads(server.stdout.readline())

        def ask(operation: str, request: dict[str, Any]) -> dict[str, Any]:
            connection: HTTPConnection | None = getattr(mine, "connection", None)
            if connection is None:
                connection = mine.connection = HTTPConnection(result["host"], result["port"], timeout=20)
                connections.append(connection)
            service = "DynamoDBStreams" if operation in STREAM_OPERATIONS else "DynamoDB"
            headers = {
                "X-Amz-Target": f"{service}_20120810.{operation}",
                "Content-Type": "application/x-amz-json-1.0",
            }
            connection.request("POST", "/", json.dumps(request), headers)
            answer = connection.getresponse()
            body: dict[str, Any] = json.loads(answer.read())
            if answer.status >= 500:
                raise InternalServerFault(str(body))
            if answer.status != 200:
                raise ValidationFault(str(body))
            return body

        try:
            yield ask
        finally:
            for connection in connections:
                connection.close()
            server.terminate()
            server.wait(timeout=20)
