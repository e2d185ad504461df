"""Compiled kernels on disk, when things go wrong: many processes at once, kill -9, full, read-only
and foreign folders, damaged files, a compiler that is missing or broken, a forked child.

Whatever happens, the result is right. Processes that only need the cache load its module alone,
which does not bring torch in; the word `faults` runs the larger crowds.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from parity import needs_native

from ensue.cells import LSTM, Cell, GRUResetBefore
from ensue.engine import choose, engines_used
from ensue.engine import run as run_module_function
from ensue.engine.native import cache
from ensue.errors import OptionError
from ensue.layers import Recurrent

ANSWER = 'extern "C" int answer() { return 42; }\n'

# Runs by itself: argv is the path of cache.py and a source. Prints what the compiled function
# returns and the folder it came from.
ALONE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("cache", sys.argv[1])
cache = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cache)
assert "torch" not in sys.modules
library = cache.loaded(sys.argv[2], ())
print(library.answer(), library._name)
"""

# Runs by itself: a layer from the beginning, as a user's program would.
WHOLE = """
import sys, torch
from ensue.layers import LSTM
torch.manual_seed(0)
layer, x = LSTM(3, 5), torch.randn(4, 2, 3)
layer.engine = "native"
y, _ = layer(x)
y.sum().backward()
layer.engine = "eager"
assert torch.allclose(layer(x)[0], y, atol=1e-5)
print(f"{y.sum().item():.4f}")
"""


def alone(environment: dict[str, str], source: str = ANSWER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ALONE, str(Path(cache.__file__)), source],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str], within: float = 300) -> tuple[int, Path]:
    """What the process printed: the number, and the folder of the library."""
    output, wrong = process.communicate(timeout=within)
    assert process.returncode == 0, wrong
    number, path = output.split(None, 1)
    return int(number), Path(path.strip()).parent


# --- a compiler that can be watched ------------------------------------------------------


class Watched:
    """A compiler that notes each compilation, waits on request, and prints or does more."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.log, self.hold, self.path = folder / "log", folder / "hold", folder / "watched-c++"
        real = " ".join(cache.compiler())
        self.path.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = --version ]; then exec {real} --version; fi\n'
            f"echo $$ >> {self.log}\n"
            f"while [ -e {self.hold} ]; do sleep 0.02; done\n"
            f"{more}\n"
            f'exec {real} "$@"\n'
        )
        self.path.chmod(0o700)

    def compilations(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def wait_for(self, compilations: int, within: float = 60) -> None:
        end = time.monotonic() + within
        while self.compilations() < compilations:
            assert time.monotonic() < end, "no compilation began"
            time.sleep(0.01)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.fixture
def environment(tmp_path: Path, watched: Watched) -> dict[str, str]:
    """A cold cache and the watched compiler, for other processes."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    return {
        "XDG_CACHE_HOME": str(tmp_path / "cold"),
        "CXX": str(watched.path),
        "TMPDIR": str(temporary),
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A cold cache in this process; call it with another CXX to change the compiler."""

    def forget() -> None:
        for cached in (cache.compiler, cache.identity, cache.temporary_folder):
            cached.cache_clear()
        cache._failed.clear()

    def change(compiler: object | None = None) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cold"))
        if compiler is not None:
            monkeypatch.setenv("CXX", str(compiler))
        forget()

    yield change
    monkeypatch.undo()
    forget()


# --- many processes ----------------------------------------------------------------------


@needs_native
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_processes_that_meet_at_a_cold_cache_compile_once(
    count: int, environment: dict[str, str], watched: Watched, tmp_path: Path
) -> None:
    watched.hold.touch()  # until all of them are there
    crowd = [alone(environment) for _ in range(count)]
    watched.wait_for(1)
    time.sleep(count / 100)
    watched.hold.unlink()
    answers = [answer(process) for process in crowd]
    assert answers == [(42, tmp_path / "cold" / "ensue")] * count
    assert watched.compilations() == 1
    assert sorted(p.suffix for p in answers[0][1].iterdir()) == [".lock", ".sha256", ".so"]


@needs_native
@pytest.mark.slow
def test_sixteen_whole_programs_meet_at_a_cold_cache(
    environment: dict[str, str], watched: Watched
) -> None:
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", WHOLE],
            env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(16)
    ]
    outputs = [process.communicate(timeout=600) for process in crowd]
    assert [process.returncode for process in crowd] == [0] * 16, outputs
    assert len({out for out, _ in outputs}) == 1
    assert watched.compilations() == 2  # the part that all kernels share, and the cell's


@needs_native
def test_kill_9_during_compilation(environment: dict[str, str], watched: Watched) -> None:
    """A process that waits continues, and a later one finds no abandoned lock."""
    watched.hold.touch()
    first = alone(environment)
    watched.wait_for(1)
    waiting = alone(environment)
    time.sleep(0.3)  # time to reach the lock; if it takes longer it is merely the later one
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    assert first.returncode == -signal.SIGKILL
    watched.wait_for(2)  # the one that waited compiles
    watched.hold.unlink()
    assert answer(waiting)[0] == 42
    assert answer(alone(environment))[0] == 42
    assert watched.compilations() == 2


# --- folders that cannot be used ---------------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A small disk of its own, mounted with options. Needs root and the right to mount."""
    made: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / "cold"
        folder.mkdir(exist_ok=True)
        if folder not in made:
            _mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder))
            made.append(folder)
        else:
            _mount("-o", f"remount,{options}", str(folder))
        return folder

    def _mount(*arguments: str) -> None:
        if os.getuid() or not shutil.which("mount"):
            pytest.skip("only root can mount a small disk")
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")

    yield mount
    for folder in made:
        subprocess.run(["umount", str(folder)], check=True)


def assert_temporary(result: tuple[int, Path], environment: dict[str, str]) -> None:
    """The right answer, from a temporary folder that is gone again."""
    number, folder = result
    assert number == 42
    temporary = Path(environment["TMPDIR"])
    assert temporary in folder.parents
    assert not list(temporary.glob("ensue-*"))


@needs_native
@pytest.mark.parametrize("filled", ["wholly", "except the lock"])
def test_a_full_disk(
    filled: str, mounted: Callable[[str], Path], environment: dict[str, str]
) -> None:
    disk = mounted("size=256k")
    (disk / "ensue").mkdir(mode=0o700)
    room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
    (disk / "ballast").write_bytes(bytes(room - (0 if filled == "wholly" else 8192)))
    assert_temporary(answer(alone(environment)), environment)


@needs_native
def test_a_read_only_disk_is_read_and_not_written(
    mounted: Callable[[str], Path], environment: dict[str, str], watched: Watched
) -> None:
    disk = mounted("size=4m")
    assert answer(alone(environment)) == (42, disk / "ensue")
    mounted("ro,size=4m")
    assert answer(alone(environment)) == (42, disk / "ensue")  # it was there already
    assert watched.compilations() == 1
    assert_temporary(answer(alone(environment, ANSWER + "// another")), environment)


@needs_native
def test_a_disk_without_the_right_to_run_programs(
    mounted: Callable[[str], Path], environment: dict[str, str]
) -> None:
    mounted("noexec,size=4m")
    assert_temporary(answer(alone(environment)), environment)


@needs_native
@pytest.mark.skipif(os.getuid() == 0, reason="root may write to every folder")
def test_a_folder_that_may_not_be_written(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "cold" / "ensue"
    folder.mkdir(mode=0o500, parents=True)
    assert_temporary(answer(alone(environment)), environment)


@needs_native
def test_no_folder_at_all(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "cold").write_text("a file where the folder should be")
    assert_temporary(answer(alone(environment)), environment)


@needs_native
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_could_write_to(
    mode: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "cold" / "ensue"
    assert answer(alone(environment)) == (42, folder)
    folder.chmod(mode)
    assert_temporary(answer(alone(environment)), environment)


@needs_native
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "cold" / "ensue"
    folder.mkdir(mode=0o700, parents=True)
    os.chown(folder, 65534, 65534)
    assert_temporary(answer(alone(environment)), environment)


@needs_native
def test_the_folder_is_the_users_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    _, folder = answer(alone(environment))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# --- files that are not what was written -------------------------------------------------

DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "a truncated library": lambda library, _: os.truncate(library, 1000),
    "an empty library": lambda library, _: os.truncate(library, 0),
    "another library": lambda library, _: library.write_bytes(library.read_bytes() + b"more"),
    "no library": lambda library, _: library.unlink(),
    "an empty digest": lambda _, digest: digest.write_text(""),
    "a wrong digest": lambda _, digest: digest.write_text("0" * 64),
    "a digest that is no text": lambda _, digest: digest.write_bytes(b"\xff\xfe"),
    "no digest": lambda _, digest: digest.unlink(),
    "remains of a crash": lambda library, _: (library.parent / ".build-x").mkdir(),
}


@needs_native
@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_files_are_built_again(
    what: str, here: Callable[..., None], watched: Watched
) -> None:
    here(watched.path)
    library = cache.compiled(ANSWER, ())
    DAMAGE[what](library, library.with_suffix(".sha256"))
    assert cache.compiled(ANSWER, ()) == library
    assert ctypes.CDLL(str(library)).answer() == 42
    assert watched.compilations() == (1 if what == "remains of a crash" else 2)
    assert cache.compiled(ANSWER, ()) == library
    assert watched.compilations() == (1 if what == "remains of a crash" else 2)


# --- what a kernel's name depends on -----------------------------------------------------


@needs_native
def test_a_kernel_is_named_after_all_that_shaped_it(
    here: Callable[..., None], watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    here()
    names = [cache.compiled(ANSWER, ())]

    def changed() -> None:
        names.append(cache.compiled(ANSWER, ()))

    names.append(cache.compiled(ANSWER + "// another source\n", ()))
    names.append(cache.compiled(ANSWER, ("-DX=1",)))
    monkeypatch.setenv("ENSUE_OPTIMISE", "2")
    changed()
    monkeypatch.setenv("ENSUE_MARCH", "x86-64-v3")
    changed()
    for what, other in {"__version__": "0.0.0", "fixed_part": lambda: "another header"}.items():
        with monkeypatch.context() as patch:
            patch.setattr(cache, what, other)
            cache.identity.cache_clear()
            changed()
    here(watched.path)
    changed()
    assert len(set(names)) == len(names)
    assert cache.compiled(ANSWER, ()) == names[-1]


# --- compilers ---------------------------------------------------------------------------


def run_layer(cell: Cell, engine: str = "auto") -> tuple[torch.Tensor, list[str]]:
    torch.manual_seed(1)
    layer = Recurrent(cell, 3, 4, engine=engine)
    with engines_used() as used:
        y, _ = layer(torch.randn(5, 2, 3))
    return y, used


@pytest.fixture
def messages(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[str]]:
    """What Ensue has logged so far."""
    run_module = sys.modules[run_module_function.__module__]
    run_module._say.cache_clear()
    caplog.set_level(logging.DEBUG, "ensue")
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("ensue")]


def test_without_a_compiler_one_line_says_so_once(
    here: Callable[..., None], messages: Callable[[], list[str]]
) -> None:
    here("/nonexistent/c++")
    expected = run_layer(GRUResetBefore(), "eager")[0]
    for _ in range(3):
        y, used = run_layer(GRUResetBefore())
        assert used == ["eager"]
        assert torch.equal(y, expected)
    (line,) = messages()
    assert "$CXX is '/nonexistent/c++', which is not found" in line
    assert "apt-get install g++" in line
    assert line.endswith("running eager")
    assert run_layer(LSTM())[1] == ["torch"]  # the same weights as torch's own kernel
    assert [m.rpartition("; ")[2] for m in messages()] == ["running eager", "running torch"]
    x = torch.zeros(1, 1, 1)
    assert choose(LSTM(), x) == ("torch", choose(LSTM(), x)[1])
    with pytest.raises(
        OptionError, match=r"native engine: \$CXX is .*install one .*engine='eager'"
    ):
        run_layer(GRUResetBefore(), "native")


BROKEN = {
    "fails": ("#!/bin/sh\necho it hurts >&2\nexit 1\n", "failed with exit code 1"),
    "makes nothing": ("#!/bin/sh\nexit 0\n", "failed with exit code 0"),
    "is no program": ("\x7fnothing", "does not run: .*Exec format error"),
    "dies": ("#!/bin/sh\nkill -9 $$\n", "failed with exit code -9"),
    "makes rubbish": (
        '#!/bin/sh\nfor f in "$@"; do :; done\n[ "$f" = --version ] || echo rubbish > "$f"\n',
        "what was compiled does not load",
    ),
}


@needs_native
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_compiler(
    what: str, here: Callable[..., None], messages: Callable[[], list[str]], tmp_path: Path
) -> None:
    text, message = BROKEN[what]
    path = tmp_path / "broken-c++"
    path.write_text(text)
    path.chmod(0o700)
    here(path)
    expected = run_layer(GRUResetBefore(), "eager")[0]
    for _ in range(2):
        y, used = run_layer(GRUResetBefore())
        assert used == ["eager"]
        assert torch.equal(y, expected)
    (line,) = messages()
    assert line.startswith("native engine: ")
    assert line.endswith("running eager")
    assert "\n" not in line
    with pytest.raises(cache.NoCompiler, match=message) as caught:
        run_layer(GRUResetBefore(), "native")
    assert ("it hurts" in str(caught.value)) == (what == "fails")


def test_a_compiler_that_hangs_is_given_up(
    here: Callable[..., None],
    messages: Callable[[], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "slow-c++"
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o700)
    here(path)
    monkeypatch.setattr(cache, "COMPILER_SECONDS", 0.2)
    assert run_layer(GRUResetBefore())[1] == ["eager"]
    (line,) = messages()
    assert f"{path} did not end within 0 seconds" in line
    assert line.endswith("running eager")


def test_no_zig_of_the_current_folder_is_run(tmp_path: Path) -> None:
    """Neither when it is looked for, nor as the compiler."""
    (tmp_path / "ziglang.py").write_text("open('ran', 'w')\n")
    script = (
        "import subprocess\n"
        "from ensue.engine.native.cache import NoCompiler, compiler\n"
        "try: subprocess.run([*compiler(), '--version'], capture_output=True)\n"
        "except NoCompiler: pass\n"
    )
    clean = {
        key: value for key, value in os.environ.items() if key not in ("CXX", "PYTHONSAFEPATH")
    }
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**clean, "PATH": str(tmp_path)},
        check=True,
    )
    assert not (tmp_path / "ran").exists()


@needs_native
def test_a_compiler_that_warns_and_takes_options(
    here: Callable[..., None],
    messages: Callable[[], list[str]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    noisy = Watched(tmp_path, "echo 'warning: \xe9trange' >&2; echo more")
    here(f"{noisy.path} -Wall -Wextra")
    y, used = run_layer(GRUResetBefore())
    assert used == ["native"]
    assert noisy.compilations() >= 1
    torch.testing.assert_close(y, run_layer(GRUResetBefore(), "eager")[0], rtol=1e-4, atol=1e-5)
    assert messages() == []
    assert capfd.readouterr() == ("", "")


# --- fork --------------------------------------------------------------------------------

FORK = """
import os, signal, sys, torch
from ensue.engine import run
from ensue.engine.native.kernel import Kernel
from ensue.cells import LSTM

signal.alarm(240)
torch.set_num_threads(2)
torch.manual_seed(0)
cell, threads, make = LSTM(), [], Kernel.plan

def plan(*given):
    made = make(*given)
    threads.append(made.threads)
    return made

Kernel.plan = plan
shapes = cell.shapes(64, 48)
parameters = {n: (torch.randn(s) * 0.1).requires_grad_() for n, s in shapes.items()}
x = torch.randn(20, 16, 64)  # large enough for two threads, and too small for torch's own

def outcome(engine="native"):
    state = (torch.zeros(16, 48), torch.zeros(16, 48))
    y, _ = run(cell, parameters, x, state, engine=engine)
    return y, torch.autograd.grad((y * y).sum(), list(parameters.values()))

before = outcome()
assert threads == [2], threads
child = os.fork()
if child == 0:
    signal.alarm(120)
    threads.clear()
    y, gradients = outcome()
    good = threads == [1] and torch.allclose(y, before[0], atol=1e-5)
    good &= all(torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(gradients, before[1]))
    os._exit(0 if good else 1)
assert os.waitpid(child, 0)[1] == 0
threads.clear()
after = outcome()
assert threads == [2], threads
assert torch.equal(after[0], before[0])
assert all(torch.equal(a, b) for a, b in zip(after[1], before[1]))
print("well")
"""


@needs_native
def test_a_forked_child_runs_one_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        env={k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "well\n"
