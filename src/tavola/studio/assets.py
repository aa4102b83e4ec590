"""The built pages of the package.

File names contain a content hash, so browsers cache them forever. Each file is read and compressed once. Without a build the
index page says how to build; the API works all the same.
"""

from __future__ import annotations

import gzip
import html
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).parent / "static"

PLACE = b"<!--tavola-->"  # where the built index takes what the server knows

_HEAD = b"<head>"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_PACKED_BYTES_LEAST = 512
_MEDIA_TYPES = {
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


@dataclass(frozen=True, slots=True)
class Asset:
    """A built file: its bytes as they are, and packed where that is shorter."""

    body: bytes
    packed: bytes | None
    media_type: str


class Assets:
    """The built files of a folder."""

    def __init__(self, folder: Path = STATIC) -> None:
        self.folder = folder
        self._kept: dict[str, Asset] = {}

    @property
    def built(self) -> bool:
        """Whether there is anything to be shown."""
        return (self.folder / "index.html").is_file()

    def find(self, name: str) -> Asset | None:
        """Return a file by its plain name; None where there is none, or where the name is a path."""
        if name in self._kept:
            return self._kept[name]
        if not _NAME.fullmatch(name):
            return None
        path = self.folder / "assets" / name
        if path.is_symlink() or not path.is_file():
            return None
        body = path.read_bytes()
        guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
        asset = Asset(body, _packed(body), _MEDIA_TYPES.get(path.suffix, guessed))
        self._kept[name] = asset
        return asset

    def index(self, base_path: str, told: Mapping[str, str]) -> bytes:
        """Return the index for a base path, with what it is told as `<meta name="tavola-…">`; never as a script."""
        try:
            page = (self.folder / "index.html").read_bytes()
        except OSError:
            page = MISSING
        lines = [f'<base href="{html.escape(base_path)}/">']
        lines += [
            f'<meta name="tavola-{name}" content="{html.escape(value)}">' for name, value in told.items()
        ]
        known = "\n    ".join(lines).encode()
        if PLACE in page:
            return page.replace(PLACE, known, 1)
        return page.replace(_HEAD, _HEAD + known, 1)


def _packed(body: bytes) -> bytes | None:
    if len(body) < _PACKED_BYTES_LEAST:
        return None
    packed = gzip.compress(body, mtime=0)
    return packed if len(packed) < len(body) else None
