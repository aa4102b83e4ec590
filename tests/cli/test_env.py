"""`tavola env`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.main import app

NAMES = (
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
    "AWS_ENDPOINT_URL_STS",
    "TAVOLA_ENDPOINT",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without AWS's files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["env", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _sourced(text: str, **environment: str) -> dict[str, str]:
    script = text + "\n" + "\n".join(f'printf "%s\\n" "${name}"' for name in NAMES)
    path = {"PATH": os.environ["PATH"]}
    run = subprocess.run(
        ["sh", "-euc", script], env={**path, **environment}, capture_output=True, text=True, check=True
    )
    return dict(zip(NAMES, run.stdout.splitlines(), strict=True))


def test_a_shell_is_pointed_at_the_server() -> None:
    """Evaluated by a shell, it sets both endpoints, and credentials and region that SDKs insist on."""
    assert _sourced(_printed("--port", "8123")) == {
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8123",
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": "http://127.0.0.1:8123",
        "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:8123",
        "TAVOLA_ENDPOINT": "http://127.0.0.1:8123",
        "AWS_ACCESS_KEY_ID": "tavola",
        "AWS_SECRET_ACCESS_KEY": "tavola",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def test_what_is_set_stays() -> None:
    """Credentials and a region that are set are kept, and one region serves both variables."""
    found = _sourced(_printed(), AWS_ACCESS_KEY_ID="mine", AWS_DEFAULT_REGION="eu-west-1")

    assert found["AWS_ACCESS_KEY_ID"] == "mine"
    assert found["AWS_REGION"] == found["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_a_strange_host_is_only_a_host() -> None:
    """What is printed for a shell is quoted."""
    found = _sourced(_printed("--host", "a'; echo $HOME `id`"))

    assert found["AWS_ENDPOINT_URL_DYNAMODB"] == "http://a'; echo $HOME `id`:8000"


def test_other_shells_have_their_own_words() -> None:
    """Fish and PowerShell are spoken too."""
    fish = _printed("--shell", "fish", "--host", "it's").splitlines()
    powershell = _printed("--shell", "powershell", "--host", "it's").splitlines()

    assert fish[0] == r"set -gx AWS_ENDPOINT_URL_DYNAMODB 'http://it\'s:8000'"
    assert "set -q AWS_REGION; or set -gx AWS_REGION 'us-east-1'" in fish
    assert powershell[0] == "$Env:AWS_ENDPOINT_URL_DYNAMODB = 'http://it''s:8000'"
    assert "if (-not $Env:AWS_REGION) { $Env:AWS_REGION = 'us-east-1' }" in powershell


def test_a_program_gets_json() -> None:
    """With --json the variables are one JSON object."""
    told = json.loads(_printed("--json", "--host", "::1"))

    assert told["schema"] == "tavola.env/1"
    assert told["set"] == {
        "AWS_ENDPOINT_URL_DYNAMODB": "http://[::1]:8000",
        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": "http://[::1]:8000",
        "AWS_ENDPOINT_URL_STS": "http://[::1]:8000",
        "TAVOLA_ENDPOINT": "http://[::1]:8000",
    }
    assert set(told["set_if_unset"]) == set(NAMES[4:])


def test_a_profile_is_not_hidden(home: Path) -> None:
    """Whoever has a profile keeps its credentials and region: only the endpoints are set."""
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text("[default]\nregion = ap-south-1\n")

    assert [line.split("=")[0] for line in _printed().splitlines()] == [
        "export AWS_ENDPOINT_URL_DYNAMODB",
        "export AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
        "export AWS_ENDPOINT_URL_STS",
        "export TAVOLA_ENDPOINT",
    ]


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "secret"},
        {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"},
        {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"},
    ],
)
def test_unset_removes_what_env_set_and_nothing_else(own: dict[str, str]) -> None:
    """After --unset, a shell has the credentials and regions that it had before, also if env ran twice."""
    evaluated = "\n".join([_printed(), _printed(), _printed("--unset")])

    found = _sourced(f"{evaluated}\nset +u", **own)

    assert {name: value for name, value in found.items() if value} == own


def test_each_shell_has_its_own_commands_to_unset() -> None:
    """--unset removes the endpoints always, and credentials and regions if they are the ones that env set."""
    assert _printed("--unset").splitlines()[:4] == [
        "unset AWS_ENDPOINT_URL_DYNAMODB",
        "unset AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
        "unset AWS_ENDPOINT_URL_STS",
        "unset TAVOLA_ENDPOINT",
    ]
    fish = _printed("--unset", "--shell", "fish").splitlines()
    assert fish[0] == "set -e AWS_ENDPOINT_URL_DYNAMODB"
    assert "if test \"$AWS_ACCESS_KEY_ID\" = 'tavola'; set -e AWS_ACCESS_KEY_ID; end" in fish
    powershell = _printed("--unset", "--shell", "powershell")
    assert powershell.startswith("Remove-Item Env:AWS_ENDPOINT_URL_DYNAMODB ")
    assert "if ($Env:AWS_ACCESS_KEY_ID -eq 'tavola') { Remove-Item Env:AWS_ACCESS_KEY_ID " in powershell
