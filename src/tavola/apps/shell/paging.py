"""Paging: lists that are given a page at a time, with a cursor for the next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel

T = TypeVar("T")

_PLAIN = re.compile(r"[\w=&%.+~-]*", re.ASCII)


class Paged(BaseModel, Generic[T]):
    """A page of a list; `next` is the cursor of the page after it, null where there is none."""

    items: list[T]
    next: str | None = None

    def response(
        self, request: Request, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the page as an answer, with a Link to the next one."""
        content = self.__pydantic_serializer__.to_json(self)
        return page_response(request, content, self.next, status=status, headers=headers)


def page_response(
    request: Request,
    content: bytes,
    following: str | None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return JSON that was made elsewhere as a page, with a Link to the next one."""
    answer = Response(content, status, headers, "application/json")
    if following is not None:
        answer.headers["Link"] = f'<{next_query(request, following)}>; rel="next"'
    return answer


def next_query(request: Request, following: str) -> str:
    """Return the relative address of the next page: the same question with another cursor."""
    query = request.scope.get("query_string", b"").decode("latin-1")
    if "cursor" not in query and _PLAIN.fullmatch(
        query
    ):  # the first page, as most are: what was asked is encoded already
        return f"?{query}{'&' if query else ''}cursor={following}"
    told = parse_qsl(query, keep_blank_values=True)
    kept = [(name, value) for name, value in told if name != "cursor"]
    return "?" + urlencode([*kept, ("cursor", following)])
