"""A processor that names instructions which its machine refuses: bfloat16 ends a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trainees import Judge, Rows, build

from benchmarks.engine import bench
from benchmarks.engine.bench import Options, run_bench
from benchmarks.engine.case import Case
from ensue import doctor
from ensue.cells import LSTM
from ensue.engine import machine
from ensue.errors import ConfigError
from ensue.training import TrainSettings, fit

DYING = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles are named, and end whoever uses them."""
    monkeypatch.setattr(machine, "processor", lambda: f"flags: avx2 {machine.TILES}")
    monkeypatch.setattr(machine, "NARROW_PRODUCT", DYING)
    machine.why_no_bfloat16.cache_clear()
    yield
    machine.why_no_bfloat16.cache_clear()


def test_training_in_bfloat16_is_refused_with_the_reason(refused: None) -> None:
    model = build("linear")
    expected = (
        "train.precision: expected float32, got bfloat16, which fails on this machine: the "
        "processor names AMX among its instructions, and a product of bfloat16 ends with SIGILL; "
        "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 to compute without it"
    )
    with pytest.raises(ConfigError) as error:
        fit(model, Rows(), Judge(model), TrainSettings(epochs=1, precision="bfloat16"))
    assert str(error.value) == expected
    fit(model, Rows(), Judge(model), TrainSettings(epochs=1))  # float32 is not asked about


def test_the_doctor_says_so(refused: None) -> None:
    finding = doctor.bfloat16()
    assert finding.state == "warning"
    assert "SIGILL" in finding.value
    assert finding.advice == "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 to compute without it"


def test_a_benchmark_leaves_it_out(refused: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "gemm_rates", lambda dtype, sizes: {8: 1.0})
    case = Case("bf16", "LSTM", 4, 3, 5, "train")
    report = run_bench([case], {"LSTM": LSTM()}, Options(runs=1))
    assert not report.results
    assert "bfloat16" not in report.gemm
    assert "SIGILL" in report.problems[0]


def test_what_works_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for named, program in (("", DYING), (machine.TILES, "pass")):
        monkeypatch.setattr(machine, "processor", lambda named=named: f"flags: {named}")
        monkeypatch.setattr(machine, "NARROW_PRODUCT", program)
        machine.why_no_bfloat16.cache_clear()
        assert not machine.why_no_bfloat16()
    machine.why_no_bfloat16.cache_clear()
