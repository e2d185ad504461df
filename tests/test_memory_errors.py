"""Which errors mean that memory ran out, as Python, torch and its allocators put it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ensue import TableModel, cli
from ensue.errors import OutOfMemory, memory_asked_for, no_memory
from ensue.tasks.table import Tabular


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried …"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (RuntimeError("memory format is not supported"), False),
    ],
)
def test_only_a_lack_of_memory_is_one(error: Exception, expected: bool) -> None:
    assert no_memory(error) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("you tried to allocate 4503599627370496 bytes. Error code 12", "4.0 PiB"),
        ("you tried to allocate 1000 bytes", "1000 bytes"),
        ("CUDA out of memory. Tried to allocate 2.50 GiB.", "2.50 GiB"),
        ("Unable to allocate 8.00 PiB for an array", "8.00 PiB"),
        ("out of memory", ""),
    ],
)
def test_the_memory_asked_for_is_named(words: str, expected: str) -> None:
    assert memory_asked_for(RuntimeError(words)) == expected


def too_large(*arguments: Any) -> torch.nn.Module:
    return torch.nn.Linear(1 << 30, 1 << 20)


def test_a_model_that_memory_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained, loaded, asked for on the command line: the error is one of ours."""
    rows = [{"area": float(k), "price": k + 0.5} for k in range(20)]
    model = TableModel(train={"epochs": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Tabular, "build", too_large)
        with pytest.raises(OutOfMemory, match=r"not enough memory: 4.0 PiB"):
            model.fit(rows, target="price")
    model.fit(rows, target="price").save(tmp_path / "run" / "model")
    build = Tabular.build

    def too_large_where_memory_is_taken(*arguments: Any) -> torch.nn.Module:
        """Shapes are compared before, without memory, and fit."""
        without = torch.get_default_device().type == "meta"
        return build(*arguments) if without else too_large()

    monkeypatch.setattr(Tabular, "build", too_large_where_memory_is_taken)
    with pytest.raises(OutOfMemory, match=r"not enough memory: 4.0 PiB"):
        TableModel.load(tmp_path / "run")
    table = tmp_path / "houses.csv"
    table.write_text("area,price\n" + "".join(f"{k},{2 * k}.5\n" for k in range(99)))
    with pytest.raises(SystemExit) as ending:
        cli.main(["train", str(table), "--target", "price", "--run", str(tmp_path / "r")])
    assert ending.value.code == 2
    assert "OutOfMemory: there is not enough memory: 4.0 PiB" in capsys.readouterr().err
