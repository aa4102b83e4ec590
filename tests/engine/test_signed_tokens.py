"""Seals: a token opens for whom and what it was made, and is nothing to anybody else."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tavola.engine.signed_tokens import TokenSigner
from tavola.engine.storage import Store
from tavola.entropy import SeededEntropy
from tavola.protocol.arns import Scope

HERE, THERE = Scope("111111111111", "us-east-1"), Scope("222222222222", "us-east-1")


def seals(store: Store, seed: int = 1) -> TokenSigner:
    return TokenSigner(store, SeededEntropy(seed), lambda: None)


def test_a_token_is_bound_to_its_purpose_and_its_owner() -> None:
    """The payload comes back to the caller it was given to, for the use it was made for."""
    with closing(Store.open(None, sync="off", cache_mb=16)) as store:
        made = seals(store)

        token = made.sign("iterator", HERE, {"after": 7})

        assert made.open("iterator", HERE, token) == {"after": 7}
        assert made.open("page", HERE, token) is None
        assert made.open("iterator", THERE, token) is None
        assert made.open("iterator", Scope(HERE.account, "eu-west-1"), token) is None


def test_the_secret_stays_with_the_store(tmp_path: Path) -> None:
    """A token outlives a restart of its store, and opens in no other store."""
    with closing(Store.open(tmp_path / "a.db", sync="off", cache_mb=16)) as store:
        token = seals(store).sign("page", HERE, {"x": 1})
    with closing(Store.open(tmp_path / "a.db", sync="off", cache_mb=16)) as store:
        assert seals(store, seed=2).open("page", HERE, token) == {"x": 1}
    with closing(Store.open(None, sync="off", cache_mb=16)) as store:
        other = seals(store, seed=3)
        other.sign("page", HERE, {})
        assert other.open("page", HERE, token) is None


@given(garbage=st.one_of(st.text(max_size=80), st.binary(max_size=80).map(lambda raw: raw.decode("latin-1"))))
def test_garbage_is_no_token(garbage: str) -> None:
    """Whatever is handed in, it is refused and never raises."""
    with closing(Store.open(None, sync="off", cache_mb=16)) as store:
        made = seals(store)
        made.sign("page", HERE, {})

        assert made.open("page", HERE, garbage) is None
