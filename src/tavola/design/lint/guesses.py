"""Guesses: findings that stand on a key which an import guessed from samples are advice, and say so."""

from __future__ import annotations

from dataclasses import replace

from tavola.design.findings import Finding, Place
from tavola.design.lint.rule import Subject

_OF_KEYS = frozenset(  # rules that judge what a key is made of
    (
        "delimiter-collision",
        "few-partitions",
        "key-too-long",
        "mutable-index-key",
        "numbers-as-text",
        "single-partition",
        "template-overlap",
        "time-ordered-partition",
        "too-few-shards",
        "unknown-as-value",
        "version-in-status-index",
    )
)


def guessed_places(subject: Subject) -> frozenset[Place]:
    """Return where keys are that nobody declared."""
    return frozenset(
        subject.key_place(table, entity, key)
        for table, entity, key in subject.keyed()
        if any(source.guessed for source in key.sources)
    )


def softened(finding: Finding, guessed: frozenset[Place]) -> Finding:
    """Return a finding as it may stand: what is wrong with a guess is wrong with the guess first."""
    if finding.rule not in _OF_KEYS or finding.place not in guessed:
        return finding
    return replace(finding, severity="advice", message=f"{finding.message}; its key is a guess of the import")
