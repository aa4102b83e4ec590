"""The repository speaks of Tavola alone: no path of a machine, no host of a registry."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source_tree import ROOT, text_files

# Written with a class around one letter, so that this file does not find itself.
FORBIDDEN = re.compile(
    r"""
      (?<![\w.-])/(?:[r]oot|[w]ork)/             # somebody's machine
    | (?<![\w.-])/(?:[h]ome|[U]sers)/\w+/
    | (?<![\w.-])/opt/(?:[w]heels|[p]ypi)
    | (?<![\w])\.\./[s]hared/                    # a folder beside the repository
    | [f]iles\.pythonhosted\.org | pypi\.org/[s]imple
    | [r]egistry\.npmjs | [r]egistry\.yarnpkg
    | --(?:extra-)?[i]ndex-url | --[f]ind-links
    """,
    re.VERBOSE,
)
BYTES_MAX = 400_000


def _forbidden_words(text: str) -> list[str]:
    return [match.group() for match in FORBIDDEN.finditer(text)]


def test_no_machine_and_no_registry_is_named() -> None:
    """A committed file names no path of a developer's machine and no package registry."""
    told = [
        f"{path.relative_to(ROOT)}: {words}"
        for path, text in text_files()
        if (
            words := [
                *_forbidden_words(text),
                *([str(ROOT)] if len(ROOT.parts) > 2 and f"{ROOT}/" in text else []),
            ]
        )
    ]

    assert not told, "\n".join(told)


@pytest.mark.parametrize(
    "planted",
    [
        "cd /" + "root/project",
        "open('/" + "home/anna/x')",
        "see .." + "/shared/notes.md",
        "https://registry" + ".npmjs.org/x",
        "pip install --" + "index-url x",
        "https://files" + ".pythonhosted.org/x",
    ],
)
def test_a_planted_word_is_found(planted: str) -> None:
    """The check sees each kind of word it forbids."""
    assert _forbidden_words(planted)


@pytest.mark.parametrize("allowed", ["/homes/", "a/work/b", "src/root/", "https://pypi.org/project/tavola"])
def test_an_ordinary_word_is_left_alone(allowed: str) -> None:
    """A word that only looks alike is no finding."""
    assert not _forbidden_words(allowed)


def test_no_large_file_is_committed() -> None:
    """Built files and fetched packages stay out of the repository."""
    large = [str(path) for path, text in text_files() if len(text) > BYTES_MAX]

    assert not large


def test_prose_is_tidy() -> None:
    """A text file ends in one newline and holds no carriage return."""
    untidy = [
        str(path.relative_to(ROOT))
        for path, text in text_files()
        if path.suffix in {".md", ".toml", ".txt"} and text and not _tidy(text)
    ]

    assert not untidy


def _tidy(text: str) -> bool:
    return text.endswith("\n") and not text.endswith("\n\n") and "\r" not in text
