"""A short form of the attacks: the server's turns stay short. See `__main__` for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.__main__ import AttackResult, run, served
from tests.attacks.attacks import Attack, attacks, prepare
from tests.attacks.wire import Connection

_SECONDS = 0.5
_TURN_WORST_MS = 30.0  # of CPU time, so that a busy machine does not matter; ten times what it is
_CHOSEN = (
    "put of a legal list of 60,000",
    "delete with a condition on an item of 60,000",
    "update with 140 copies of a list of 60,000",
    "update with 90 doublings of a list of 60,000",
    "put of 700,000 attributes",
    "projection of large items",
)


def _attack(name: str) -> Attack:
    return next(attack for attack in attacks() if attack.name == name)


def _results(folder: Path, names: tuple[str, ...], *, sliced: bool = True) -> dict[str, AttackResult]:
    with served(folder, "--sync", "off", sliced=sliced) as server:
        connection = Connection(server.url)
        prepare(connection, tiny_items=0)
        connection.close()
        return {name: run(_attack(name), server, _SECONDS) for name in names}


def test_no_request_stalls_the_others(tmp_path: Path) -> None:
    """I20 over HTTP: under attack no turn of the server takes long, and the good client is served."""
    for name, result in _results(tmp_path, _CHOSEN).items():
        assert result.answered, name
        assert result.turn_worst_ms <= _TURN_WORST_MS, result


def test_a_server_without_slices_fails(tmp_path: Path) -> None:
    """The measurement finds a server that processes each request in one piece, a planted fault."""
    results = _results(tmp_path, ("put of a legal list of 60,000",), sliced=False)

    assert results["put of a legal list of 60,000"].turn_worst_ms > _TURN_WORST_MS


def test_there_are_thirty_attacks() -> None:
    """The table has the attacks that were asked for and more; names are distinct."""
    names = [attack.name for attack in attacks()]

    assert len(names) >= 30
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", _CHOSEN)
def test_the_chosen_attacks_exist(name: str) -> None:
    """The short form runs attacks of the long one."""
    assert _attack(name).operation
