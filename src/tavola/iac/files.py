"""Write generated files: all or none, and never over a file that Tavola did not generate.

Every text is first written to a temporary file beside its target, so a full disk leaves the old files intact. A generated and unchanged file is
replaced. Any other file stays unless `force` is given, and so does a file of another design. A file with a table, key or other content that the new
text lacks stays too, because the next apply would destroy what is no longer described. With `force`, files of a former run that the
design no longer needs are removed, since Terraform reads every file in the folder.

A generated file is recognized by its signature line, which names its tables and other contents and ends with a checksum of the file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tavola.folders import sync_folder
from tavola.iac.errors import FileNotOverwritten, IacError

_NO_CHECKSUM = "0" * 16
_SIGNATURE = re.compile(
    r"([Ww]ritten by tavola iac [a-z]+ for ([A-Za-z0-9_. -]+)(?:, with ([A-Za-z0-9_.: -]+))?, sum )([0-9a-f]{16})"
)


def signature_line(vendor: str, tables: Iterable[str], contents: Iterable[str] = ()) -> str:
    """Return the line that a writer puts into a file; `sign` fills in the checksum. `contents` are words for contents besides tables."""
    extra = " ".join(contents)
    return f"written by tavola iac {vendor} for {' '.join(tables)}{f', with {extra}' if extra else ''}, sum {_NO_CHECKSUM}"


def sign(text: str) -> str:
    """Return a text with the checksum in its signature line."""
    assert _NO_CHECKSUM in text, "a text to be signed has a mark"
    return _SIGNATURE.sub(lambda signature: signature[1] + _checksum(text), text, count=1)


def is_generated(text: str) -> bool:
    """Return whether Tavola wrote this text, in any version."""
    return _SIGNATURE.search(text) is not None


def signed_tables(text: str) -> frozenset[str]:
    """Return the tables that a text was written for; none for a text without a signature."""
    signature = _SIGNATURE.search(text)
    return frozenset() if signature is None else frozenset(signature[2].split())


def signed_contents(text: str) -> frozenset[str]:
    """Return the words for the other contents that a text was written with."""
    signature = _SIGNATURE.search(text)
    return frozenset() if signature is None else frozenset((signature[3] or "").split())


def is_unchanged(text: str) -> bool:
    """Return whether a generated text has not been changed."""
    signature = _SIGNATURE.search(text)
    if signature is None:
        return False
    return signature[4] == _checksum(_SIGNATURE.sub(lambda match: match[1] + _NO_CHECKSUM, text, count=1))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: len(_NO_CHECKSUM)]


FileOutcome = Literal["written", "replaced", "unchanged", "removed"]

_CONTENT_NAMES = {
    "key": "the KMS key",
    "endpoint": "the VPC endpoint",
    "alarms": "the alarms",
    "policies": "the policies",
    "function": "the function {}",
    "failures": "the failure destination of {}",
    "replica": "the replica {}",
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file and what was done to it."""

    path: Path
    outcome: FileOutcome


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool = False) -> tuple[WrittenFile, ...]:
    """Write files into a folder, creating it if needed; raises `FileNotOverwritten` before anything is changed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        results = [
            WrittenFile(folder / name, check_overwrite(folder / name, text, force=force))
            for name, text in texts.items()
        ]
        stale = [WrittenFile(path, "removed") for path in _list_stale_files(folder, texts, force)]
        parts: list[tuple[Path, Path]] = []
        try:
            for result in results:
                if result.outcome != "unchanged":
                    part = result.path.with_name(f".{result.path.name}.part")
                    parts.append((part, result.path))
                    part.write_text(texts[result.path.name], encoding="utf-8", newline="\n")
            for part, path in parts:
                os.replace(part, path)
        finally:
            for part, _ in parts:
                part.unlink(missing_ok=True)
        for file in stale:
            file.path.unlink()
        sync_folder(folder)
    except OSError as error:
        path_text = error.filename or folder
        raise IacError(
            f"cannot write {path_text}: {error.strerror}; write elsewhere with --output"
        ) from error
    return (*results, *stale)


def check_overwrite(path: Path, text: str, *, force: bool = False) -> FileOutcome:
    """Return what writing a text would do to a file; raises `FileNotOverwritten` if it must not be overwritten."""
    former = _read_file(path)
    if former is None:
        return "written"
    if former == text:
        return "unchanged"
    if not force and not is_unchanged(former):
        reason = (
            "was edited after Tavola generated it" if is_generated(former) else "was not generated by Tavola"
        )
        raise FileNotOverwritten(str(path), reason)
    if not force and not signed_tables(former) & signed_tables(text):
        raise FileNotOverwritten(str(path), f"belongs to another design, with {_name_tables(former)}")
    removed = () if force else list_removed(former, text)
    if removed:
        raise FileNotOverwritten(
            str(path),
            f"contains {', '.join(removed)}, which the new file lacks: the next apply would destroy it",
        )
    return "replaced"


def list_removed(former: str, text: str) -> tuple[str, ...]:
    """Return the contents of a former text that a new one lacks, in words."""
    tables = [f"the table {name}" for name in sorted(signed_tables(former) - signed_tables(text))]
    contents = (word.partition(":") for word in sorted(signed_contents(former) - signed_contents(text)))
    return (
        *tables,
        *(
            _CONTENT_NAMES[kind].format(name.replace(":", " in "))
            for kind, _, name in contents
            if kind in _CONTENT_NAMES
        ),
    )


def read_contents(out: Path) -> frozenset[str] | None:
    """Return the content words of a generated file, or of all generated files of a folder; None if there are none."""
    paths = sorted(out.glob("*.tf")) if out.is_dir() else [out]
    texts = [text for path in paths if (text := _read_file(path)) is not None and is_generated(text)]
    return frozenset(word for text in texts for word in signed_contents(text)) if texts else None


def _name_tables(text: str) -> str:
    names = sorted(signed_tables(text))
    return f"the {'table' if len(names) == 1 else 'tables'} {', '.join(names)}"


def _list_stale_files(folder: Path, texts: Mapping[str, str], force: bool) -> list[Path]:
    """Return the files of a former run of this design that the new one lacks; refuses a folder with another design's files."""
    tables = frozenset(name for text in texts.values() for name in signed_tables(text))
    endings = {Path(name).suffix for name in texts}
    stale = []
    for path in sorted(folder.iterdir()):
        if path.name in texts or path.suffix not in endings or path.suffix != ".tf":
            continue
        text = _read_file(path)
        if text is None or not is_generated(text):
            continue
        if not tables & signed_tables(text):
            if not force:
                raise FileNotOverwritten(
                    str(path), f"belongs to another design, with {_name_tables(text)}, in the same folder"
                )
            continue  # `force` permits overwriting, not removing another design's file
        if not force:
            changed = "" if is_unchanged(text) else " and was edited"
            raise FileNotOverwritten(
                str(path), f"was generated earlier{changed} and is no longer needed: it would be removed"
            )
        stale.append(path)
    return stale


def _read_file(path: Path) -> str | None:
    """Return the text of a file, None if it does not exist; a binary file counts as empty text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except IsADirectoryError as error:
        raise FileNotOverwritten(str(path), "is a folder") from error
