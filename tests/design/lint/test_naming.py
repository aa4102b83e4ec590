"""What names say, and what they do not."""

from __future__ import annotations

import pytest

from tavola.design.lint.naming import (
    is_expiry,
    is_production,
    serves_all_tenants,
    split_words,
    temporary_kind,
)
from tests.design.builders import entity, number, table, text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expires_at", ("expires", "at")),
        ("expiresAt", ("expires", "at")),
        ("ExpiresAt", ("expires", "at")),
        ("EXPIRES_AT", ("expires", "at")),
        ("TTL", ("ttl",)),
        ("HTTPServer2", ("http", "server", "2")),
        ("", ()),
        ("---", ()),
    ],
)
def test_a_name_has_words(name: str, expected: tuple[str, ...]) -> None:
    """However they are joined, the words are the same."""
    assert split_words(name) == expected


@pytest.mark.parametrize(
    ("name", "tags", "expected"),
    [
        ("prod-orders", {}, True),
        ("orders_production", {}, True),
        ("products", {}, False),
        ("reproduction", {}, False),
        ("orders", {"Environment": "Production"}, True),
        ("orders", {"stage": "prod-eu"}, True),
        ("orders", {"env": "live"}, True),
        ("prod-orders", {"Environment": "staging"}, False),
        ("orders", {"Owner": "production"}, False),
    ],
)
def test_a_table_says_that_it_is_in_production(name: str, tags: dict[str, str], expected: bool) -> None:
    """By its tag for the environment, which has the last word, else by a word of its name."""
    assert is_production(table(name=name, tags=tags)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ttl", True),
        ("expires", True),
        ("expiresAt", True),
        ("expiry_time", True),
        ("time_to_live", True),
        ("expiration_date", True),
        ("expired_by", False),
        ("leased_until", False),
        ("card_expiry", False),
        ("expiry_warning_sent", False),
    ],
)
def test_an_expiry_is_called_so(name: str, expected: bool) -> None:
    """Few names mean when an item may go; what merely speaks of expiring does not."""
    assert is_expiry(number(name)) is expected


@pytest.mark.parametrize(
    ("name", "pk", "fields", "expected"),
    [
        ("IdempotencyKey", "K#{k}", (), "idempotency keys"),
        ("Request", "IDEMPOTENCY#{k}", (), "idempotency keys"),
        ("CacheEntry", "K#{k}", (), "cached responses"),
        ("Session", "K#{k}", ("user_id",), "sessions"),
        ("Session", "K#{k}", ("speaker",), None),
        ("UserSession", "K#{k}", ("user_id",), "sessions"),
        ("SignedIn", "SESSION#{k}", ("user_id",), "sessions"),
        ("TrainingSession", "SESSION#{k}", ("customer_id",), None),
        ("LoginEvent", "LOGIN#{k}", ("user_id",), None),
        ("Order", "ORDER#{k}", ("user_id",), None),
    ],
)
def test_what_is_of_use_for_a_time_is_called_so(
    name: str, pk: str, fields: tuple[str, ...], expected: str | None
) -> None:
    """By the name of the entity or the beginning of its key; a session is a login where it belongs to somebody."""
    assert temporary_kind(entity(name, text("k"), *map(text, fields), pk=pk)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("shop-service", True), ("nightlyJob", True), ("admin", True), ("customer", False), ("lambda", False)],
)
def test_who_serves_everybody_is_called_so(name: str, expected: bool) -> None:
    """A process, or somebody who works for all tenants, by a word of the policy's name."""
    assert serves_all_tenants(name) is expected


@pytest.mark.parametrize(
    ("tags", "word", "expected"), [(("S",), "text", False), (("S",), "datetime", True), (("N",), "int", True)]
)
def test_an_expiry_is_a_time(tags: tuple[str, ...], word: str, expected: bool) -> None:
    """A text that is called so is a month on a card, or anything."""
    assert is_expiry(text("expires_at", tags=tags, type=word, key_kind=None)) is expected
