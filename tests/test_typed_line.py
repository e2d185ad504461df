"""A line typed with suggestions under it: what each key makes of it."""

from __future__ import annotations

import pytest

from ensue.cli.typing import ERASE, ESCAPE, TAB, _typed
from ensue.models.writing import Suggestion

CAT = [Suggestion("cat", 0.7), Suggestion("car", 0.2)]


@pytest.mark.parametrize(
    ("text", "key", "found", "whole", "after"),
    [
        ("the ca", "t", CAT, False, "the cat"),
        ("the ca", "é", CAT, False, "the caé"),
        ("the ca", ERASE[0], CAT, False, "the c"),
        ("", ERASE[1], CAT, True, ""),
        ("the ca", TAB, CAT, False, "the cat "),  # the word begun is completed
        ("the ", TAB, CAT, True, "the cat "),  # or the next one is added
        ("ca", TAB, CAT, False, "cat "),
        ("the xq", TAB, [], False, "the xq"),  # nothing to take
        ("the ca", ESCAPE, CAT, False, "the ca"),
        ("the ca", "", CAT, False, "the ca"),
    ],
)
def test_the_line_after_a_key(
    text: str, key: str, found: list[Suggestion], whole: bool, after: str
) -> None:
    assert _typed(text, key, found, whole) == after
