"""Problems of a folder of pictures name the folder or the file that has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ensue.data.pictures.images import read_image_folder, write_image


def test_every_problem_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    write_image(tmp_path / "cat" / "1.png", np.zeros((1, 4, 4), np.uint8))
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    heard = []
    assert len(list(read_image_folder(tmp_path, heard.append))) == 1
    assert [problem.place.file for problem in heard] == [
        str(tmp_path / "cat" / "notes.txt"),
        str(tmp_path / "dog"),
    ]
