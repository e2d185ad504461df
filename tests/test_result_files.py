"""Files for results are refused before the work begins, each for its own reason."""

from __future__ import annotations

import errno
import os
from itertools import count as count_from
from pathlib import Path

import pytest

from ensue.cli.app import check_files
from ensue.data.tasks.write import write_task
from ensue.errors import OptionError, RunError
from ensue.files.disk import write_together


def test_each_file_needs_a_folder(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.json", tmp_path / "none" / "a.json"
    picture, lost = tmp_path / "a.svg", tmp_path / "none" / "a.svg"
    for places in ((None, None), (good, None), (None, picture), (good, picture)):
        check_files(*places)
    for places, wrong in (((bad, None), bad), ((None, lost), lost), ((good, lost), lost)):
        with pytest.raises(OptionError) as caught:
            check_files(*places)
        assert str(caught.value) == f"{wrong} cannot be written: {wrong.parent} is not a folder"
    with pytest.raises(OptionError, match=r"expected a file name that ends in \.svg, \.png, \.pdf"):
        check_files(None, tmp_path / "a.gif")


@pytest.mark.parametrize("at", range(3))
def test_files_that_belong_together_are_all_old_or_all_new(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the so-manieth file."""
    names = ["a.onnx", "b.json", "predict.py"]
    write_together(tmp_path, dict.fromkeys(names, b"old"))
    plain, count = os.fsync, count_from(0)

    def full(handle: int) -> None:
        if next(count) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"not saved: No space left.*needed 9 bytes"):
            write_together(tmp_path, dict.fromkeys(names, b"new"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(
        names, b"old"
    )
    write_together(tmp_path, dict.fromkeys(names, b"new"))
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"new"}


def test_made_data_replace_no_other_file_unasked(tmp_path: Path) -> None:
    path = tmp_path / "dates.tsv"
    path.write_text("my own rows\n")
    with pytest.raises(OptionError) as error:
        write_task("dates", path, rows=5)
    assert str(error.value) == (
        f"{path} already exists with other content, and was left unchanged. Name another file, or "
        "add --replace"
    )
    assert [file.read_text() for file in tmp_path.iterdir()] == ["my own rows\n"]
    write_task("dates", path, rows=5, replace=True)
    made = path.read_text()
    write_task("dates", path, rows=5)  # the same rows again
    assert path.read_text() == made
    with pytest.raises(OptionError, match="add --replace"):
        write_task("dates", path, rows=5, seed=2)
