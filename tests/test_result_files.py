"""Files for results are refused before the work begins, each for its own reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.cli.app import check_files
from ensue.errors import OptionError


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
