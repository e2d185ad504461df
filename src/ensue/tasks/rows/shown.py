"""Rows as an evaluation shows them: where they come from, and how they begin."""

from __future__ import annotations

from collections.abc import Callable

from ensue.data.ragged import Ragged
from ensue.tasks.evaluation.report import preview
from ensue.tasks.rows.part import Part


def shown_of(part: Part) -> Callable[[int], tuple[str, str]]:
    """The name of a row and the beginning of its text, of both texts where there are two; no text
    of vectors."""
    names = part.numbers.token_names
    sides: list[Ragged] = [part.inputs, *([] if part.second is None else [part.second])]

    def shown(row: int) -> tuple[str, str]:
        if not part.texts:
            return part.names[row], ""
        texts = [preview([names[k] for k in side.row(row)]) for side in sides]
        return part.names[row], " | ".join(texts)

    return shown
