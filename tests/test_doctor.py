"""The doctor finds what is there, says what to do where it is not, and touches nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ensue import doctor
from ensue.doctor import MachineFact
from ensue.engine.native import cache as native_cache

CPUINFO = """processor\t: 0
model name\t: Imagined CPU
flags\t\t: fpu {flags}
"""


def bare_doctor(**environment: str) -> list[MachineFact]:
    """The findings of `env -i <environment> ensue doctor --json`."""
    run = subprocess.run(
        [sys.executable, "-m", "ensue", "doctor", "--json"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    return [MachineFact(**row) for row in json.loads(run.stdout)]


def named(findings: list[MachineFact], name: str) -> MachineFact:
    (finding,) = [one for one in findings if one.name == name]
    return finding


def test_everything_is_examined_and_whatever_is_not_ok_has_advice() -> None:
    findings = doctor.examine()
    names = [one.name for one in findings]
    for name in (
        "ensue",
        "python",
        "torch",
        "numpy",
        "processor",
        "threads",
        "accelerator",
        "bfloat16",
    ):
        assert name in names
    assert {"compiler", "cache", "data", "extra dev"} <= set(names)
    assert [one for one in findings if one.state != "ok" and not one.advice] == []


def test_text_has_a_line_for_each_finding_and_its_advice() -> None:
    text = doctor.as_text(
        [MachineFact("a", "ok", "here"), MachineFact("b", "missing", "no", "get b")]
    )
    assert [line.split() for line in text.splitlines()] == [
        ["ok", "a", "here"],
        ["missing", "b", "no"],
        ["->", "get", "b"],
    ]


@pytest.mark.parametrize(
    ("flags", "state", "has"),
    [
        ("avx2 fma", "ok", "AVX2, FMA"),
        ("avx2", "warning", "AVX2"),
        ("avx512f avx2 fma", "ok", "AVX2, FMA"),
        ("avx2 fma avx512f avx512bw avx512dq avx512vl", "ok", "AVX2, FMA, AVX-512"),
        ("avx2 fma avx512_bf16 amx_tile amx_bf16", "ok", "AVX2, FMA, AVX512-BF16, AMX"),
        ("sse2", "warning", "nothing"),
    ],
)
def test_processor_features(tmp_path: Path, flags: str, state: str, has: str) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO.format(flags=flags))
    finding = doctor.processor(tmp_path / "cpuinfo")
    assert finding.state == state
    assert finding.value.startswith(f"Imagined CPU: with {has}; without ")


def test_a_processor_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    assert doctor.processor(tmp_path / "nothing").state == "warning"


def pretend_torch(threads: int = 1, cuda: str | None = None, gpu: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        get_num_threads=lambda: threads,
        version=SimpleNamespace(cuda=cuda),
        cuda=SimpleNamespace(is_available=lambda: gpu, get_device_name=lambda: "Imagined GPU"),
    )


def test_more_threads_than_cores_is_a_warning() -> None:
    assert doctor.threads(pretend_torch(threads=1)).state == "ok"
    assert "OMP_NUM_THREADS" in doctor.threads(pretend_torch(threads=100_000)).advice


def test_a_cuda_build_without_gpu_is_said() -> None:
    assert doctor.accelerator(pretend_torch()).state == "ok"
    assert "Imagined GPU" in doctor.accelerator(pretend_torch(cuda="12.8", gpu=True)).value
    finding = doctor.accelerator(pretend_torch(cuda="12.8"))
    assert finding.state == "warning"
    assert "no GPU" in finding.value


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_compiler_is_the_one_that_kernels_are_made_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)  # as if it were not installed
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert doctor.compiler().state == "missing"
    assert "apt install g++" in doctor.compiler().advice

    program(tmp_path / "clang++", "echo clang 99; echo more")
    assert doctor.compiler() == MachineFact("compiler", "ok", "clang++: clang 99")
    program(tmp_path / "g++", "echo gcc 77")
    assert doctor.compiler().value == "g++: gcc 77"
    assert native_cache.compiler.__wrapped__() == ("g++",)


def test_a_compiler_that_does_not_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "c++", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    finding = doctor.compiler()
    assert (finding.state, finding.value) == ("warning", "c++ does not run")
    assert "CXX" in finding.advice


@pytest.mark.parametrize("compiler", ["nowhere++", '"half a quotation'])
def test_a_cxx_that_is_not_there_is_named(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)
    program(tmp_path / "c++", "echo c 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", compiler)
    finding = doctor.compiler()
    assert (finding.state, finding.value) == ("missing", f"CXX={compiler} is not found")
    assert "unset CXX" in finding.advice


def test_a_torch_that_does_not_load_is_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ensue.engine.native", "ensue.engine.native.cache"):
        monkeypatch.setitem(sys.modules, name, None)
    assert doctor.compiler().value == "not checked: torch does not load"
    assert doctor.cache().value == "not checked: torch does not load"


def test_cxx_may_carry_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path / "mine", 'echo "mine $1"')
    monkeypatch.setenv("CXX", f"{mine} -stdlib=x")
    assert doctor.compiler().value == f"{mine} -stdlib=x: mine -stdlib=x"


def test_the_cache_is_looked_at_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "away"))
    assert "not created yet" in doctor.cache().value
    assert list(tmp_path.iterdir()) == []

    folder = tmp_path / "away" / "ensue"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "kernel").write_bytes(bytes(2_500_000))
    assert doctor.cache() == MachineFact("cache", "ok", f"{folder}, 2.5 MB")
    folder.chmod(0o777)
    assert "chmod 700" in doctor.cache().advice


def test_a_relative_cache_setting_counts_as_unset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor.cache().value == f"{tmp_path / '.cache' / 'ensue'}, not created yet"


def test_a_home_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor.cache().state == "ok"
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    finding = doctor.cache()
    assert finding.state == "warning"
    assert "XDG_CACHE_HOME" in finding.advice


def test_data_sets_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSUE_DATA", raising=False)
    assert "ENSUE_DATA" in doctor.data().advice
    monkeypatch.setenv("ENSUE_DATA", str(tmp_path / "nothing"))
    assert doctor.data().state == "warning"

    monkeypatch.setenv("ENSUE_DATA", str(tmp_path))
    (tmp_path / "ptb").mkdir()
    finding = doctor.data()
    assert finding.value == f"{tmp_path}: ptb"
    assert "imdb" in finding.advice
    for name in doctor.DATA_SETS:
        (tmp_path / name).mkdir(exist_ok=True)
    assert doctor.data().state == "ok"


def test_the_real_data_folder_is_complete(data_folder: Path) -> None:
    assert doctor.data().state == "ok", doctor.data()


def test_extras_are_read_from_the_metadata() -> None:
    lines = [
        "numpy>=1.26",
        "onnx>=1.17; extra == 'onnx'",
        'onnxruntime<3 ; python_version > "3.9" and extra == "onnx"',
        "ensue[onnx]; extra == 'all'",
    ]
    assert doctor.packages_of("onnx", lines) == ["onnx", "onnxruntime"]
    assert doctor.packages_of("all", lines) == []
    assert doctor.installed("pytest")
    assert not doctor.installed("no-such-package-anywhere")


def test_an_extra_that_lacks_a_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "installed", lambda package: package != "ruff")
    finding = named(list(doctor.extras()), "extra dev")
    assert (finding.state, finding.value) == ("missing", "lacks ruff")
    assert finding.advice == "pip install 'ensue[dev]'"


def test_it_works_with_an_empty_environment() -> None:
    assert named(bare_doctor(), "torch").state == "ok"


def test_it_works_in_the_c_locale_without_home_or_compiler(tmp_path: Path) -> None:
    findings = bare_doctor(
        LC_ALL="C", HOME="/dev/null", PATH=str(tmp_path), ENSUE_DATA="/nirgends/Übung"
    )
    assert named(findings, "cache").state == "warning"
    assert named(findings, "compiler").state == "missing"
    assert named(findings, "data").state == "warning"
