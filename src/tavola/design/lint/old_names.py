"""Old names of rules, which ignores, `--select`, `--ignore` and `tavola explain` still accept."""

from __future__ import annotations

from collections.abc import Mapping

OLD_RULE_NAMES: Mapping[str, str] = {
    "batch-too-large": "invalid-batch-get",
    "changed-immutable": "immutable-entity-updated",
    "collection-over-ten-gb": "item-collection-too-large",
    "consistent-index-read": "consistent-read-on-gsi",
    "consumer-counts-twice": "non-idempotent-consumer",
    "consumer-feeds-itself": "recursive-consumer",
    "consumer-misses-records": "consumer-misses-events",
    "consumer-without-failure-path": "no-failure-destination",
    "counter-item": "hot-counter",
    "deletion-unprotected": "no-deletion-protection",
    "empty-table": "table-without-entities",
    "encryption-missing": "no-customer-managed-key",
    "few-partitions": "hot-partition",
    "filtered-pattern": "inefficient-filter",
    "forgotten-index-key": "missing-index-key",
    "ghost-item": "accidental-upsert",
    "hot-transaction": "transaction-conflicts",
    "idempotency-without-expiry": "temporary-item-without-ttl",
    "ignore-of-no-rule": "unknown-ignore",
    "ignore-of-nothing": "unused-ignore",
    "keyless-pattern": "key-never-written",
    "leading-keys-match-nothing": "leading-keys-mismatch",
    "many-queries": "query-fan-out",
    "missing-amounts": "missing-traffic-estimates",
    "naive-time": "naive-datetime",
    "numbers-as-text": "unpadded-number",
    "one-way-relation": "missing-inverted-index",
    "partial-partition-key": "incomplete-partition-key",
    "partition-inequality": "range-on-partition-key",
    "policy-changes-immutable": "policy-allows-immutable-updates",
    "policy-misses-index": "policy-omits-indexes",
    "policy-of-no-table": "unknown-policy-resource",
    "projection-carries": "excessive-projection",
    "projection-lacks": "attribute-not-projected",
    "provisioned-without-scaling": "no-auto-scaling",
    "racing-version": "lost-update",
    "recovery-missing": "no-point-in-time-recovery",
    "scan-past-leading-keys": "scan-bypasses-leading-keys",
    "scanned-pattern": "frequent-scan",
    "sequence-by-count": "sequence-from-count",
    "single-partition": "constant-partition-key",
    "stream-consumers": "stream-consumer-limits",
    "stream-view-lacks": "wrong-stream-view-type",
    "template-overlap": "overlapping-keys",
    "time-ordered-partition": "time-based-partition-key",
    "two-orders": "mixed-sort-keys",
    "unknown-as-value": "null-in-index-key",
    "unreadable-policy": "invalid-policy",
    "version-in-status-index": "old-versions-in-index",
    "wrong-order": "wrong-sort-order",
}


def current_rule_name(name: str) -> str:
    """Return the current name of a rule, given its current or an old name. Unknown names are returned unchanged."""
    return OLD_RULE_NAMES.get(name, name)
