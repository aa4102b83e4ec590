"""Headers and parameters that all routes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs

import pytest
from fastapi import Request

from tavola.apps.shell import (
    Paged,
    ProblemError,
    cursor_of,
    etag_of,
    idempotency_key,
    limit_of,
    next_query,
    not_modified,
    parameters,
    require_match,
)
from tavola.patterns import Slice


def request(query: str = "", headers: Sequence[tuple[str, str]] = ()) -> Request:
    """Return a request with a query and headers."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return Request(
        {"type": "http", "query_string": query.encode(), "headers": raw, "path": "/x", "method": "GET"}
    )


def refusal_status(request: Request, etag: str) -> int | None:
    """Return the status that a change is refused with; None if it is accepted."""
    try:
        require_match(request, etag)
    except ProblemError as problem:
        return problem.status
    return None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 428),
        ([("If-Match", '"3"')], None),
        ([("If-Match", "*")], None),
        ([("If-Match", '"2", "3"')], None),
        ([("If-Match", '"2", , "3",')], None),  # a list may have empty places
        ([("If-Match", '"2", ,')], 412),
        ([("If-Match", '"2"'), ("If-Match", '"3"')], None),
        ([("If-Match", '"4"')], 412),
        ([("If-Match", 'W/"3"')], 412),  # a weak one never matches strongly
        ([("If-Match", "3")], 400),
        ([("If-Match", '"3')], 400),
        ([("If-Match", '"3" "4"')], 400),
    ],
)
def test_a_change_must_name_its_version(headers: list[tuple[str, str]], status: int | None) -> None:
    """Without If-Match it is a 428, with another version a 412, with a malformed one a 400."""
    assert refusal_status(request(headers=headers), etag_of(3)) == status


@pytest.mark.parametrize(
    ("value", "fresh"), [('"3"', True), ('W/"3"', True), ("*", True), ('"2"', False), ('"2","3"', True)]
)
def test_a_current_copy_gets_a_304(value: str, fresh: bool) -> None:
    """If-None-Match compares weakly, and a 304 repeats the ETag."""
    answer = not_modified(request(headers=[("If-None-Match", value)]), etag_of(3))

    assert (answer is not None) is fresh
    assert answer is None or (answer.status_code, answer.headers["etag"]) == (304, '"3"')


def test_an_etag_may_have_parts() -> None:
    """Several parts make one quoted ETag."""
    assert etag_of("review", 3) == '"review-3"'
    assert not_modified(request(), etag_of(1)) is None


@pytest.mark.parametrize("value", ["", "a" * 256, "naïve", "a\x01b", "   "])
def test_an_idempotency_key_is_printable_ascii(value: str) -> None:
    """A key has 1 to 255 printable ASCII characters."""
    with pytest.raises(ProblemError) as caught:
        idempotency_key(request(headers=[("Idempotency-Key", value)]))

    assert caught.value.status == 422


def test_one_idempotency_key_is_read() -> None:
    """No key is None, one key is stripped, two are refused."""
    assert idempotency_key(request()) is None
    assert idempotency_key(request(headers=[("Idempotency-Key", " k 1 ")])) == "k 1"
    with pytest.raises(ProblemError):
        idempotency_key(request(headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "a")]))


@pytest.mark.parametrize("value", ["0", "101", "-1", "x", "1.5", "", "٣", "9" * 30])
def test_a_limit_is_a_number_within_bounds(value: str) -> None:
    """A limit is 1 to 100."""
    with pytest.raises(ProblemError) as caught:
        limit_of(request(f"limit={value}"))

    assert caught.value.extensions["errors"][0]["pointer"] == "#/limit"


def test_limit_and_cursor_have_their_defaults() -> None:
    """Without parameters a list starts at the beginning, with 20 entries."""
    assert (limit_of(request()), cursor_of(request())) == (20, None)
    assert (limit_of(request("limit=7")), cursor_of(request("cursor=abc"))) == (7, "abc")
    with pytest.raises(ProblemError):
        cursor_of(request("cursor=" + "a" * 9_000))


def test_a_page_links_to_the_next() -> None:
    """The Link is relative, keeps the query and replaces the cursor."""
    incoming = request("status=open&limit=2&cursor=old&q=a%26b")
    answer = Paged[int].render(incoming, Slice((1, 2), "n+/="))

    assert bytes(answer.body) == b'{"items":[1,2],"next":"n+/="}'
    link = answer.headers["link"]
    assert link.startswith("<?")
    assert link.endswith('>; rel="next"')
    query = parse_qs(link[2:].partition(">")[0])
    assert query == {"status": ["open"], "limit": ["2"], "q": ["a&b"], "cursor": ["n+/="]}
    assert next_query(request(), "c") == "?cursor=c"
    assert "link" not in Paged[int].render(incoming, Slice((), None)).headers


def test_parameters_are_declared_by_name() -> None:
    """A route that reads parameters itself still declares them."""
    declared = parameters("limit", "if-match", more=({"name": "since", "in": "query", "schema": {}},))

    assert [each["name"] for each in declared["parameters"]] == ["limit", "If-Match", "since"]
