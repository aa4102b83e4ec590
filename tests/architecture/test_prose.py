"""The pages stay true: names resolve, links lead somewhere, examples run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.prose import broken_links, examples, not_printed, unknown_names
from tests.architecture.server import serving
from tests.architecture.source_tree import ROOT, Finding, repository_files

ENDPOINT = "http://localhost:8000"
PAGES = tuple(path for path in repository_files() if path.suffix == ".md")


def _place(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _runnable() -> Iterator[Path]:
    for page in PAGES:
        if any("runnable" in example.marks for example in examples(page.read_text(encoding="utf-8"))):
            yield page


@pytest.mark.parametrize("page", PAGES, ids=_place)
def test_names_in_prose_resolve(page: Path) -> None:
    """A dotted name in a page is a name a reader can import."""
    findings = list(unknown_names(_place(page), page.read_text(encoding="utf-8")))

    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("page", PAGES, ids=_place)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the repository finds it."""
    findings = list(broken_links(_place(page), page.read_text(encoding="utf-8"), page.parent))

    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("page", list(_runnable()), ids=_place)
def test_examples_run(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runnable Python of a page runs from top to bottom, against a server of its own, and prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = [e for e in examples(text) if e.language == "python" and "runnable" in e.marks]

    if any(ENDPOINT in block.text for block in blocks):
        with serving() as endpoint:
            _run(page, [(block.line, block.text.replace(ENDPOINT, endpoint)) for block in blocks])
    else:
        _run(page, [(block.line, block.text) for block in blocks])

    assert not list(not_printed(examples(text), capsys.readouterr().out))


def test_python_examples_are_python() -> None:
    """A Python block that is not run at least compiles."""
    broken: list[str] = []
    for page in PAGES:
        for example in examples(page.read_text(encoding="utf-8")):
            if example.language == "python":
                try:
                    compile(example.text, _place(page), "exec")
                except SyntaxError as error:
                    broken.append(f"{_place(page)}:{example.line}: {error}")

    assert not broken, "\n".join(broken)


def test_a_planted_name_is_found() -> None:
    """The check of names sees a missing attribute and a missing module, and no file name."""
    text = "See tavola.clock.Clock, tavola.clock.Watch,\n`tavola.cellar.wine` and tavola.toml."

    assert [(finding.line, finding.message) for finding in unknown_names("page", text)] == [
        (1, "tavola.clock.Watch leads nowhere"),
        (2, "tavola.cellar.wine leads nowhere"),
    ]


def test_a_planted_link_is_found(tmp_path: Path) -> None:
    """The check of links sees a missing file, and leaves addresses and anchors alone."""
    (tmp_path / "there.md").write_text("")
    text = "[a](there.md#x) [b](gone.md) [c](https://example.com/gone.md) [d](#here)"

    assert list(broken_links("page", text, tmp_path)) == [Finding("page", 1, "gone.md is not there")]


def test_a_planted_example_fails(tmp_path: Path) -> None:
    """An example that fails is a failing test, told with its own line."""
    page = tmp_path / "page.md"
    page.write_text("Prose.\n\n```python runnable\nx = 1\nassert x == 2\n```\n")
    (block,) = examples(page.read_text())

    with pytest.raises(AssertionError) as caught:
        _run(page, [(block.line, block.text)])
    assert caught.traceback[-1].lineno == 4


def test_a_planted_output_is_found() -> None:
    """A block marked `printed` must be in the output; "…" stands for any text."""
    shown = examples("```text printed\none\n…\nthree\n```\n\n```text printed\nfour\n```\n")

    assert [block.text for block in not_printed(shown, "zero\none\ntwo\nthree\nfive\n")] == ["four\n"]


def test_the_readme_has_two_set_up_commands() -> None:
    """A newcomer types `make run` and `make test`, and nothing else to set up."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    set_up = readme.partition("## Install and run")[2].partition("\n## ")[0]
    (block,) = [example for example in examples(set_up) if example.language == "sh"]

    assert [line.partition("#")[0].strip() for line in block.text.splitlines()] == ["make run", "make test"]


def test_make_targets_in_prose_exist() -> None:
    """A page that says `make x` names a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    unknown = [
        f"{_place(page)}: make {target}"
        for page in PAGES
        for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
        if target not in targets
    ]

    assert not unknown


def _run(page: Path, blocks: list[tuple[int, str]]) -> None:
    """Run blocks in one namespace; a failure points at its line in the page."""
    namespace: dict[str, object] = {"__name__": "__page__"}
    for line, text in blocks:
        exec(compile("\n" * line + text, str(page), "exec", dont_inherit=True), namespace)
