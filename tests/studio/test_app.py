"""The studio over HTTP: who is let in, what a browser may do with it, and what it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tavola import __version__, connect_async
from tavola.engine import Engine
from tavola.entropy import SYSTEM_ENTROPY, SeededEntropy
from tavola.studio import ENDPOINTS, Assets, Endpoint, Studio, TablesLocation, create

ORIGIN = "http://127.0.0.1"
CHANGES = [endpoint for endpoint in ENDPOINTS if endpoint.is_write]
SENDING = [endpoint for endpoint in ENDPOINTS if endpoint.method != "GET"]
INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
    <!--tavola-->
    <link rel="stylesheet" crossorigin href="./assets/index-Ab12.css">
    <script type="module" crossorigin src="./assets/index-Ab12.js"></script>
</head><body><div id="studio"></div></body></html>
"""


@dataclass(frozen=True, slots=True)
class Echo:
    """What a question of this test's own asks."""

    text: str = ""
    count: int = 0
    last_event_id: str | None = None


async def echo(studio: Studio, asked: Echo) -> Echo:
    return asked


async def many(studio: Studio, asked: Echo) -> tuple[str, ...]:
    return (asked.text,) * asked.count


async def broken(studio: Studio, asked: Echo) -> Echo:
    raise ZeroDivisionError(asked.text)


OWN = (
    *ENDPOINTS,
    Endpoint("GET", "/echo", echo),
    Endpoint("POST", "/echo", echo, body_bytes_max=1000),
    Endpoint("GET", "/many", many),
    Endpoint("GET", "/broken", broken),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Built files, and beside them one that must not be served."""
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text(INDEX)
    (tmp_path / "static" / "assets" / "index-Ab12.js").write_text("export const a = 1;\n" * 200)
    (tmp_path / "static" / "assets" / "index-Ab12.css").write_text("p{}")
    (tmp_path / "static" / "secret.txt").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "static"


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine in memory."""
    engine = Engine.open()
    yield engine
    engine.close()


def studio_on(engine: Engine, **more: Any) -> Studio:
    where = TablesLocation("memory", "in memory", "us-east-1", "000000000000")
    return Studio(db=connect_async(engine), where=where, engine=engine, **more)


def client_of(application: Starlette) -> TestClient:
    return TestClient(application, base_url=ORIGIN)


@pytest.fixture
def client(engine: Engine, folder: Path) -> TestClient:
    """A client of the studio with its own questions."""
    return client_of(create(studio_on(engine), endpoints=OWN, assets=Assets(folder)))


def metas(page: str) -> dict[str, str]:
    """Return the `meta` and `base` values of a page as a browser parses them."""
    result: dict[str, str] = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            response = dict(attrs)
            if tag == "base":
                result["base href"] = response["href"] or ""
            if tag == "meta" and (response.get("name") or "").startswith("tavola-"):
                result[(response["name"] or "").removeprefix("tavola-")] = response["content"] or ""

    Reader().feed(page)
    return result


def token_of(client: TestClient, path: str = "/") -> dict[str, str]:
    return {"X-Tavola-Token": metas(client.get(path).text)["token"]}


# Who is let in.


@pytest.mark.parametrize("path", ["/", "/api/session", "/assets/index-Ab12.js"])
def test_a_foreign_host_is_refused(client: TestClient, path: str) -> None:
    """A page that points a name of its own at this machine gets nothing, not even the index with its token."""
    answer = client.get(path, headers={"Host": "rebound.example.com"})

    assert answer.status_code == 403
    assert "tavola-token" not in answer.text


@pytest.mark.parametrize("address", ["172.17.0.2", "192.168.1.20", "[fd00::2]"])
def test_a_foreign_host_is_refused_on_every_address(client: TestClient, address: str) -> None:
    """In a container or on a local network, requests with another host name are refused; the address itself is accepted."""
    there = f"http://{address}:8001"
    rebound = client.get(f"{there}/", headers={"Host": "rebound.example.com:8001"})
    token = token_of(client)
    posted = client.post(
        f"{there}/api/echo",
        json={},
        headers={**token, "Host": "rebound.example.com", "Origin": "http://rebound.example.com"},
    )

    assert (rebound.status_code, posted.status_code) == (403, 403)
    assert "tavola-token" not in rebound.text
    assert posted.json()["problem"]["code"] == "host-refused"
    assert client.get(f"{there}/api/session").status_code == 200


def test_a_name_that_is_allowed_is_answered(engine: Engine, folder: Path) -> None:
    """A proxy's name is let in by a setting."""
    client = client_of(create(studio_on(engine), hosts=("tables.example.com",), assets=Assets(folder)))

    assert client.get("/api/session", headers={"Host": "tables.example.com"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_requests_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    """A page of another site is refused, with the token and for a mere question too."""
    token = token_of(client)

    assert client.post("/api/echo", json={}, headers={**token, **headers}).status_code == 403
    request = client.get("/api/session", headers=headers)
    assert request.status_code == 403
    assert request.json()["problem"]["code"] == "origin-refused"


def test_a_link_from_elsewhere_opens_the_page(client: TestClient) -> None:
    """The page itself may be linked to: it holds nothing, and no other site can read it."""
    answer = client.get(
        "/data/Orders", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    )

    assert answer.status_code == 200
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
def test_what_is_sent_needs_the_token(client: TestClient, token: str | None) -> None:
    """Whatever is not a plain question needs the token of this process, and nothing like it will do."""
    headers = {} if token is None else {b"X-Tavola-Token": token.encode()}
    answers = {
        endpoint.name: client.post("/api" + endpoint.path, json={}, headers=headers) for endpoint in SENDING
    }

    assert answers
    assert {
        name: (it.status_code, it.json()["problem"]["code"]) for name, it in answers.items()
    } == dict.fromkeys(answers, (403, "token-refused"))


def test_the_token_lets_a_change_through(client: TestClient) -> None:
    """With the token that the page was given, a question with a body is answered."""
    answer = client.post("/api/echo", json={"text": "x"}, headers=token_of(client))

    assert answer.status_code == 200
    assert answer.json()["text"] == "x"


def test_the_token_is_this_processes_own(engine: Engine, folder: Path) -> None:
    """Two studios have two tokens, each of 256 bits; the same chance gives the same one."""
    chances = (SYSTEM_ENTROPY, SYSTEM_ENTROPY, SeededEntropy(7), SeededEntropy(7))
    faces = [create(studio_on(engine), assets=Assets(folder), entropy=chance) for chance in chances]
    tokens = [token_of(client_of(face))["X-Tavola-Token"] for face in faces]

    assert len(set(tokens)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{64}", token) for token in tokens)


def test_read_only_refuses_every_change(engine: Engine, folder: Path) -> None:
    """Where nothing may be changed, each endpoint that changes something is refused before it reads its question."""
    client = client_of(create(studio_on(engine, read_only=True), assets=Assets(folder)))
    token = token_of(client)
    answers = {
        endpoint.name: client.post("/api" + endpoint.path, content=b"{", headers=token)
        for endpoint in CHANGES
    }

    assert {
        name: (it.status_code, it.json()["problem"]["code"]) for name, it in answers.items()
    } == dict.fromkeys(answers, (403, "read-only"))


def test_no_write_endpoint_uses_get() -> None:
    """A link must not change anything, so what changes is sent."""
    assert CHANGES
    assert not [endpoint.name for endpoint in CHANGES if endpoint.method == "GET"]


def test_an_address_is_one_question(client: TestClient) -> None:
    """No two endpoints have one name, and each has a sentence that says what it gives."""
    names = [endpoint.name for endpoint in ENDPOINTS]

    assert len(names) == len(set(names))
    assert not [endpoint.name for endpoint in ENDPOINTS if not endpoint.handler.__doc__]


# What a browser may do with it.


@pytest.mark.parametrize("path", ["/", "/data/Orders?x=1", "/api/session", "/api/nothing", "/assets/none.js"])
def test_the_policy_of_content_is_strict(client: TestClient, path: str) -> None:
    """Every answer, a refusal too, lets scripts and styles of our own files run and nothing else."""
    headers = client.get(path).headers

    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers.get_list("content-security-policy") == [policy]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"


def scripts(page: str) -> list[str]:
    """Return the scripts and handlers that stand in a page itself."""
    result: list[str] = []

    class Reader(HTMLParser):
        inside = False

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            response = dict(attrs)
            self.inside = tag in {"script", "style"}
            result.extend(name for name in response if name.startswith("on") or name == "style")
            if any((value or "").strip().lower().startswith("javascript:") for value in response.values()):
                result.append(tag)

        def handle_data(self, data: str) -> None:
            if self.inside and data.strip():
                result.append(data)

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

    Reader().feed(page)
    return result


def test_the_index_holds_no_script(client: TestClient) -> None:
    """The server passes settings in meta tags; the page has no inline script."""
    assert not scripts(client.get("/").text)
    assert not scripts((Path(create.__code__.co_filename).parent / "web" / "index.html").read_text("utf-8"))


@pytest.mark.parametrize(
    "planted",
    ["<script>alert(1)</script>", "<p onclick='x()'>", "<a href='javascript:x'>", "<p style='a:b'>"],
)
def test_a_planted_script_is_found(planted: str) -> None:
    """The check sees each way in which a page can hold a script."""
    assert scripts(planted)


@pytest.mark.parametrize(
    "path",
    [
        "/data/<script>alert(1)</script>",
        "/data/%3Cscript%3Ealert(1)%3C%2Fscript%3E?q=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        '/"><script>alert(1)</script>',
    ],
)
def test_nothing_of_an_address_gets_into_the_page(client: TestClient, path: str) -> None:
    """The index is the same for every URL, so a table's name cannot be injected."""
    assert client.get(path).text == client.get("/").text


def test_names_with_html_come_as_json(engine: Engine, client: TestClient) -> None:
    """A table's content is data in an answer of JSON that no browser takes for a page."""
    engine.call(
        "CreateTable",
        {
            "TableName": "Orders",
            "KeySchema": [{"AttributeName": "<img src=x onerror=alert(1)>", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "<img src=x onerror=alert(1)>", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    answer = client.get("/api/session")

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["tables"][0]["keys"][0]["name"] == "<img src=x onerror=alert(1)>"
    assert "<img" not in client.get("/").text


# What is sent.


def test_the_index_contains_the_base_path(client: TestClient) -> None:
    """The page learns its base, whether it may change anything and the version; it is never kept by a browser."""
    answer = client.get("/patterns/Orders?at=1")
    response = metas(answer.text)

    assert response.pop("token")
    assert response == {"base href": "/", "base": "", "read-only": "no", "version": __version__}
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.index("<base") < answer.text.index("./assets/")


def test_the_index_contains_the_read_only_flag(engine: Engine, folder: Path) -> None:
    """The page knows that nothing may be changed before it asks anything."""
    client = client_of(create(studio_on(engine, read_only=True), assets=Assets(folder)))

    assert metas(client.get("/").text)["read-only"] == "yes"


@pytest.mark.parametrize("asked", ["/tools/studio", ""])
def test_a_base_path_works_whether_a_proxy_takes_it_away_or_not(
    engine: Engine, folder: Path, asked: str
) -> None:
    """Below a base path everything is found, with the path as the browser has it or without."""
    application = create(studio_on(engine), base_path="/tools/studio", endpoints=OWN, assets=Assets(folder))
    client = client_of(application)

    response = metas(client.get(f"{asked}/data/Orders").text)
    assert response["base href"] == "/tools/studio/"
    assert response["base"] == "/tools/studio"
    assert metas(client.get(asked or "/").text)["base"] == "/tools/studio"
    assert client.get(f"{asked}/api/session").status_code == 200
    assert client.get(f"{asked}/assets/index-Ab12.css").text == "p{}"
    answer = client.post(f"{asked}/api/echo", json={}, headers=token_of(client, f"{asked}/"))
    assert answer.status_code == 200
    assert client.post(f"{asked}/api/echo", content=b" " * 1001).status_code == 413
    assert client.get(f"{asked}/api/session", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_mounted_it_finds_itself(engine: Engine, folder: Path) -> None:
    """Mounted below a path, the studio tells its page that path and has the same guards."""
    inner = create(studio_on(engine), assets=Assets(folder))
    client = client_of(Starlette(routes=[Mount("/studio", inner)]))

    assert metas(client.get("/studio/data").text)["base href"] == "/studio/"
    assert client.get("/studio/api/session").status_code == 200
    assert client.get("/studio/api/session", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_a_built_file_is_kept_for_good(client: TestClient, folder: Path) -> None:
    """A file whose name holds its content's hash never changes, and goes packed to whom takes it so."""
    plain = client.get("/assets/index-Ab12.js", headers={"Accept-Encoding": "identity"})
    packed = client.get("/assets/index-Ab12.js", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    refused = client.get("/assets/index-Ab12.js", headers={"Accept-Encoding": "gzip;q=0"})

    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 10
    assert packed.content == plain.content == (folder / "assets" / "index-Ab12.js").read_bytes()
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "..%2Fsecret.txt",
        "%2e%2e%2fsecret.txt",
        "..%5Csecret.txt",
        "a/../../secret.txt",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        ".stamp",
        "index-Ab12.js%00.css",
        "",
    ],
)
def test_a_path_out_of_the_folder_is_refused(client: TestClient, name: str) -> None:
    """Only plain names of built files are sent, however the way out is written."""
    answer = client.get(f"/assets/{name}")

    assert "secret" not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code == 404 or answer.headers["content-type"].startswith("text/html")


def test_a_link_out_of_the_folder_is_not_followed(client: TestClient, folder: Path) -> None:
    """A symbolic link among the built files leads nowhere."""
    (folder / "assets" / "out.js").symlink_to(folder.parent / "secret.txt")

    assert client.get("/assets/out.js").status_code == 404


def test_a_body_over_its_endpoints_limit_is_refused(client: TestClient) -> None:
    """A body is limited by its endpoint, by Content-Length or while it is received."""
    token = token_of(client)

    response = client.post("/api/echo", content=b'{"text":"' + b"x" * 1000 + b'"}', headers=token)
    counted = client.post("/api/echo", content=iter([b" " * 600, b" " * 600]), headers=token)
    enough = client.post("/api/echo", content=b'{"text":"' + b"x" * 900 + b'"}', headers=token)
    assert [response.status_code, counted.status_code, enough.status_code] == [413, 413, 200]
    assert response.json()["problem"]["code"] == counted.json()["problem"]["code"] == "too-large"


def test_a_question_with_a_nul_gets_through(client: TestClient) -> None:
    """DynamoDB's texts may hold any character, so the guard passes them all on."""
    answer = client.post("/api/echo", json={"text": "a\0é😀"}, headers=token_of(client))

    assert answer.json()["text"] == "a\0é😀"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"count": "x"}', b"\xff", b'{"text": "\\ud800"}', b"[" * 900]
)
def test_a_malformed_request_is_refused(client: TestClient, body: bytes) -> None:
    """A body that is no question is refused in the one shape, with what to do."""
    answer = client.post("/api/echo", content=body, headers=token_of(client))

    assert answer.status_code == 400
    problem = answer.json()["problem"]
    assert set(problem) == {"code", "title", "detail", "remedy", "status"}
    assert problem["code"] == "request-malformed"


def test_an_unknown_endpoint_or_method_is_refused(client: TestClient) -> None:
    """An unknown API path is answered with a problem, not a page; a wrong method names the right one."""
    unknown = client.get("/api/nothing")
    wrong = client.delete("/api/echo")

    assert (unknown.status_code, unknown.json()["problem"]["code"]) == (404, "endpoint-unknown")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST")
    assert client.get("/api").status_code == 200
    assert client.post("/data", content=b"").status_code == 405


def test_parameters_are_read_from_their_text(client: TestClient) -> None:
    """GET parameters are parsed from text; a resumed stream sends its position in a header."""
    answer = client.get("/api/echo?text=a%26b&count=3", headers={"Last-Event-ID": "17"})

    assert answer.json() == {"text": "a&b", "count": 3, "last_event_id": "17"}
    assert client.get("/api/session", headers={"Last-Event-ID": "17"}).status_code == 200


@pytest.mark.parametrize(("count", "packed"), [(10, False), (10_000, True), (100_000, True)])
def test_a_long_answer_is_packed(client: TestClient, count: int, packed: bool) -> None:
    """A long answer goes packed to whom takes it so, and is the same one; none is kept by a browser."""
    path = f"/api/many?text=abc&count={count}"
    answer = client.get(path, headers={"Accept-Encoding": "gzip"})

    assert (answer.headers.get("content-encoding") == "gzip") is packed
    assert answer.json() == ["abc"] * count
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in client.get(path, headers={"Accept-Encoding": "identity"}).headers


def test_an_unexpected_error_reveals_nothing(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    """What was sent is neither in the answer nor in the log; both have the number by which it is found."""
    answer = client.get("/api/broken?text=very-private")
    problem = answer.json()["problem"]

    assert (answer.status_code, problem["code"]) == (500, "unexpected")
    assert "very-private" not in answer.text + caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert problem["detail"].split()[-1].rstrip(".") or problem["remedy"]


def test_head_is_get_without_a_body(client: TestClient) -> None:
    """HEAD returns the headers of GET without a body."""
    answer = client.head("/")

    assert (answer.status_code, answer.content) == (200, b"")


def test_without_built_pages_the_index_says_what_to_do(engine: Engine, tmp_path: Path) -> None:
    """A checkout that was not built says so, and its API answers nevertheless."""
    client = client_of(create(studio_on(engine), assets=Assets(tmp_path / "nothing")))
    page = client.get("/").text

    assert "make studio" in page
    assert metas(page)["token"]
    assert not scripts(page)
    assert client.get("/api/session").status_code == 200


def test_an_index_without_the_placeholder_still_gets_the_metadata(tmp_path: Path) -> None:
    """Without the placeholder the metadata is the first element of the head, and is escaped."""
    (tmp_path / "index.html").write_text("<html><head><title>x</title></head></html>")
    page = Assets(tmp_path).index('/"><script>', {"token": '"><b>'}).decode()

    assert "<script>" not in page
    assert "<b>" not in page
    assert metas(page) == {"base href": '/"><script>/', "token": '"><b>'}
