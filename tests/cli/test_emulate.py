"""`tavola serve --emulate`: the switches reach the engine, and a line that cannot be is told before anything."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tavola.cli.errors import Exit
from tavola.server.endpoint import ServerEndpoint
from tests.server.raw import request, send_request

TABLE: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tavola", "serve", "--port", "0", *arguments]


def test_a_server_throttles_when_told_to() -> None:
    """With `--emulate throughput` a table of one unit refuses the tenth write of one moment."""
    process = subprocess.Popen(
        _command("--json", "--emulate", "throughput,seed=1"), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        endpoint = ServerEndpoint(told["host"], told["port"])
        send_request(endpoint, request("CreateTable", json.dumps(TABLE).encode()))
        put = {"TableName": "Orders", "Item": {"pk": {"S": "a"}, "body": {"S": "x" * 3000}}}
        answers = [send_request(endpoint, request("PutItem", json.dumps(put).encode())) for _ in range(10)]
    finally:
        process.kill()
        process.communicate()

    assert answers[0].status == 200
    refused = [json.loads(answer.body) for answer in answers if answer.status == 400]
    assert refused
    assert refused[0]["ThrottlingReasons"][0]["reason"] == "TableWriteProvisionedThroughputExceeded"


def test_a_line_that_cannot_be_ends_the_command() -> None:
    """Three lines say what is wrong and what there is, and the exit code says usage."""
    run = subprocess.run(
        _command("--emulate", "gsi-lag=soon"), capture_output=True, text=True, timeout=20, check=False
    )

    assert run.returncode == Exit.USAGE
    assert run.stdout == ""
    assert "gsi-lag needs a time in ms, s, m or h" in run.stderr
    assert "Traceback" not in run.stderr
