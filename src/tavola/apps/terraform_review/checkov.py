"""Checkov as an analyser: its program is run on a copy of the code.

A program and not an import, because its pinned boto3 cannot be installed beside a current one. It runs on a copy in
a folder of its own with an environment of its own: a `.checkov.yaml` in the folder (which may name Python files to
run), the user's platform credentials and every other setting are out of its reach, and it asks nothing of the network.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tavola.apps.terraform_review.analysers import AnalyserError, Analysis, Breakdown, Source
from tavola.apps.terraform_review.checkov_report import ReportRefused, read_report, reports_in

TIMEOUT_S: Final = 300.0
OUTPUT_BYTES_MAX: Final = 64_000_000
INSTALL: Final = "install it with `pipx install checkov`, or say where it is"

_FLAGS: Final = (
    *("--framework", "terraform", "terraform_json", "secrets"),
    *("--output", "json", "--quiet", "--compact"),
    "--skip-download",  # else it fetches texts from its maker's platform at every start
    "--skip-results-upload",
)
_UNREACHABLE: Final = "http://127.0.0.1:9"  # a proxy that is not there, should anything be asked after all
_FINISHED: Final = (0, 1)  # nothing failed; a check failed. Others: checkov did
_LOOK_S: Final = 0.25  # how often the size of its output is looked at


def find_program(named: Path | None, search: str) -> Path:
    """Return the program: the one at a path, else `checkov` in the folders of a search path."""
    found = shutil.which(named.absolute() if named else "checkov", path=search)
    if found is None:
        raise AnalyserError(f"there is no program {named or 'checkov'}: {INSTALL}")
    return Path(found).absolute()


@dataclass(frozen=True, slots=True)
class Checkov:
    """Checkov, found at a path."""

    program: Path
    timeout_s: float = TIMEOUT_S

    async def analyse(self, sources: tuple[Source, ...]) -> Analysis:
        """Return what checkov finds in these files; a run that breaks down is told in the analysis."""
        with tempfile.TemporaryDirectory(prefix="tavola-checkov-") as made:
            work = Path(made)
            for source in sources:
                copy = work / "code" / source.path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(source.text, encoding="utf-8")
            (work / "home").mkdir()
            try:
                told = await self._run(work, _FLAGS)
                analysis = read_report(told)
                if analysis.breakdown is not None:
                    return await self._named(work, analysis)
                return analysis
            except _Broken as broken:
                return Analysis("checkov", (), 0, Breakdown(broken.kind, str(broken)))
            except ReportRefused as refused:
                return Analysis("checkov", (), 0, Breakdown("output", str(refused)))

    async def _named(self, work: Path, analysis: Analysis) -> Analysis:
        """Return the breakdown with the names of the files; the short report has only their number."""
        flags = [flag for flag in _FLAGS if flag != "--quiet"]
        reports = reports_in(await self._run(work, (*flags, "--check", "CKV_TF_1")))
        code = (work / "code").resolve()
        files = sorted(
            {
                Path(name).relative_to(code).as_posix() if Path(name).is_relative_to(code) else name
                for report in reports
                for name in report.results.parsing_errors
            }
        )
        if not files:
            return analysis
        message = f"not valid Terraform: {', '.join(files[:10])}{' and others' if len(files) > 10 else ''}"
        return Analysis(analysis.analyser, (), 0, Breakdown("unreadable-code", message))

    async def _run(self, work: Path, flags: tuple[str, ...]) -> bytes:
        """Return what the program printed; raise _Broken where it did not end as it should."""
        printed, complained = work / "printed", work / "complained"
        with printed.open("wb") as out, complained.open("wb") as err:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(str(self.program), "--directory", str((work / "code").resolve()), *flags),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=work / "home",
                    env=_environment(self.program, work),
                    start_new_session=True,  # it starts processes of its own, which go with it
                )
            except OSError as error:
                raise AnalyserError(
                    f"{self.program} cannot be started: {error.strerror}; {INSTALL}"
                ) from error
            try:
                async with asyncio.timeout(self.timeout_s):
                    code = await _ended(process, printed, complained)
            except TimeoutError as error:
                raise _Broken("timeout", f"checkov was not done after {self.timeout_s:g} seconds") from error
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
        if code not in _FINISHED:
            raise _Broken("exit", f"checkov ended with code {code}: {_last_line(complained)}")
        _check_sizes(printed)
        return printed.read_bytes()


class _Broken(Exception):
    """A run that did not end as it should; becomes a Breakdown."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def _ended(process: asyncio.subprocess.Process, *files: Path) -> int:
    """Return the code that a program ends with; one that prints without end is not waited for."""
    while True:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await process.wait()
        except TimeoutError:
            _check_sizes(*files)


def _check_sizes(*files: Path) -> None:
    if any(file.stat().st_size > OUTPUT_BYTES_MAX for file in files):
        raise _Broken("output", f"checkov printed more than {OUTPUT_BYTES_MAX // 1_000_000} MB")


def _environment(program: Path, work: Path) -> dict[str, str]:
    """Return all that the program is told: nothing of ours, so no key to a platform and no settings."""
    return {
        "PATH": os.pathsep.join([str(program.parent), os.defpath]),
        "HOME": str(work / "home"),
        "TMPDIR": str(work),
        "LC_ALL": "C.UTF-8",
        "LOG_LEVEL": "ERROR",
        "BC_SKIP_MAPPING": "TRUE",
        "CKV_SKIP_PACKAGE_UPDATE_CHECK": "TRUE",  # else it asks PyPI for a newer one
        "CKV_GITHUB_CONFIG_FETCH_DATA": "False",
        "CKV_GITLAB_CONFIG_FETCH_DATA": "False",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _UNREACHABLE),
    }


def _last_line(path: Path) -> str:
    lines = path.read_bytes()[-10_000:].decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
