"""The demo of dates: what it learns from, what it counts, and that it runs."""

from datetime import date
from pathlib import Path

import pytest

from ensue import cli
from ensue.data.tasks.dates import FORMATS, Date, written
from ensue.demo import translation
from ensue.demo.page import DemoTrial, lengths_beside
from ensue.demo.translation import NEVER_IN_CAPITALS, mistyped, rows, unseen


def _run(*words: str) -> None:
    with pytest.raises(SystemExit) as ending:
        cli.main(list(words))
    assert ending.value.code == 0


def _isos(dates: list[Date]) -> set[str]:
    return {one.iso for one in dates}


def test_no_day_is_in_two_parts_and_what_is_kept_back_is_in_none() -> None:
    train, validation, test = (rows(part, 1500, 1) for part in ("train", "validation", "test"))
    assert not _isos(train) & _isos(validation) | _isos(train) & _isos(test)
    assert not _isos(validation) & _isos(test)
    assert {one.format for one in train} == set(FORMATS)
    assert not any(d.format in NEVER_IN_CAPITALS and d.text.isupper() for d in train)
    assert any(d.format not in NEVER_IN_CAPITALS and d.text.isupper() for d in train)
    new = unseen(200, 1)
    assert {one.format for one in new} == NEVER_IN_CAPITALS
    assert all(one.text.isupper() for one in new)
    assert not _isos(new) & _isos(train)
    assert rows("train", 50, 1) == train[:50]


def test_one_word_of_a_mistyped_date_is_wrong() -> None:
    dates = rows("test", 400, 1)
    by_iso = {(one.iso, one.format): one for one in dates}
    wrong_dates = mistyped(dates, 1)
    assert wrong_dates == mistyped(dates, 1)
    assert 100 < len(wrong_dates) < 400
    for one in wrong_dates:
        right = by_iso[one.iso, one.format]
        pairs = zip(one.text.split(" "), right.text.split(" "), strict=True)
        different = [(a, b) for a, b in pairs if a != b]
        assert len(different) <= 1  # none where the letters that were exchanged are the same
        for wrong, word in different:
            assert wrong[0] == word[0]
            assert abs(len(wrong) - len(word)) <= 1


def test_shares_are_counted() -> None:
    days = rows("test", 3, 1)
    long, short = sorted(days, key=lambda one: len(one.text))[::2]
    trial = DemoTrial("some", [long, short], [long.iso, "nothing"])
    assert trial.exact == 0.5
    assert trial.mistakes() == [(short, "nothing")]
    assert {share.name: share.share for share in trial.by_format()} == {
        long.format: 1.0,
        short.format: 0.0,
    }
    same = list(lengths_beside(trial, trial))
    assert sum(count for _, count, _, _ in same) == 2
    assert all(ours == theirs for _, _, ours, theirs in same)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo in a few seconds, of a network that learns next to nothing."""
    monkeypatch.setattr(translation, "ROWS", {"train": 96, "validation": 24, "test": 24})
    monkeypatch.setattr(translation, "OTHERS", 10)
    settings = {key: dict(table) for key, table in translation.SETTINGS.items()}
    settings["model"] |= {"hidden_size": 8, "embedding_size": 8, "validation_rows": 12}
    settings["train"] |= {"epochs": 1}
    monkeypatch.setattr(translation, "SETTINGS", settings)


def test_the_demo_runs_to_its_end_and_again(
    small: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for epochs in (1, 1, 2):  # the third time with other settings: from the start
        translation.SETTINGS["train"]["epochs"] = epochs
        _run("demo", "--out", "out")
        output = capsys.readouterr().out
        assert "\x1b" not in output
        for words in ("3.5.97", "typed wrong", "without attention", "Where it fails"):
            assert words in output
        assert max(map(len, output.splitlines())) <= 88
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert page.count("<figure") == 4
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page
    assert (tmp_path / "out" / "alignment.svg").read_text("utf-8").startswith("<svg")
    _run("predict", "out/dates", "out/test.tsv")
    assert len(capsys.readouterr().out.splitlines()) == 24


def test_a_folder_that_cannot_be_made_is_said_before_training(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SystemExit):
        cli.main(["demo", "--out", str(tmp_path / "taken")])
    assert capsys.readouterr().err == (
        f"OptionError: {tmp_path / 'taken'} cannot be written: File exists; "
        "name another folder with --out\n"
    )


def test_an_unknown_demo_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["demo", "date"])
    assert capsys.readouterr().err == (
        "OptionError: unknown demo 'date': did you mean 'dates'? Known: cell, dates\n"
    )


def test_what_is_shown_is_written_as_dates_are() -> None:
    assert translation.SHOWN in {written(date(2012, 10, 24), form).text for form in FORMATS}
