"""Changes of a directory: who is added, what is attached, and who may take on a role."""

from __future__ import annotations

import pytest

from tavola.entropy import SeededEntropy
from tavola.iam import (
    Account,
    AlreadyInDirectory,
    Directory,
    InvalidDirectory,
    NotInDirectory,
    add_account,
    add_group,
    add_key,
    add_role,
    add_user,
    attach_policy,
    detach_policy,
    parse_directory,
    put_inline_policy,
    put_policy,
    remove_entry,
    render_directory,
    replace_session_key,
)
from tavola.protocol.arns import account_of_key
from tests.iam.tables import ACCOUNT, OTHER, policy


@pytest.fixture
def entropy() -> SeededEntropy:
    """Chance that repeats."""
    return SeededEntropy(1)


@pytest.fixture
def directory(entropy: SeededEntropy) -> Directory:
    """An account with a user and a role."""
    return add_role(
        add_user(Directory({ACCOUNT: Account()}), ACCOUNT, "alice", entropy), ACCOUNT, "Agent", entropy
    )


def test_a_change_leaves_the_directory_it_was_made_of(directory: Directory, entropy: SeededEntropy) -> None:
    """A directory is never changed; what is made of it is read back from its document."""
    changed = add_user(directory, ACCOUNT, "bob", entropy, tags={"team": "red"})

    assert list(directory.accounts[ACCOUNT].users) == ["alice"]
    assert list(changed.accounts[ACCOUNT].users) == ["alice", "bob"]
    assert parse_directory(render_directory(changed)).accounts == changed.accounts


def test_a_key_carries_its_account(directory: Directory, entropy: SeededEntropy) -> None:
    """An access key has AWS's form, says whose it is, and has a secret of forty signs."""
    changed, key = add_key(directory, ACCOUNT, "alice", entropy)
    changed, root = add_key(changed, ACCOUNT, "root", entropy)

    assert account_of_key(key.id) == account_of_key(root.id) == ACCOUNT
    assert key.id.startswith("AKIA")
    assert (len(key.id), len(key.secret)) == (20, 40)
    assert key != root
    found = changed.credential(root.id)
    assert found is not None
    assert found.principal.kind == "root"


def test_policies_come_and_go(directory: Directory) -> None:
    """A policy is put under a name and attached by it; attached or inline, it is taken by its name."""
    changed = put_policy(directory, ACCOUNT, "Read", policy({}))
    changed = attach_policy(changed, ACCOUNT, "user", "alice", "Read")
    again = attach_policy(changed, ACCOUNT, "user", "alice", "Read")
    with_inline = put_inline_policy(changed, ACCOUNT, "user", "alice", "own", policy({}))

    assert again.accounts[ACCOUNT].users["alice"].policies == ("Read",)
    assert (
        detach_policy(changed, ACCOUNT, "user", "alice", "Read").accounts[ACCOUNT].users["alice"].policies
        == ()
    )
    assert (
        detach_policy(with_inline, ACCOUNT, "user", "alice", "own").accounts[ACCOUNT].users["alice"].inline
        == {}
    )
    with pytest.raises(NotInDirectory, match="has no policy Else"):
        detach_policy(changed, ACCOUNT, "user", "alice", "Else")
    with pytest.raises(InvalidDirectory, match="policy Else does not exist"):
        attach_policy(changed, ACCOUNT, "user", "alice", "Else")
    with pytest.raises(InvalidDirectory, match="policy Read does not exist"):
        remove_entry(changed, ACCOUNT, "policy", "Read")


def test_names_are_taken_once(directory: Directory, entropy: SeededEntropy) -> None:
    """A second of the same name is refused, and so is what hangs on nobody."""
    with pytest.raises(AlreadyInDirectory):
        add_user(directory, ACCOUNT, "alice", entropy)
    with pytest.raises(AlreadyInDirectory):
        add_account(directory, ACCOUNT)
    for change in (
        lambda: add_user(directory, OTHER, "bob", entropy),
        lambda: add_key(directory, ACCOUNT, "bob", entropy),
        lambda: attach_policy(directory, ACCOUNT, "group", "None", "AdministratorAccess"),
        lambda: remove_entry(directory, ACCOUNT, "user", "bob"),
        lambda: remove_entry(directory, ACCOUNT, "key", "AKIA"),
    ):
        with pytest.raises(NotInDirectory):
            change()
    grouped = add_group(add_account(directory, OTHER), OTHER, "Support")
    assert list(grouped.accounts[OTHER].groups) == ["Support"]


def test_a_session_key_is_kept_until_it_is_replaced(directory: Directory, entropy: SeededEntropy) -> None:
    """No change of users and roles ends the sessions; another session key ends all of them."""
    first = replace_session_key(directory, entropy)
    second = replace_session_key(first, entropy)

    assert first.session_key is not None
    assert len(bytes.fromhex(first.session_key)) == 32
    assert add_user(first, ACCOUNT, "bob", entropy).session_key == first.session_key
    assert add_account(first, OTHER).session_key == first.session_key
    assert second.session_key != first.session_key
