"""The documentation site: its navigation lists every page, and its pages load nothing from other hosts."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tools.docs_site import build_site, dead_links, external_requests, stage_pages, write_version_index


def _pages(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for entry in nav:
                yield from _pages(entry)
        case dict():
            for entry in nav.values():
                yield from _pages(entry)
        case _:
            raise AssertionError(nav)


def test_the_navigation_lists_every_page() -> None:
    """A page that is missing in zensical.toml cannot be found on the site; pages of lint rules are reached from their index."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    docs = ROOT / "docs"
    pages = {
        str(path.relative_to(docs))
        for path in docs.rglob("*.md")
        if path.parent.name != "rules" or path.name == "index.md"
    }

    assert sorted(_pages(nav)) == sorted(pages)


def test_links_to_the_benchmarks_lead_to_the_copy_on_the_site(tmp_path: Path) -> None:
    """docs/ links to benchmarks/, which is outside of docs/; marks behind a code block's language are removed."""
    stage_pages(tmp_path / "docs")

    assert "(benchmarks/results.md)" in (tmp_path / "docs" / "index.md").read_text()
    assert (
        "(../benchmarks/results.md)"
        in (tmp_path / "docs" / "decisions" / "0008-performance-limits.md").read_text()
    )
    assert "```python runnable" not in (tmp_path / "docs" / "how-to" / "model.md").read_text()


def test_a_planted_external_request_is_found(tmp_path: Path) -> None:
    """Scripts, style sheets and pictures of other hosts are reported; links are not."""
    (tmp_path / "page.html").write_text(
        '<a href="https://example.com">x</a><script async src="https://cdn.example.com/x.js"></script>'
        '<link href="assets/site.css" rel="stylesheet"><link rel="canonical" href="https://example.com/page">'
    )

    (tmp_path / "site.css").write_text("@font-face { src: url('https://fonts.example.com/x.woff2') }")

    assert list(external_requests(tmp_path)) == [
        "site.css: https://fonts.example.com/x.woff2",
        "page.html: https://cdn.example.com/x.js",
    ]


def test_planted_dead_links_are_found(tmp_path: Path) -> None:
    """A missing page, picture or anchor is reported; links to other hosts are not followed."""
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "index.html").write_text(
        '<h2 id="a">A</h2><a href="#a">x</a><a href="../#top">x</a><a href="../gone/">x</a><img src="gone.png">'
        '<a class="x" href="../guide/#b">x</a><a href="https://example.com/gone">x</a>'
    )
    (tmp_path / "index.html").write_text('<h1 id="top">T</h1><a href="guide/#a">x</a>')

    assert list(dead_links(tmp_path)) == [
        "guide/index.html: ../gone/",
        "guide/index.html: gone.png",
        "guide/index.html: ../guide/#b",
    ]


def test_the_newest_version_is_the_one_that_opens(tmp_path: Path) -> None:
    """Versions are compared by number, and older ones stay listed."""
    for version in ("0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").write_text("")

    write_version_index(tmp_path)

    assert [entry["version"] for entry in json.loads((tmp_path / "versions.json").read_text())] == [
        "0.10.0",
        "0.9.0",
    ]
    assert 'href="0.10.0/"' in (tmp_path / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="`make docs-site` installs the site generator"
)
def test_the_site_is_built_without_dead_links(tmp_path: Path) -> None:
    """Every page is built, links lead somewhere, and nothing is loaded from other hosts."""
    folder = build_site(tmp_path, "1.0")

    assert (folder / "how-to" / "model" / "index.html").is_file()
    assert not list(external_requests(folder))
    assert not list(dead_links(folder))
