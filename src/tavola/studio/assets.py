"""The built pages of the package.

Names of built files contain a content hash, so browsers cache them forever. Without a build the index page says how to build;
the API works all the same.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

STATIC = Path(__file__).parent / "static"

PLACE = b"<!--tavola-->"  # where the built index takes what the server knows

_HEAD = b"<head>"
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {  # the same on every system; mimetypes reads the system's table
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".map": "application/json",
}

MISSING = b"""<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <!--tavola-->
    <title>Tavola Studio</title>
  </head>
  <body>
    <h1>The studio's pages are not built</h1>
    <p>This is a checkout without its built files. Run <code>make studio</code> in it (it needs Node 20, or takes the one
    that PyPI has), or install Tavola from a wheel, which carries them. Then load this page again.</p>
    <p>The API answers already: <code>tavola api</code> lists its questions.</p>
  </body>
</html>
"""


class Compression(GZipMiddleware):
    """Starlette's compression for clients that accept gzip; unlike Starlette's own, it respects `gzip;q=0`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, compressed if that is accepted and worthwhile."""
        if scope["type"] == "http" and _refuses_gzip(Headers(scope=scope).get("accept-encoding", "")):
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        await super().__call__(scope, receive, send)


def _refuses_gzip(accept_encoding: str) -> bool:
    for each in accept_encoding.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class BuiltFiles(StaticFiles):
    """The files that the index page loads, each to be cached forever."""

    async def check_config(self) -> None:
        """Accept a missing folder: it appears when the pages are built, without a restart."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return Starlette's response with a media type and caching of ours."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = _CACHE_FOREVER
        media_type = _MEDIA_TYPES.get(Path(full_path).suffix)
        if media_type is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = media_type
        return response


class Assets:
    """The build in a folder: its index page, and the files that this loads."""

    def __init__(self, folder: Path = STATIC) -> None:
        self.folder = folder
        self.files = BuiltFiles(directory=folder / "assets", check_dir=False)

    @property
    def built(self) -> bool:
        """Whether the folder holds a build."""
        return (self.folder / "index.html").is_file()

    def index(self, base_path: str, metadata: Mapping[str, str]) -> bytes:
        """Return the index for a base path, with what it is told as `<meta name="tavola-…">`; never as a script."""
        try:
            page = (self.folder / "index.html").read_bytes()
        except OSError:
            page = MISSING
        lines = [f'<base href="{html.escape(base_path)}/">']
        lines += [
            f'<meta name="tavola-{name}" content="{html.escape(value)}">' for name, value in metadata.items()
        ]
        known = "\n    ".join(lines).encode()
        if PLACE in page:
            return page.replace(PLACE, known, 1)
        return page.replace(_HEAD, _HEAD + known, 1)
