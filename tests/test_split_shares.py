"""Splits keep their shares: close enough that a few percent too many in one part are seen."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from ensue.data.split import (
    SHARES,
    by_block,
    by_group,
    by_hash,
    by_share,
    equal_shares,
    fraction,
    part_of,
    part_of_line,
)
from ensue.runs.infer import infer

ROWS = 40_000  # one percent of these is five standard deviations of a share of 0.8
UNEVEN = {"train": 0.7, "validation": 0.2, "test": 0.1}


@pytest.mark.parametrize(
    "shares", [SHARES, UNEVEN, equal_shares(4)], ids=["usual", "uneven", "folds"]
)
@pytest.mark.parametrize("way", [by_hash, by_group])
def test_the_parts_of_many_rows_are_near_their_shares(way, shares: dict[str, float]) -> None:
    split = way((f"text {k}" for k in range(ROWS)), shares, seed=2)
    for part, share in shares.items():
        assert len(split[part]) / ROWS == pytest.approx(share, abs=0.01)


def test_a_row_falls_where_its_number_falls() -> None:
    """The parts are laid end to end over [0, 1), in their order and of the length of their
    shares."""
    bounds = np.array(list(accumulate(UNEVEN.values())))[:-1]
    for k in range(2000):
        expected = list(UNEVEN)[int(np.searchsorted(bounds, fraction(f"row {k}", 3), "right"))]
        assert part_of(f"row {k}", UNEVEN, 3) == expected


def test_the_numbers_of_rows_are_spread_evenly() -> None:
    drawn = np.sort([fraction(f"row {k}", 1) for k in range(ROWS)])
    even = (np.arange(ROWS) + 0.5) / ROWS
    assert abs(drawn - even).max() < 1.95 / ROWS**0.5  # Kolmogorov–Smirnov, one in a thousand


def test_the_usual_split_is_eight_one_and_one_of_ten() -> None:
    assert {part: len(rows) for part, rows in by_share(1000).items()} == {
        "train": 800,
        "validation": 100,
        "test": 100,
    }


@pytest.mark.parametrize("shares", [SHARES, UNEVEN], ids=["usual", "uneven"])
def test_whole_cycles_of_lines_keep_the_shares_exactly(shares: dict[str, float]) -> None:
    lines = 10 * 511 + 3 * 2560  # the blocks of 1, 2, … 256 lines, and three cycles more of 256
    split = by_block(lines, shares, seed=4)
    for part, share in shares.items():
        assert len(split[part]) == round(lines * share)
        assert part_of_line(int(split[part][-1]), shares, 4) == part


def test_every_way_has_the_same_seed_where_none_is_given() -> None:
    """A row is in the same part, whichever way it was asked for."""
    rows = [f"text {k}" for k in range(200)]
    for way in (by_hash, by_group):
        split = way(rows)
        assert all(part_of(rows[k]) == part for part in split for k in split[part])
    lines = by_block(200)
    assert all(part_of_line(int(k)) == part for part in lines for k in lines[part])
    assert by_share(200)["test"].tolist() == by_share(200, seed=0)["test"].tolist()
    assert fraction("text") == fraction("text", 0)


def test_blank_texts_are_in_every_part(tmp_path: Path) -> None:
    """By their content they would all fall into one, whose scores would tell of nothing else."""
    rows = [f"{'a film ' + str(k) if k % 2 else ' '},{'yn'[k % 3 == 0]}" for k in range(800)]
    (tmp_path / "r.csv").write_text("\n".join(["review,good", *rows]), "utf-8")
    data = {"train": [str(tmp_path / "r.csv")], "text": "review", "label": "good"}
    config, _ = infer(data, "classify", [])
    model = config.new_model()
    files = model.reader.files(config.data)
    blanks = {}
    for name, share in SHARES.items():
        part = files.part(name)
        blanks[name] = int((part.inputs.lengths == 0).sum())
        assert blanks[name] / 400 == pytest.approx(share, abs=0.06)  # four standard deviations
        assert blanks[name] / len(part) == pytest.approx(0.5, abs=0.2)
    assert sum(blanks.values()) == 400
