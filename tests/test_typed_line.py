"""A line typed with suggestions under it: what each key makes of it."""

from __future__ import annotations

import pytest

from ensue.cli.typing import ERASE, ESCAPE, TAB, _typed
from ensue.tasks.abilities import Suggestion

CAT = [Suggestion("cat", 0.7), Suggestion("car", 0.2)]


@pytest.mark.parametrize(
    ("text", "key", "suggestions", "after"),
    [
        ("the ca", "t", CAT, "the cat"),
        ("the ca", "é", CAT, "the caé"),
        ("the ca", ERASE[0], CAT, "the c"),
        ("", ERASE[1], CAT, ""),
        ("the ca", TAB, CAT, "the cat "),  # the word begun is completed
        ("the ", TAB, CAT, "the cat "),  # or the next one is added
        ("ca", TAB, CAT, "cat "),
        ("the xq", TAB, [], "the xq"),  # nothing to take
        ("the ca", ESCAPE, CAT, "the ca"),
        ("the ca", "", CAT, "the ca"),
    ],
)
def test_the_line_after_a_key(
    text: str, key: str, suggestions: list[Suggestion], after: str
) -> None:
    assert _typed(text, key, suggestions) == after
