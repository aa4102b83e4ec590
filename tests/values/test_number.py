"""Numbers: the captured check values, the ends of the range, and the words of each refusal."""

from __future__ import annotations

import pytest

from tavola.values import NumberRefused, add_numbers, canonical_number, number_size, subtract_numbers


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("0042.1200", "42.12"),
        ("-0", "0"),
        ("+7", "7"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1E-3", "0.001"),
        ("1E125", "1" + "0" * 125),
        ("1E-130", "0." + "0" * 129 + "1"),
        ("-9.9999999999999999999999999999999999999E+125", "-" + "9" * 38 + "0" * 88),
        ("0e999999999999", "0"),
        ("0." + "0" * 300, "0"),
        ("0" * 300 + "1", "1"),
    ],
)
def test_a_number_has_one_text(sent: str, stored: str) -> None:
    """A number comes back without exponent, sign of plus, or zeros that say nothing."""
    assert canonical_number(sent) == stored
    assert canonical_number(stored) == stored


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("1", 2),
        ("12", 2),
        ("123", 3),
        ("1.5", 3),
        ("3.14159", 5),
        ("100", 2),
        ("1E125", 2),
        ("-42", 3),
        ("-0", 1),
        ("0", 1),
        ("9" * 38, 20),
        ("1000.5", 4),
        ("0.0012", 2),
    ],
)
def test_sizes_are_those_captured_on_aws(number: str, size: int) -> None:
    """The check values of the item-size rule."""
    assert number_size(number) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "NaN",
        "Infinity",
        "-Infinity",
        "0x10",
        "1e",
        "e1",
        "--1",
        "1.2.3",
        ".",
        "+",
        "١",
        "1_0",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    """Only digits, one sign, one point and one exponent spell a number."""
    with pytest.raises(NumberRefused, match="cannot be converted to a numeric value"):
        canonical_number(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1E126", "Number overflow"),
        ("-1E126", "Number overflow"),
        ("1E-131", "Number underflow"),
        ("1" * 39, "more than 38 significant digits"),
        ("1." + "0" * 37 + "1", "more than 38 significant digits"),
    ],
)
def test_an_invalid_number_is_refused(text: str, message: str) -> None:
    """Magnitude and precision have ends, and are never rounded to them."""
    with pytest.raises(NumberRefused, match=message):
        canonical_number(text)


def test_trailing_zeros_are_no_digits() -> None:
    """Thirty-eight digits are counted without the zeros around them."""
    assert canonical_number("9" * 38 + "0" * 10) == "9" * 38 + "0" * 10
    assert canonical_number("0." + "0" * 50 + "9" * 38) == "0." + "0" * 50 + "9" * 38


def test_arithmetic_is_exact() -> None:
    """Sums and differences are decimal, and refused where they need too many digits."""
    assert add_numbers("0.1", "0.2") == "0.3"
    assert subtract_numbers("1", "1") == "0"
    assert subtract_numbers("1", "0.9999999999999999999999999999999999999") == "0." + "0" * 36 + "1"
    with pytest.raises(NumberRefused, match="Number overflow"):
        add_numbers("1E125", "1E-130")
    with pytest.raises(NumberRefused, match="Number overflow"):
        add_numbers("9" * 38 + "0" * 88, "9" * 38 + "0" * 88)
