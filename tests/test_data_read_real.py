"""Real files read without a problem, and with the counts that their makers state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensue.data.check import check
from ensue.data.options import ALL, ReadOptions
from ensue.data.read import gather, gather_parallel, read
from ensue.data.rows import Problem

DATA = Path(os.environ.get("ENSUE_DATA", "nowhere"))
IMDB = ReadOptions(header=("label", "stars", "id", "text"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="ENSUE_DATA does not name the folder of the benchmark data"
)


@pytest.mark.parametrize(
    ("name", "options", "rows"),
    [
        ("imdb/imdb.train.tsv.gz", IMDB, 25_000),
        ("imdb/imdb.test.tsv.gz", IMDB, 25_000),
        ("ud-english-ewt/en_ewt-ud-train.conllu.gz", ReadOptions(), 12_544),
        ("ud-english-ewt/en_ewt-ud-dev.conllu.gz", ReadOptions(), 2_001),
        ("ud-english-ewt/en_ewt-ud-test.conllu.gz", ReadOptions(), 2_077),
        ("ptb/ptb.train.txt.gz", ReadOptions(), 42_068),
        ("ett/ETTh1.csv.gz", ReadOptions(numbers=ALL, time="date"), 17_420),
        ("timeseries-small/airline-passengers.csv", ReadOptions(numbers=("Passengers",)), 144),
        ("timeseries-small/monthly-sunspots.csv", ReadOptions(numbers=ALL, time="Month"), 2_820),
        ("timeseries-small/pollution.csv.gz", ReadOptions(numbers=("TEMP",)), 43_824),
        ("rt-polarity/rt-polarity.pos.gz", ReadOptions(format="text", encoding="cp1252"), 5_331),
        ("rt-polarity/rt-polarity.neg.gz", ReadOptions(format="text", encoding="cp1252"), 5_331),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_real_files(name: str, options: ReadOptions, rows: int) -> None:
    assert sum(1 for _ in gather([DATA / name], options)) == rows


def test_imdb_lines_are_cut_at_lf_alone() -> None:
    words = signs = 0
    for row in gather([DATA / "imdb" / "imdb.train.tsv.gz"], IMDB):
        words += len(row.fields["text"].split())
        signs += "\x85" in row.fields["text"]
    assert words == 5_844_680
    assert signs > 300


@pytest.mark.parametrize(("part", "rows"), [("train", 29_000), ("val", 1_014)])
def test_parallel_text(part: str, rows: int) -> None:
    files = [DATA / "multi30k" / f"raw.{part}.{language}.gz" for language in ("de", "en")]
    assert sum(1 for _ in gather_parallel(*files, ReadOptions())) == rows


def test_another_encoding_is_refused_with_the_right_hint() -> None:
    path = DATA / "rt-polarity" / "rt-polarity.neg.gz"
    problems: list[Problem] = []
    count = sum(1 for _ in read(path, ReadOptions(format="text"), problems.append))
    assert count + len(problems) == 5_331
    assert str(problems[0]) == (
        f"{path}:32: 0xE9 at byte 3777 is not utf-8; cp1252 reads 'é': use --encoding cp1252 "
        "if that is right"
    )


def test_missing_values_are_told() -> None:
    problems: list[Problem] = []
    path = DATA / "timeseries-small" / "pollution.csv.gz"
    count = sum(1 for _ in read(path, ReadOptions(numbers=("pm2.5",)), problems.append))
    assert count + len(problems) == 43_824
    message = "column 'pm2.5': expected a finite number, got 'NA' (a missing value?)"
    assert {problem.reason for problem in problems} == {message}


@pytest.mark.slow
def test_imdb_has_123_reviews_in_both_parts() -> None:
    parts = {part: [DATA / "imdb" / f"imdb.{part}.tsv.gz"] for part in ("train", "test")}
    report = check(parts, IMDB, text="text", label="label")
    assert report.ok
    facts = report.as_json()["parts"]
    assert facts["test"]["leaked"] == {"train": 123}
    assert (facts["train"]["duplicates"], facts["test"]["duplicates"]) == (96, 199)
