"""What loading a model does not need."""

from __future__ import annotations

from pathlib import Path

from toy_runs import CASES, toy_run
from warm import Warm

LOADED = """
import sys
from pathlib import Path
import ensue
for folder in sys.argv[1:]:
    ensue.load(Path(folder, "run"))
    assert "torch._dynamo" not in sys.modules, folder
"""


def test_no_model_needs_torchs_compiler_to_be_loaded(warm: Warm, tmp_path: Path) -> None:
    """It takes a second to import, and was, for every answer that a command gave."""
    folders = [str(toy_run(name)) for name in CASES]
    run = warm.fresh(["-c", LOADED, *folders], tmp_path)
    assert run.returncode == 0, run.stderr
