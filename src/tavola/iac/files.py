"""Files: infrastructure written to disk, whole or not at all, and nobody's own file written over.

Every text is written beside its place first, so that a disk that fills up leaves what was there. A file that Tavola wrote and nobody
touched is replaced; any other stays, unless it is said otherwise, and so does one of another design: no table of it is in this one. One that
holds a table, a key or anything else that the new text has not stays too: what is no longer written down, the next apply destroys. Where that is
meant, a file of a former run that the design no longer has is taken away: Terraform reads whatever is in the folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tavola.folders import sync_folder
from tavola.iac.errors import FileNotOverwritten, IacError
from tavola.iac.signing import is_generated, is_unchanged, signed_contents, signed_tables

FileOutcome = Literal["written", "replaced", "unchanged", "removed"]

_CONTENT_NAMES = {
    "key": "the key",
    "endpoint": "the endpoint",
    "alarms": "the alarms",
    "policies": "the policies",
    "function": "the function {}",
    "failures": "where {} puts what failed",
    "replica": "the replica {}",
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What became of a file."""

    path: Path
    outcome: FileOutcome


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool = False) -> tuple[WrittenFile, ...]:
    """Write files into a folder, which is made if it is not there; raises `FileKept` before anything is changed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        deeds = [
            WrittenFile(folder / name, check_overwrite(folder / name, text, force=force))
            for name, text in texts.items()
        ]
        left = [WrittenFile(path, "removed") for path in _list_stale_files(folder, texts, force)]
        parts: list[tuple[Path, Path]] = []
        try:
            for done in deeds:
                if done.outcome != "unchanged":
                    part = done.path.with_name(f".{done.path.name}.part")
                    parts.append((part, done.path))
                    part.write_text(texts[done.path.name], encoding="utf-8", newline="\n")
            for part, path in parts:
                os.replace(part, path)
        finally:
            for part, _ in parts:
                part.unlink(missing_ok=True)
        for gone in left:
            gone.path.unlink()
        sync_folder(folder)
    except OSError as error:
        told = error.filename or folder
        raise IacError(
            f"{told} cannot be written: {error.strerror}; name another place with --out"
        ) from error
    return (*deeds, *left)


def check_overwrite(path: Path, text: str, *, force: bool = False) -> FileOutcome:
    """Return what writing a text would do to a file; raises `FileKept` for one that is not to be written over."""
    found = _read_file(path)
    if found is None:
        return "written"
    if found == text:
        return "unchanged"
    if not force and not is_unchanged(found):
        reason = "was changed since Tavola wrote it" if is_generated(found) else "is not Tavola's"
        raise FileNotOverwritten(str(path), reason)
    if not force and not signed_tables(found) & signed_tables(text):
        raise FileNotOverwritten(str(path), f"is of another design, with {_name_tables(found)}")
    going = () if force else list_removed(found, text)
    if going:
        raise FileNotOverwritten(
            str(path),
            f"was written with {', '.join(going)}, which would go, and the next apply destroys what goes",
        )
    return "replaced"


def list_removed(former: str, text: str) -> tuple[str, ...]:
    """Return what a former text has and a new one has not, as a person would name it."""
    tables = [f"the table {name}" for name in sorted(signed_tables(former) - signed_tables(text))]
    words = (word.partition(":") for word in sorted(signed_contents(former) - signed_contents(text)))
    return (
        *tables,
        *(
            _CONTENT_NAMES[kind].format(name.replace(":", " in "))
            for kind, _, name in words
            if kind in _CONTENT_NAMES
        ),
    )


def read_contents(out: Path) -> frozenset[str] | None:
    """Return the words for what a file, or the files of a folder, were written with; None where there is none of ours."""
    paths = sorted(out.glob("*.tf")) if out.is_dir() else [out]
    texts = [text for path in paths if (text := _read_file(path)) is not None and is_generated(text)]
    return frozenset(word for text in texts for word in signed_contents(text)) if texts else None


def _name_tables(text: str) -> str:
    names = sorted(signed_tables(text))
    return f"the {'table' if len(names) == 1 else 'tables'} {', '.join(names)}"


def _list_stale_files(folder: Path, texts: Mapping[str, str], force: bool) -> list[Path]:
    """Return the files of a former run of this design that this one has not; those of another design are no place for it."""
    ours = frozenset(name for text in texts.values() for name in signed_tables(text))
    endings = {Path(name).suffix for name in texts}
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in texts or path.suffix not in endings or path.suffix != ".tf":
            continue
        text = _read_file(path)
        if text is None or not is_generated(text):
            continue
        if not ours & signed_tables(text):
            if not force:
                raise FileNotOverwritten(
                    str(path), f"is of another design, with {_name_tables(text)}, in the same folder"
                )
            continue  # to be written over is one thing, to be taken away another
        if not force:
            changed = "" if is_unchanged(text) else " and was changed since"
            raise FileNotOverwritten(
                str(path), f"is of a former run{changed}, and would go: there is nothing for it any more"
            )
        found.append(path)
    return found


def _read_file(path: Path) -> str | None:
    """Return what stands in a file, None if there is none; one that is no text is nobody's template."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except IsADirectoryError as error:
        raise FileNotOverwritten(str(path), "is a folder") from error
