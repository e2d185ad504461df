"""Where a command may write a requested file: never over what belongs to a run or a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.errors import OptionError
from ensue.files.disk import MODEL_MARKS, OPENINGS, RUN_FILES, RUN_MARKS, refuse_target
from ensue.files.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with its folders, and the files next to it."""
    place = tmp_path / "runs" / "first"
    for folder in ("model", "checkpoints/step-000001", "evaluation-rows"):
        (place / folder).mkdir(parents=True)
    for name in RUN_MARKS:
        (place / name).touch()
    for name in MODEL_MARKS:
        (place / "model" / name).touch()
    (place.parent / OPENINGS).touch()
    return place


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RUN_FILES),
        "model/predictions.csv",
        "checkpoints/a.csv",
        "checkpoints/step-000001/a.csv",
        "evaluation-rows/x.jsonl",
        f"../{OPENINGS}",
    ],
)
def test_files_of_a_run_are_kept(run: Path, name: str) -> None:
    with pytest.raises(OptionError, match="cannot be written: files of a run or a model are never"):
        refuse_target(run / name)


def test_a_saved_model_is_kept(tmp_path: Path) -> None:
    for name in MODEL_MARKS:
        (tmp_path / name).touch()
    with pytest.raises(OptionError, match="files of a run or a model are never"):
        refuse_target(tmp_path / "answers.csv")


def test_other_names_and_other_folders_are_free(run: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()  # of something else
    (tmp_path / "manifest.json").touch()
    for free in (run / "answers.csv", tmp_path / "page.html", tmp_path / "runs" / "card.md"):
        refuse_target(free)
    refuse_target(tmp_path / OPENINGS)


def test_every_file_of_a_run_is_known(tmp_path: Path) -> None:
    """Except for its folders."""
    files = {path.name for path in vars(RunFolder(tmp_path)).values() if isinstance(path, Path)}
    files -= {tmp_path.name, "base", "checkpoints", "learned", "model", "evaluation-rows"}
    assert files <= RUN_FILES


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_folder_that_cannot_be_written_to_is_said_as_that() -> None:
    """Not as a disk that is full."""
    with pytest.raises(OptionError, match="the folder /proc cannot be written to"):
        refuse_target(Path("/proc/m.onnx"))
