"""Build the documentation site into site/, one folder per version.

    python -m tools.docs_site            build the version of this checkout
    python -m tools.docs_site --output DIR

The pages are docs/ as they are in the repository, plus the benchmark reports that they link to. The layout is

    site/index.html       sends the reader to the newest version
    site/versions.json    the versions, read by the version menu
    site/0.1.0/…          the site of one version; other versions that are already there stay

Zensical builds the pages and fails on a link to a page that does not exist. The build then checks every link, anchor, picture, script and style
sheet of the result: each must exist, and none may be on another host. Zensical is the successor of mkdocs-material, by the same authors; the latter receives security fixes only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import tavola

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_EXTERNAL = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(https?://[^\"'\s>]+)", re.IGNORECASE
)
_STYLE_EXTERNAL = re.compile(r"(?:url\(|@import\s+)[\"']?(https?://[^\"'\s)]+)", re.IGNORECASE)
_REFERENCE = re.compile(r"<(?:a|img|script|link)\b[^>]*?\s(?:href|src)=[\"']?([^\"'\s>]+)", re.IGNORECASE)
_ANCHOR = re.compile(r"\s(?:id|name)=[\"']?([^\"'\s>]+)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tavola documentation</title>
<meta http-equiv="refresh" content="0; url={version}/"></head>
<body><p><a href="{version}/">Tavola {version} documentation</a></p></body></html>
"""


def build_site(output: Path, version: str) -> Path:
    """Build the pages of this checkout into `output/<version>` and return that folder."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        stage_pages(work / "docs")
        shutil.copy(ROOT / "zensical.toml", work)
        result = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
            cwd=work,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise SystemExit(f"The site was not built:\n{_without_colours(result.stdout + result.stderr)}")
        target = output / version
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(work / "site", target)
    write_version_index(output)
    return target


def stage_pages(folder: Path) -> None:
    """Copy docs/ and the benchmark reports to `folder`, with links to the reports adjusted."""
    shutil.copytree(ROOT / "docs", folder)
    reports = folder / "benchmarks"
    reports.mkdir()
    for path in (ROOT / "benchmarks").iterdir():
        if path.suffix in {".md", ".svg"}:
            shutil.copy(path, reports)
    for page in folder.rglob("*.md"):
        home = ROOT / ("benchmarks" if page.parent == reports else "docs" / page.relative_to(folder).parent)
        page.write_text(_adjust_links(page, home, folder), encoding="utf-8")


def _adjust_links(page: Path, home: Path, folder: Path) -> str:
    """Return a page's text with its links pointing to where the staged files are."""

    def adjust(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = Path(os.path.normpath(home / target))
        for source, staged in ((ROOT / "docs", folder), (ROOT / "benchmarks", folder / "benchmarks")):
            if path.is_relative_to(source) and path.suffix:
                moved = staged / path.relative_to(source)
                return f"{match[1]}{os.path.relpath(moved, page.parent)}{match[3]}"
        return match[0]

    # The tests read marks behind a block's language ("python runnable"); the site's parser accepts none.
    text = re.sub(r"^(```\w+) [^\n`]*$", r"\1", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return _LINK.sub(adjust, text)


def write_version_index(output: Path) -> None:
    """Write versions.json and the page that leads to the newest version."""
    versions = sorted(
        (path.name for path in output.iterdir() if (path / "index.html").is_file()),
        key=_version_key,
        reverse=True,
    )
    listed = [
        {"version": name, "title": name, "aliases": ["latest"] * (name == versions[0])} for name in versions
    ]
    (output / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (output / "index.html").write_text(_REDIRECT.format(version=versions[0]), encoding="utf-8")


def external_requests(site: Path) -> Iterator[str]:
    """Yield each script, style sheet, font or picture that a page or style sheet would load from another host."""
    for path in sorted(site.rglob("*.css")):
        for address in _STYLE_EXTERNAL.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: {address}"
    for path in sorted(site.rglob("*.html")):
        for match in _EXTERNAL.finditer(path.read_text(encoding="utf-8")):
            if 'rel="canonical"' not in match[0] and "rel=canonical" not in match[0]:
                yield f"{path.relative_to(site)}: {match[1]}"


def dead_links(site: Path) -> Iterator[str]:
    """Yield each link, picture, script or style sheet of a page whose file or anchor does not exist in the site."""
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    anchors = {path: frozenset(_ANCHOR.findall(text)) for path, text in pages.items()}
    for path, text in pages.items():
        if path.name == "404.html":  # its links are absolute, because it is served for any path
            continue
        for link in dict.fromkeys(_REFERENCE.findall(text)):
            address, _, anchor = unescape(link).partition("#")
            if _SCHEME.match(address):
                continue
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or (
                anchor and target in anchors and unquote(anchor) not in anchors[target]
            ):
                yield f"{path.relative_to(site.resolve())}: {link}"


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main() -> None:
    """Build the site and print where it is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=SITE)
    arguments = parser.parse_args()
    folder = build_site(arguments.output, tavola.__version__)
    loaded = list(external_requests(folder))
    if loaded:
        raise SystemExit("Pages load from other hosts:\n" + "\n".join(loaded))
    dead = list(dead_links(folder))
    if dead:
        raise SystemExit("Pages have dead links:\n" + "\n".join(dead))
    sys.stdout.write(f"{folder}\n")


if __name__ == "__main__":
    main()
