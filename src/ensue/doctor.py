"""Facts about this machine, for `ensue doctor`.

Each function examines one thing and changes nothing: no folder is created, no file written. A
failed examination is a finding too, never an exception.
"""

import os
import platform
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Literal

from ensue import __version__

# A feature of the processor, and the flags of /proc/cpuinfo that together mean it.
FEATURES: Mapping[str, frozenset[str]] = {
    "AVX2": frozenset({"avx2"}),
    "FMA": frozenset({"fma"}),
    "AVX-512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    "AVX512-BF16": frozenset({"avx512_bf16"}),
    "AMX": frozenset({"amx_tile", "amx_bf16"}),
}
DATA_SETS = (
    "ptb",
    "imdb",
    "rt-polarity",
    "ud-english-ewt",
    "multi30k",
    "tinyshakespeare",
    "mnist",
    "ett",
    "timeseries-small",
)
NO_NATIVE = "until then the slower eager engine runs"
GET_COMPILER = (
    "Debian: apt install g++; macOS: xcode-select --install; anywhere: pip install ziglang; "
    + NO_NATIVE
)


@dataclass(frozen=True)
class MachineFact:
    """One line of the report; `advice` is empty if there is nothing to do."""

    name: str
    state: Literal["ok", "missing", "warning"]
    value: str
    advice: str = ""


def versions() -> Iterator[MachineFact]:
    yield MachineFact("ensue", "ok", __version__)
    yield MachineFact("python", "ok", f"{platform.python_version()} on {platform.platform()}")
    for name in ("torch", "numpy"):
        try:
            yield MachineFact(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            yield MachineFact(name, "missing", "not installed", f"pip install {name}")


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> MachineFact:
    """The processor's name, and its features among FEATURES."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    fields = dict(re.findall(r"^(model name|flags)\s*:[ \t]*(.*)$", text, re.MULTILINE))
    name = fields.get("model name") or platform.processor() or platform.machine() or "unknown"
    flags = set(fields.get("flags", "").split())
    has = [feature for feature, needed in FEATURES.items() if needed <= flags]
    lacks = [feature for feature in FEATURES if feature not in has]
    value = f"{name}: with {', '.join(has) or 'nothing'}; without {', '.join(lacks) or 'nothing'}"
    if {"AVX2", "FMA"} <= set(has):
        return MachineFact("processor", "ok", value)
    return MachineFact(
        "processor", "warning", value, "the native engine needs AVX2 and FMA; eager runs instead"
    )


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads(torch: ModuleType) -> MachineFact:
    """The cores that this process may use, and the threads that torch will start."""
    allowed, started = cores(), torch.get_num_threads()
    value = f"{allowed} cores, {started} torch threads"
    if started <= allowed:
        return MachineFact("threads", "ok", value)
    return MachineFact("threads", "warning", value, f"set OMP_NUM_THREADS={allowed} or lower")


def accelerator(torch: ModuleType) -> MachineFact:
    """The device that torch was built for, and whether it is available."""
    built_for = torch.version.cuda
    if built_for is None:
        return MachineFact("accelerator", "ok", "none: torch is a build for the CPU")
    if torch.cuda.is_available():
        return MachineFact("accelerator", "ok", f"CUDA {built_for}: {torch.cuda.get_device_name()}")
    return MachineFact(
        "accelerator",
        "warning",
        f"torch is a build for CUDA {built_for}, and no GPU can be used",
        "nothing is wrong; torch's CPU build does the same in a far smaller download",
    )


def bfloat16() -> MachineFact:
    """Whether bfloat16 works as the processor claims."""
    from ensue.engine.machine import why_no_bfloat16

    if why := why_no_bfloat16():
        return MachineFact("bfloat16", "warning", *why.split("; ", 1))
    return MachineFact("bfloat16", "ok", "products can be computed")


def about_torch() -> Iterator[MachineFact]:
    """Findings that need torch; if torch cannot be loaded, that is the finding."""
    try:
        import torch
    except (ImportError, OSError) as problem:
        yield MachineFact(
            "torch loads", "missing", str(problem), "pip install --force-reinstall torch"
        )
        return
    yield threads(torch)
    yield accelerator(torch)
    yield bfloat16()


def compiler_version(command: list[str]) -> str | None:
    """The first line of `command --version`, or None if it does not run."""
    try:
        run = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = run.stdout.splitlines()
    return lines[0] if run.returncode == 0 and lines else None


def compiler() -> MachineFact:
    """The C++ compiler of the native engine, and whether it runs."""
    try:
        from ensue.engine.native import cache
    except (ImportError, OSError):
        return MachineFact("compiler", "warning", "not checked: torch does not load", "see torch")
    compiler_name = os.environ.get("CXX", "")
    try:
        command = list(cache.compiler.__wrapped__())  # the current one: the answer is cached
    except (cache.NoCompiler, ValueError):  # ValueError: an unclosed quotation mark
        if compiler_name:
            advice = f"correct or unset CXX; {NO_NATIVE}"
            return MachineFact("compiler", "missing", f"CXX={compiler_name} is not found", advice)
        return MachineFact("compiler", "missing", "no C++ compiler", GET_COMPILER)
    version = compiler_version(command)
    if version is None:
        value = f"{shlex.join(command)} does not run"
        advice = f"set CXX to one that does; {NO_NATIVE}"
        return MachineFact("compiler", "warning", value, advice)
    return MachineFact("compiler", "ok", f"{shlex.join(command)}: {version}")


def size(folder: Path) -> int:
    """Bytes of all readable files below a folder."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except OSError:  # it was deleted, or is not readable
                continue
    return total


def cache() -> MachineFact:
    """Whether the cache folder can be written, and how much it holds."""
    try:
        from ensue.engine.native.cache import cache_folder
    except (ImportError, OSError):
        return MachineFact("cache", "warning", "not checked: torch does not load", "see torch")
    folder = cache_folder()
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    writable = os.path.isdir(nearest) and os.access(nearest, os.W_OK | os.X_OK)
    if not (folder.is_absolute() and writable):  # relative: there is no home folder
        value = f"{folder} cannot be written"
        return MachineFact("cache", "warning", value, "set XDG_CACHE_HOME to a folder of your own")
    if nearest != folder:
        return MachineFact("cache", "ok", f"{folder}, not created yet")
    value = f"{folder}, {size(folder) / 1e6:.1f} MB"
    facts = folder.stat()
    if facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        advice = f"others may write there: chmod 700 {shlex.quote(str(folder))}, or remove it"
        return MachineFact("cache", "warning", value, advice)
    return MachineFact("cache", "ok", value)


def data() -> MachineFact:
    """The real data sets in the folder that ENSUE_DATA names."""
    named = os.environ.get("ENSUE_DATA", "")
    if not named:
        advice = "set ENSUE_DATA to a folder of data sets; tests on real data need it"
        return MachineFact("data", "missing", "ENSUE_DATA is not set", advice)
    folder = Path(named)
    if not os.path.isdir(folder):  # Path.is_dir raises an error if a parent is not accessible
        return MachineFact("data", "warning", f"{folder} is not a folder", "correct ENSUE_DATA")
    present = [name for name in DATA_SETS if os.path.isdir(folder / name)]
    lacking = [name for name in DATA_SETS if name not in present]
    value = f"{folder}: {', '.join(present) or 'none of the known sets'}"
    if lacking:
        return MachineFact("data", "missing", value, f"missing: {', '.join(lacking)}")
    return MachineFact("data", "ok", value)


def packages_of(extra: str, requirements: Iterable[str]) -> list[str]:
    """The packages that one extra adds, from lines such as `onnx>=1.17; extra == 'onnx'`."""
    marked = re.compile(r"extra\s*==\s*['\"]" + re.escape(extra) + r"['\"]")
    names = (re.match(r"[\w.-]+", line) for line in requirements if marked.search(line))
    return [name.group() for name in names if name and name.group() != "ensue"]


def installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def extras() -> Iterator[MachineFact]:
    """The optional parts that Ensue's own metadata names, installed or not."""
    try:
        about = metadata.metadata("ensue")
    except metadata.PackageNotFoundError:
        advice = "pip install -e . in the source folder"
        yield MachineFact("extras", "warning", "ensue itself is not installed", advice)
        return
    for extra in about.get_all("Provides-Extra") or []:
        packages = packages_of(extra, about.get_all("Requires-Dist") or [])
        lacking = [package for package in packages if not installed(package)]
        if lacking:
            advice = f"pip install 'ensue[{extra}]'"
            yield MachineFact(f"extra {extra}", "missing", f"lacks {', '.join(lacking)}", advice)
        elif packages:
            yield MachineFact(f"extra {extra}", "ok", ", ".join(packages))


def examine() -> list[MachineFact]:
    """Every finding, in the order of the report."""
    return [
        *versions(),
        processor(),
        *about_torch(),
        compiler(),
        cache(),
        data(),
        *extras(),
    ]


def as_text(findings: Iterable[MachineFact]) -> str:
    """One line for each finding, the advice on a line below it."""
    findings, lines = [*findings], []
    name = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        lines.append(f"{finding.state:8} {finding.name:{name}} {finding.value}")
        if finding.advice:
            lines.append(f"{'':{name + 9}} -> {finding.advice}")
    return "\n".join(lines)
