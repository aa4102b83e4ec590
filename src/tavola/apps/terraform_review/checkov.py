"""Checkov as an analyser: runs the checkov program on a copy of the code.

It runs as a program because its pinned boto3 cannot be installed alongside a current one. The copy has its own folder and environment, so that
a `.checkov.yaml` in the reviewed folder (which may name Python files to run), platform credentials and other settings
have no effect, and checkov makes no network requests.
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

from tavola.apps.terraform_review.analysers import AnalyserError, Analysis, AnalysisFailure, TerraformFile
from tavola.apps.terraform_review.checkov_report import ReportRefused, parse_reports, read_report

TIMEOUT_S: Final = 300.0
OUTPUT_BYTES_MAX: Final = 64_000_000
INSTALL: Final = "install it with `pipx install checkov`, or specify its path"

_FLAGS: Final = (
    *("--framework", "terraform", "terraform_json", "secrets"),
    *("--output", "json", "--quiet", "--compact"),
    "--skip-download",  # otherwise it downloads rule texts from the vendor's platform on every start
    "--skip-results-upload",
)
_UNREACHABLE: Final = "http://127.0.0.1:9"  # an unreachable proxy, in case checkov sends a request anyway
_SUCCESS_CODES: Final = (0, 1)  # 1: some checks failed; other codes: checkov itself failed
_POLL_S: Final = 0.25  # between checks of the output's size


def find_program(path: Path | None, search: str) -> Path:
    """Return the program at `path`, or else `checkov` from the search path; raise AnalyserError if it is missing."""
    program = shutil.which(path.absolute() if path else "checkov", path=search)
    if program is None:
        raise AnalyserError(f"program {path or 'checkov'} not found; {INSTALL}")
    return Path(program).absolute()


@dataclass(frozen=True, slots=True)
class Checkov:
    """The checkov program at a path."""

    program: Path
    timeout_s: float = TIMEOUT_S

    async def analyse(self, sources: tuple[TerraformFile, ...]) -> Analysis:
        """Return checkov's findings in these files; a failed run is reported in the analysis."""
        with tempfile.TemporaryDirectory(prefix="tavola-checkov-") as folder:
            work = Path(folder)
            for source in sources:
                copy = work / "code" / source.path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(source.text, encoding="utf-8")
            (work / "home").mkdir()
            try:
                output = await self._run(work, _FLAGS)
                analysis = read_report(output)
                if analysis.failure is not None:
                    return await self._with_file_names(work, analysis)
                return analysis
            except _RunFailed as failed:
                return Analysis("checkov", (), 0, AnalysisFailure(failed.kind, str(failed)))
            except ReportRefused as refused:
                return Analysis("checkov", (), 0, AnalysisFailure("output", str(refused)))

    async def _with_file_names(self, work: Path, analysis: Analysis) -> Analysis:
        """Return the failure with the names of the unreadable files; the quiet report only counts them."""
        flags = [flag for flag in _FLAGS if flag != "--quiet"]
        reports = parse_reports(await self._run(work, (*flags, "--check", "CKV_TF_1")))
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
        return Analysis(analysis.analyser, (), 0, AnalysisFailure("unreadable-code", message))

    async def _run(self, work: Path, flags: tuple[str, ...]) -> bytes:
        """Return the program's output; raise `_RunFailed` if it does not end normally."""
        stdout, stderr = work / "stdout", work / "stderr"
        with stdout.open("wb") as stdout_file, stderr.open("wb") as stderr_file:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(str(self.program), "--directory", str((work / "code").resolve()), *flags),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=stdout_file,
                    stderr=stderr_file,
                    cwd=work / "home",
                    env=_environment(self.program, work),
                    start_new_session=True,  # so that its child processes can be killed with it
                )
            except OSError as error:
                raise AnalyserError(
                    f"{self.program} cannot be started: {error.strerror}; {INSTALL}"
                ) from error
            try:
                async with asyncio.timeout(self.timeout_s):
                    code = await _wait_within_output_limit(process, stdout, stderr)
            except TimeoutError as error:
                raise _RunFailed(
                    "timeout", f"checkov did not finish within {self.timeout_s:g} seconds"
                ) from error
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
        if code not in _SUCCESS_CODES:
            raise _RunFailed("exit", f"checkov exited with code {code}: {_last_line(stderr)}")
        _check_sizes(stdout)
        return stdout.read_bytes()


class _RunFailed(Exception):
    """A run that did not end normally; becomes an `AnalysisFailure`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def _wait_within_output_limit(process: asyncio.subprocess.Process, *files: Path) -> int:
    """Return the exit code of a program; raise `_RunFailed` as soon as its output is too large."""
    while True:
        try:
            async with asyncio.timeout(_POLL_S):
                return await process.wait()
        except TimeoutError:
            _check_sizes(*files)


def _check_sizes(*files: Path) -> None:
    if any(file.stat().st_size > OUTPUT_BYTES_MAX for file in files):
        raise _RunFailed("output", f"checkov printed more than {OUTPUT_BYTES_MAX // 1_000_000} MB")


def _environment(program: Path, work: Path) -> dict[str, str]:
    """Return the program's complete environment: it inherits no credentials or settings."""
    return {
        "PATH": os.pathsep.join([str(program.parent), os.defpath]),
        "HOME": str(work / "home"),
        "TMPDIR": str(work),
        "LC_ALL": "C.UTF-8",
        "LOG_LEVEL": "ERROR",
        "BC_SKIP_MAPPING": "TRUE",
        "CKV_SKIP_PACKAGE_UPDATE_CHECK": "TRUE",  # otherwise it checks PyPI for updates
        "CKV_GITHUB_CONFIG_FETCH_DATA": "False",
        "CKV_GITLAB_CONFIG_FETCH_DATA": "False",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _UNREACHABLE),
    }


def _last_line(path: Path) -> str:
    lines = path.read_bytes()[-10_000:].decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no error output"
