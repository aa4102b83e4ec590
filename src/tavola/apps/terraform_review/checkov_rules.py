"""What checkov's checks are about, and how bad it is where one fails.

Without a key to a paid platform checkov tells no severity, and its checks know no cost and no reliability. So
they are read by their names here: the first row that fits decides. A severity that checkov does tell is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tavola.apps.terraform_review.domain import Category, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """What checks are of a kind, by words of their names, and what failing one of them means."""

    words: re.Pattern[str]
    category: Category
    severity: Severity
    meaning: str


def _rule(words: str, category: Category, severity: Severity, meaning: str) -> Rule:
    return Rule(re.compile(words, re.IGNORECASE), category, severity, meaning)


OTHERWISE: Final = Rule(re.compile(""), Category.SECURITY, Severity.MEDIUM, "")

# In order: what exposes first, then the names that share a word ("backups are encrypted") with a later row.
RULES: Final = (
    _rule(
        r"hard.?coded|expose secrets?|credentials? exposure|basic credentials|password is not exposed",
        Category.SECURITY,
        Severity.HIGH,
        "a secret can be read",
    ),
    _rule(
        r"0\.0\.0\.0|::/0|publicly|public (read|write|access|ip|endpoint)|\bnot (be )?public\b|anonymous|"
        r"any principal|internet access|everyone|all ?users|unrestricted|global view",
        Category.SECURITY,
        Severity.HIGH,
        "open to everybody",
    ),
    _rule(
        r"administrative|full .*privilege|privilege escalation|exfiltration|permissions management|"
        r"\bwildcard|\"\*\" as|root (account|user)",
        Category.SECURITY,
        Severity.HIGH,
        "more rights than are needed",
    ),
    _rule(
        r"customer.(managed|supplied)|\bCMKs?\b|customer master key|\bKMS\b|key rotation",
        Category.SECURITY,
        Severity.LOW,
        "encrypted with the provider's key, not your own",
    ),
    _rule(
        r"encrypt|\bSSL\b|\bTLS\b|HTTPS|in transit|secure protocols?",
        Category.SECURITY,
        Severity.MEDIUM,
        "can be read on the way or on the disk",
    ),
    _rule(
        r"multi-?az|availability zones?|back(up|ed up)|point.in.time|recovery|snapshot|deletion protection|"
        r"replication|versioning|dead letter|failover|health ?check|redundan|auto.?(repair|upgrade)|"
        r"minor (version )?upgrades?|minor versions|create before destroy|soft.?delete|purge protection|"
        r"concurrent execution limit|scale sets",
        Category.RELIABILITY,
        Severity.MEDIUM,
        "data or service can be lost for longer than need be",
    ),
    _rule(
        r"lifecycle|specifies retention days|caching is enabled|attached to another",
        Category.COST,
        Severity.LOW,
        "kept and paid for without use",
    ),
    _rule(
        r"monitoring|performance insights|x-ray|tracing|event notifications|ebs optimi[sz]ed",
        Category.RELIABILITY,
        Severity.LOW,
        "trouble comes unseen",
    ),
    _rule(r"\blog(s|ging|ged)?\b|audit", Category.SECURITY, Severity.LOW, "leaves no trace"),
    _rule(
        r"commit hash|version number|immutable|tag should be fixed",
        Category.RELIABILITY,
        Severity.LOW,
        "may be something else tomorrow",
    ),
    _rule(r"description|naming|\btags?\b", Category.RELIABILITY, Severity.LOW, "hard to find one's way in"),
)

_TOLD: Final[dict[str, Severity]] = {
    "CRITICAL": Severity.HIGH,
    "HIGH": Severity.HIGH,
    "MEDIUM": Severity.MEDIUM,
    "MODERATE": Severity.MEDIUM,
    "LOW": Severity.LOW,
    "INFO": Severity.LOW,
    "NONE": Severity.LOW,
}


def rule_of(check_id: str, name: str) -> Rule:
    """Return the row for a check; one that finds secrets in text is told by its id."""
    if check_id.startswith("CKV_SECRET"):
        return RULES[0]
    return next((rule for rule in RULES if rule.words.search(name)), OTHERWISE)


def severity_of(told: str | None, rule: Rule) -> Severity:
    """Return how bad it is: what checkov told, else what the row says."""
    return _TOLD.get((told or "").upper(), rule.severity)
