"""Tokens and their spans."""

from __future__ import annotations

from tavola.expressions.lexer import END, NAME, NAME_REF, NUMBER, UNKNOWN, VALUE_REF, lex


def test_a_text_is_cut_into_the_longest_tokens() -> None:
    """A name starts with a letter, a placeholder with # or :, a sign is as long as it can be."""
    tokens = lex("a_1.#b[12]<=:c<>_ \t\r\n#")

    assert [(token.kind, token.text) for token in tokens] == [
        (NAME, "a_1"),
        (".", "."),
        (NAME_REF, "#b"),
        ("[", "["),
        (NUMBER, "12"),
        ("]", "]"),
        ("<=", "<="),
        (VALUE_REF, ":c"),
        ("<>", "<>"),
        (UNKNOWN, "_"),
        (UNKNOWN, "#"),
        (END, "<EOF>"),
    ]


def test_a_span_covers_the_text() -> None:
    """Start and end are positions in the text."""
    text = "  size (a) >= :v AND é "

    assert all(text[token.start : token.end] == token.text for token in lex(text)[:-1])
    assert lex("")[0] == (END, "<EOF>", 0, 0)
