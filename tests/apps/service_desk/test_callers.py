"""Callers: session IDs are stored unchanged, phone numbers as keyed hashes, and anything ambiguous is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.apps.service_desk.callers import Callers, phone_number
from tavola.apps.service_desk.errors import CallerRefused

CALLERS = Callers(b"a secret of the service")


@pytest.mark.parametrize(
    "written",
    [
        "+39 06 0000 0000",
        "+390600000000",
        "+39-06-0000-0000",
        "+39 (06) 0000.0000",
        "0039 06 0000 0000",
        "00390600000000",
        "(0039) 06/0000 0000",
        "tel:+390600000000",
        "TEL:+39-06-0000-0000",
        "\u202a+39\u00a006\u00a00000\u00a00000\u202c",  # as an address book copies it
        "+39\u201006\u20130000\u22120000",
        "＋３９ ０６ ００００ ００００",  # full width
        "  +39 06 0000 0000 ",
    ],
)
def test_one_number_is_one_caller_however_it_is_written(written: str) -> None:
    """Spaces, dashes, brackets, 00, a scheme or another script do not change the caller."""
    assert phone_number(written) == "+390600000000"
    assert CALLERS.caller_id(written) == CALLERS.caller_id("+390600000000")


def test_a_number_is_stored_as_a_keyed_hash() -> None:
    """The ID shows that it is a number but not which one, and differs with another secret."""
    number = "+390600000000"

    hashed = CALLERS.caller_id(number)

    assert re.fullmatch(r"tel:[0-9a-f]{64}", hashed)
    assert number[1:] not in hashed
    assert Callers(b"another secret").caller_id(number) != hashed
    assert CALLERS.caller_id("+390600000001") != hashed
    assert CALLERS.caller_id(hashed) == hashed, "a caller ID from the API is accepted as a caller"


@pytest.mark.parametrize(
    "session",
    [
        "poc-user-001",
        "33567ee8-f182-4f8a-b03e-2f1515915471",
        "4711",
        "00000000000000000042",
        "20260209123000123456",
        "s1+s2",
        "tel",
        "desk@example.test",
        "caller#7",
        "sessione-è",
        "session-170748",  # six digits are no number
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "33567EE8-F182-4F8A-B03E-123456789012",
        "call:33567ee8-1234-4123-8123-123456789012",
        "CA0012345678ab4f9d0b1c2d3e4f5a6b7c",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
)
def test_a_session_id_is_stored_unchanged(session: str) -> None:
    """Text that is not a number is stored unchanged."""
    assert CALLERS.caller_id(session) == session


@pytest.mark.parametrize(
    "doubtful",
    [
        "0600000000",  # no country
        "06 0000 0000",
        "2026-02-09-001",  # ten digits: it could be a number
        "+39",
        "+39 (0)6 0000 0000",
        "+39 06 0000 0000 ext 12",
        "+390600000000;ext=12",
        "+1-800-FLOWERS",
        "+0600000000",
        "+1234567890123456",
        "0012",
        "000000000000",
        "whatsapp:+390600000000",
        "sip:+39 06 0000 0000@pbx.example",
        "tel:0600000000x",
        "tel:",
        "tel:" + "g" * 64,
        "",
        " ",
        "first last",
        "a\tb",
        "a\x00b",
        "\u200b",
        "x" * 129,
        "2025550100x12",  # an extension
        "00390612345678x12",
        "0612345678;ext=5",
        "0612345678p1",
        "2025550100,12",
        "sip:00390612345678@pbx",  # inside something else
        "sms:2025550100",
        "callto:0612345678",
        "phone-0612345678",
        "phone0612345678",
        "tel=2025550100",
        "'2025550100'",
        "39_061_234_5678",  # between other signs
        "39·06·12345678",
        "39:06:12345678",
        "39|06|12345678",
        "39~0612345678",
        "2025550100#",
        "*31*0612345678",
        "➕390612345678",
        "3\ufe0f\u20e39\ufe0f\u20e30\ufe0f\u20e36\ufe0f\u20e31\ufe0f\u20e32\ufe0f\u20e33\ufe0f\u20e3",  # keys of a phone_number
        "➌➒⓪➏➊➋➌➍➎➏",
        "session-➌➒⓪➏➊➋➌➍➎➏",
        "0114915123456789",  # as it is dialled from another country
        "011-49-151-23456789",
        "phone00390612345678ext12",
        "session-1707481225343",
    ],
)
def test_an_ambiguous_caller_is_refused_and_not_repeated(doubtful: str) -> None:
    """Text that may be a number and cannot be normalised is stored neither in clear nor as a wrong hash."""
    with pytest.raises(CallerRefused) as refused:
        CALLERS.caller_id(doubtful)

    assert len(doubtful.strip()) < 4 or doubtful not in str(refused.value)


@given(st.text(max_size=40))
def test_any_text_is_a_session_a_hash_or_refused(text: str) -> None:
    """Any text is stored unchanged, hashed, or refused with a message."""
    try:
        caller_id = CALLERS.caller_id(text)
    except CallerRefused:
        return

    assert caller_id == text or re.fullmatch(r"tel:[0-9a-f]{64}", caller_id)


@given(
    st.from_regex(r"[0-9]{7,18}", fullmatch=True),
    st.text(alphabet="-_.,:;|~#*'·/@ ", max_size=2),
    st.sampled_from(["", "id", "sip:", "phone", "(", "è"]),
    st.sampled_from(["", "x", "@pbx", "ext12", ";", ")"]),
)
def test_no_number_is_stored_in_clear(digits: str, between: str, before: str, after: str) -> None:
    """Seven to eighteen digits are hashed or refused, whatever surrounds or separates them."""
    try:
        caller_id = CALLERS.caller_id(before + between.join(digits) + after)
    except CallerRefused:
        return

    assert re.fullmatch(r"tel:[0-9a-f]{64}", caller_id)


@given(st.from_regex(r"[1-9][0-9]{6,14}", fullmatch=True), st.randoms(use_true_random=False))
def test_any_number_with_any_punctuation_is_hashed(digits: str, chance: object) -> None:
    """A number with its country code has the same hash, whatever separates its digits."""
    punctuation = [chance.choice(["", " ", "-", ".", "/"]) for _ in digits]  # type: ignore[attr-defined]
    written = "".join(sign + digit for sign, digit in zip(punctuation, digits, strict=True))

    assert CALLERS.caller_id("+" + written) == CALLERS.caller_id("00" + digits) != written


def test_the_id_of_a_request_is_a_uuid_of_key_and_caller() -> None:
    """An idempotency key gives one ticket ID per caller, which cannot be computed without the secret."""
    one = CALLERS.ticket_id("poc-user-001", "key")

    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)
    assert one == CALLERS.ticket_id("poc-user-001", "key")
    others = {
        CALLERS.ticket_id("poc-user-002", "key"),
        CALLERS.ticket_id("poc-user-001", "key2"),
        CALLERS.ticket_id("poc-user-001k", "ey"),  # the two do not run together
        Callers(b"another secret").ticket_id("poc-user-001", "key"),
    }
    assert len(others | {one}) == 5
