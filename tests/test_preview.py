"""The beginning of a text, as long as there is room."""

from __future__ import annotations

import pytest

from ensue.tasks.evaluation.report import PREVIEW, preview


@pytest.mark.parametrize("more", [0, 1, 50])
def test_a_preview_fills_its_room_and_no_more(more: int) -> None:
    text = "x" * (PREVIEW + more)
    assert preview([text]) == (text if not more else text[: PREVIEW - 1] + "…")
    assert len(preview([text])) == len(preview(list(text), "")) == PREVIEW
    assert preview(["a", "b"]) == "a b"
