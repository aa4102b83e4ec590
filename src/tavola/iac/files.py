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
from tavola.iac.errors import FileKept, IacError
from tavola.iac.signing import holds_of, is_ours, is_unchanged, tables_of

Deed = Literal["written", "replaced", "unchanged", "removed"]

_SPELT = {
    "key": "the key",
    "endpoint": "the endpoint",
    "alarms": "the alarms",
    "policies": "the policies",
    "function": "the function {}",
    "failures": "where {} puts what failed",
    "replica": "the replica {}",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file."""

    path: Path
    deed: Deed


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool = False) -> tuple[Written, ...]:
    """Write files into a folder, which is made if it is not there; raises `FileKept` before anything is changed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        deeds = [
            Written(folder / name, deed_of(folder / name, text, force=force)) for name, text in texts.items()
        ]
        left = [Written(path, "removed") for path in _left(folder, texts, force)]
        parts: list[tuple[Path, Path]] = []
        try:
            for done in deeds:
                if done.deed != "unchanged":
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


def deed_of(path: Path, text: str, *, force: bool = False) -> Deed:
    """Return what writing a text would do to a file; raises `FileKept` for one that is not to be written over."""
    found = _text(path)
    if found is None:
        return "written"
    if found == text:
        return "unchanged"
    if not force and not is_unchanged(found):
        reason = "was changed since Tavola wrote it" if is_ours(found) else "is not Tavola's"
        raise FileKept(str(path), reason)
    if not force and not tables_of(found) & tables_of(text):
        raise FileKept(str(path), f"is of another design, with {_named(found)}")
    going = () if force else what_goes(found, text)
    if going:
        raise FileKept(
            str(path),
            f"was written with {', '.join(going)}, which would go, and the next apply destroys what goes",
        )
    return "replaced"


def what_goes(former: str, text: str) -> tuple[str, ...]:
    """Return what a former text has and a new one has not, as a person would name it."""
    tables = [f"the table {name}" for name in sorted(tables_of(former) - tables_of(text))]
    words = (word.partition(":") for word in sorted(holds_of(former) - holds_of(text)))
    return (
        *tables,
        *(_SPELT[kind].format(name.replace(":", " in ")) for kind, _, name in words if kind in _SPELT),
    )


def held_before(out: Path) -> frozenset[str] | None:
    """Return the words for what a file, or the files of a folder, were written with; None where there is none of ours."""
    paths = sorted(out.glob("*.tf")) if out.is_dir() else [out]
    texts = [text for path in paths if (text := _text(path)) is not None and is_ours(text)]
    return frozenset(word for text in texts for word in holds_of(text)) if texts else None


def _named(text: str) -> str:
    names = sorted(tables_of(text))
    return f"the {'table' if len(names) == 1 else 'tables'} {', '.join(names)}"


def _left(folder: Path, texts: Mapping[str, str], force: bool) -> list[Path]:
    """Return the files of a former run of this design that this one has not; those of another design are no place for it."""
    ours = frozenset(name for text in texts.values() for name in tables_of(text))
    endings = {Path(name).suffix for name in texts}
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in texts or path.suffix not in endings or path.suffix != ".tf":
            continue
        text = _text(path)
        if text is None or not is_ours(text):
            continue
        if not ours & tables_of(text):
            if not force:
                raise FileKept(str(path), f"is of another design, with {_named(text)}, in the same folder")
            continue  # to be written over is one thing, to be taken away another
        if not force:
            changed = "" if is_unchanged(text) else " and was changed since"
            raise FileKept(
                str(path), f"is of a former run{changed}, and would go: there is nothing for it any more"
            )
        found.append(path)
    return found


def _text(path: Path) -> str | None:
    """Return what stands in a file, None if there is none; one that is no text is nobody's template."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except IsADirectoryError as error:
        raise FileKept(str(path), "is a folder") from error
