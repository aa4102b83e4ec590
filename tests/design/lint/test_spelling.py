"""Fixes of imported designs name the settings of the file they were imported from."""

from __future__ import annotations

import re

import pytest

from tavola.design.findings import DesignPath, Finding
from tavola.design.lint import FileFormat, spell_for

PLACE = DesignPath(kind="table", table="orders", name="orders")


@pytest.mark.parametrize(
    ("remedy", "terraform", "cloudformation"),
    [
        (
            "Set deletion_protection=True; it is free",
            "Set deletion_protection_enabled = true; it is free",
            "Set DeletionProtectionEnabled: true; it is free",
        ),
        (
            'Set stream="NEW_AND_OLD_IMAGES" on orders',
            'Set stream_enabled = true and stream_view_type = "NEW_AND_OLD_IMAGES" on orders',
            "Set StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES} on orders",
        ),
        (
            'Set ttl="expires_at", or leave it',
            'Set a ttl block with enabled = true and attribute_name = "expires_at", or leave it',
            "Set TimeToLiveSpecification: {Enabled: true, AttributeName: expires_at}, or leave it",
        ),
        ("Shard the key (shards=3)", "Shard the key (shards=3)", "Shard the key (shards=3)"),
    ],
)
def test_settings_are_spelled_as_in_the_file(remedy: str, terraform: str, cloudformation: str) -> None:
    """Settings of tables and consumers are translated; what only a Tavola design declares is not."""
    finding = Finding("a-rule", "warning", PLACE, "A message", remedy)

    assert spell_for(finding, "terraform").remedy == terraform
    assert spell_for(finding, "cloudformation").remedy == cloudformation


@pytest.mark.parametrize("file_format", ["terraform", "cloudformation"])
def test_no_fix_of_a_setting_is_left_in_python(file_format: FileFormat) -> None:
    """Every setting of a table or consumer that a rule's fix names is known to the translation."""
    settings = r"\b(deletion_protection|recovery|encryption|scaling|retries|failures|bisect|report_batch_item_failures|stream|ttl)="
    left = []
    for rule in _rule_texts():
        for text in re.findall(r"""["']([^"'\n]*\b\w+=[^\n]*)["'],?\n""", rule):
            spelled = spell_for(Finding("a-rule", "warning", PLACE, "", text), file_format).remedy
            left += [text] if re.search(settings, spelled) else []

    assert left == []


def _rule_texts() -> list[str]:
    from pathlib import Path

    from tavola.design.lint import rules

    folder = Path(rules.__file__).parent
    # The docstrings explain the rule in Python; findings come from the code below them.
    return [file.read_text().split('"""', 2)[2] for file in sorted(folder.glob("*.py"))]
