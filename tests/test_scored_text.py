"""What a language model says of a text, on one line."""

from __future__ import annotations

from ensue.tasks.language.surprisal import Scored


def test_bits_in_all_bits_a_token_and_the_greatest_surprise() -> None:
    scored = Scored(("the", "cat", "</s>"), (1.0, 4.5, 0.5))
    assert scored.total == 6.0
    assert scored.as_line("the\n cat") == "6.00\t2.00\tcat (4.5)\tthe cat"
