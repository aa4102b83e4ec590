"""Changes of a directory: who is added, what is attached, and who may take on a role."""

from __future__ import annotations

import pytest

from tavola.entropy import SeededEntropy
from tavola.iam import (
    Account,
    AlreadyInDirectory,
    AssumeRoleDenied,
    Directory,
    InvalidDirectory,
    NotInDirectory,
    add_account,
    add_group,
    add_key,
    add_role,
    add_user,
    assume_role,
    attach_policy,
    detach_policy,
    parse_directory,
    put_inline_policy,
    put_policy,
    remove_entry,
    render_directory,
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
        lambda: assume_role(directory, ACCOUNT, "None", "s1", entropy, now_s=0),
    ):
        with pytest.raises(NotInDirectory):
            change()
    grouped = add_group(add_account(directory, OTHER), OTHER, "Support")
    assert list(grouped.accounts[OTHER].groups) == ["Support"]


def test_a_session_ends(directory: Directory, entropy: SeededEntropy) -> None:
    """A session has a key of its own, a token and an end; those that have ended go when another is made."""
    changed, first = assume_role(directory, ACCOUNT, "Agent", "s1", entropy, now_s=1000, life_s=900)
    later, second = assume_role(changed, ACCOUNT, "Agent", "s2", entropy, now_s=2000, tags={"case": "7"})

    assert first.key.startswith("ASIA")
    assert (first.issued_at_s, first.expires_at_s, second.expires_at_s) == (1000, 1900, 5600)
    assert later.credential(first.key) is None
    assert later.credential(second.key) is not None
    assert remove_entry(later, ACCOUNT, "key", second.key).credential(second.key) is None
    assert remove_entry(later, ACCOUNT, "role", "Agent").credential(second.key) is None
    with pytest.raises(AssumeRoleDenied, match="lasts 900 to 43200 seconds"):
        assume_role(directory, ACCOUNT, "Agent", "s1", entropy, now_s=0, life_s=60)


def test_a_role_is_taken_on_by_whom_it_trusts(directory: Directory, entropy: SeededEntropy) -> None:
    """Without a trust policy the account's own users may; with one, those that it names."""
    changed = add_user(add_account(directory, OTHER), OTHER, "carol", entropy)
    carol, alice = changed.user(OTHER, "carol"), changed.user(ACCOUNT, "alice")
    named = {"Effect": "Allow", "Principal": {"AWS": carol.arn}, "Action": "sts:AssumeRole"}
    trusting = add_role(
        changed, ACCOUNT, "Visitors", entropy, trust={"Version": "2012-10-17", "Statement": [named]}
    )

    assume_role(changed, ACCOUNT, "Agent", "s1", entropy, now_s=0, by=alice)
    assume_role(trusting, ACCOUNT, "Visitors", "s1", entropy, now_s=0, by=carol)

    with pytest.raises(AssumeRoleDenied, match="is not authorized to perform: sts:AssumeRole"):
        assume_role(changed, ACCOUNT, "Agent", "s1", entropy, now_s=0, by=carol)
    with pytest.raises(AssumeRoleDenied):
        assume_role(trusting, ACCOUNT, "Visitors", "s1", entropy, now_s=0, by=alice)
