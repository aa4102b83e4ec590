"""The built pages of the package.

Names of built files contain a content hash, so browsers cache them forever. Without a build the index page says how to build;
the API works all the same.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

from tavola.web import HashedFiles

STATIC = Path(__file__).parent / "static"

PLACE = b"<!--tavola-->"  # replaced by the metadata of the server

_HEAD = b"<head>"

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
    <p>This checkout has no built files. Run <code>make studio</code> (it uses Node 20, or downloads it from PyPI), or
    install Tavola from a wheel, which contains them. Then reload this page.</p>
    <p>The API is available: <code>tavola api</code> lists its endpoints.</p>
  </body>
</html>
"""


class Assets:
    """A build in a folder: the index page and the files it loads."""

    def __init__(self, folder: Path = STATIC) -> None:
        self.folder = folder
        self.files = HashedFiles(directory=folder / "assets", check_dir=False)

    @property
    def built(self) -> bool:
        """Whether the folder holds a build."""
        return (self.folder / "index.html").is_file()

    def index(self, base_path: str, metadata: Mapping[str, str]) -> bytes:
        """Return the index page for a base path, with metadata as `<meta name="tavola-…">`, never as a script."""
        try:
            page = (self.folder / "index.html").read_bytes()
        except OSError:
            page = MISSING
        lines = [f'<base href="{html.escape(base_path)}/">']
        lines += [
            f'<meta name="tavola-{name}" content="{html.escape(value)}">' for name, value in metadata.items()
        ]
        head = "\n    ".join(lines).encode()
        if PLACE in page:
            return page.replace(PLACE, head, 1)
        return page.replace(_HEAD, _HEAD + head, 1)
