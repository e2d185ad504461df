"""The lesson on custom cells: it runs, teaches what it says, and is a notebook."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest
import torch
from pages import check_page

LESSON = Path(__file__).resolve().parent.parent / "examples" / "lesson_cell.py"


def test_the_lesson_learns_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with torch.random.fork_rng(devices=[]):
        names = runpy.run_path(str(LESSON))
    output = capsys.readouterr().out
    assert "finite differences: True" in output
    assert names["errors"].keys() == {"Keep", "torch.nn.GRU"}
    assert all(error < names["task"].chance / 10 for error in names["errors"].values())
    marked = names["marks"].bool()
    assert names["slopes"][marked].min() > 0.7
    assert names["slopes"][~marked].abs().max() < 0.3
    check_page(names["Keep"]()._repr_html_())


def test_every_cell_of_the_lesson_stands_by_itself() -> None:
    """What a notebook runs is a cell, and what it renders are lines of comments."""
    _, *cells = re.split(r"^# %%", LESSON.read_text("utf-8"), flags=re.MULTILINE)
    assert len(cells) > 10
    for cell in cells:
        title, _, body = cell.partition("\n")
        assert title in ("", " [markdown]")
        ast.parse(body)
        if title:
            assert all(line.startswith("#") for line in body.splitlines() if line)
