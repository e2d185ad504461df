"""Long tables: many lines make one sequence of feature vectors, and a fault leaves it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.data.options import ReadOptions
from ensue.data.read import read
from ensue.data.rows import Problem

LONG = ReadOptions(sequence="id", numbers=("x", "y"), columns=("label",), step_columns=("tag",))


def long_table(path: Path, lines: list[str]) -> tuple[list[Any], list[tuple[int, str, int]]]:
    path.write_text("\n".join(["id,x,y,label,tag", *lines]) + "\n")
    problems: list[Problem] = []
    rows = list(read(path, LONG, problems.append))
    return rows, [(p.place.line, p.reason, p.rejects) for p in problems]


CLEAN = ["a,1,2,up,s", "a,3,4,up,t", "b,5,6,down,s", "c,7,8,up,s", "c,9,10,up,t", "c,0,0,up,u"]


def test_a_long_table_gives_sequences_of_vectors(tmp_path: Path) -> None:
    rows, problems = long_table(tmp_path / "steps.csv", CLEAN)
    assert problems == []
    assert [row.place.line for row in rows] == [2, 4, 5]
    assert [row.fields["sequence"] for row in rows] == ["a", "b", "c"]
    assert [row.fields["features"].tolist() for row in rows] == [
        [[1, 2], [3, 4]],
        [[5, 6]],
        [[7, 8], [9, 10], [0, 0]],
    ]
    assert [row.fields["label"] for row in rows] == ["up", "down", "up"]
    assert [row.fields["tag"] for row in rows] == [["s", "t"], ["s"], ["s", "t", "u"]]


@pytest.mark.parametrize(
    ("at", "line", "sequences", "problems"),
    [
        (
            1,
            "a,x,4,up,t",
            "bc",
            [
                (3, "column 'x': expected a finite number, got 'x'", 0),
                (2, "sequence 'a' is left out: line 3 is faulty", 1),
            ],
        ),
        (
            4,
            "c,9,10,down,t",
            "ab",
            [
                (
                    6,
                    "column 'label': expected 'up' as on line 5, got 'down' in the same "
                    "sequence 'c'",
                    0,
                ),
                (5, "sequence 'c' is left out: line 6 is faulty", 1),
            ],
        ),
        (  # a line inside a sequence belongs to it
            4,
            "c,9",
            "ab",
            [
                (6, "expected 5 columns, found 2 (missing comma?)", 0),
                (5, "sequence 'c' is left out: line 6 is faulty", 1),
            ],
        ),
        (  # between two sequences it may belong to either
            1,
            "b,1",
            "c",
            [
                (3, "expected 5 columns, found 2 (missing comma?)", 0),
                (2, "sequence 'a' is left out: line 3 is faulty", 1),
                (4, "sequence 'b' is left out: line 3 is faulty", 1),
            ],
        ),
        (
            5,
            "a,0,0,up,u",
            "abc",
            [
                (
                    7,
                    "sequence 'a' began on line 2 and has ended: the lines of a sequence must "
                    "be consecutive",
                    0,
                ),
                (7, "sequence 'a' is left out: line 7 is faulty", 1),
            ],
        ),
    ],
)
def test_a_fault_leaves_its_sequence_out(
    at: int, line: str, sequences: str, problems: list[tuple[int, str, int]], tmp_path: Path
) -> None:
    lines = [*CLEAN[:at], line, *CLEAN[at + 1 :]]
    rows, actual = long_table(tmp_path / "steps.csv", lines)
    assert actual == problems
    assert "".join(row.fields["sequence"] for row in rows) == sequences
