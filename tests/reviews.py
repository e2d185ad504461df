"""A small table of reviews, and settings with which it is learned at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.errors import EnsueError

SMALL = ["model.hidden_size=4", "model.embedding_size=4", "train.epochs=1"]


def refused(do: Any) -> str:
    with pytest.raises(EnsueError) as error:
        do()
    return str(error.value)


def reviews(path: Path, count: int = 60, first: int = 0) -> Path:
    words = ["the", "a", "film", "cast", "was", "with", "its", "story"]
    lines = ["review,stars,film"]
    for k in range(first, first + count):
        text = " ".join(words[(k * n) % len(words)] for n in range(1, 3 + k % 5))
        lines.append(f"{text} {'good' if k % 2 else 'bad'} {k},{1 + 4 * (k % 2)},film {k % 7}")
    path.write_text("\n".join(lines) + "\n")
    return path
