"""Static files and compression for the applications and the studio: Starlette's own, with two corrections."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

CACHE_FOREVER = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {  # the same on every system; mimetypes reads the system's table
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".map": "application/json",
}


class Compression(GZipMiddleware):
    """Starlette's compression for clients that accept gzip; unlike Starlette's own, it respects `gzip;q=0`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, compressed if that is accepted and worthwhile."""
        if scope["type"] == "http" and _refuses_gzip(Headers(scope=scope).get("accept-encoding", "")):
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        await super().__call__(scope, receive, send)


def _refuses_gzip(accept_encoding: str) -> bool:
    for coding in accept_encoding.lower().split(","):
        name, _, quality = coding.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class HashedFiles(StaticFiles):
    """Files whose URL changes with their content, so that browsers cache them forever."""

    async def check_config(self) -> None:
        """Accept a missing folder: the studio's appears when its pages are built, without a restart."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return Starlette's response with a fixed media type and Cache-Control."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = CACHE_FOREVER
        media_type = _MEDIA_TYPES.get(Path(full_path).suffix)
        if media_type is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = media_type
        return response
