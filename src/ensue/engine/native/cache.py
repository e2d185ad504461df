"""Compiled kernels on disk: found by content, safe when many processes start at once.

A kernel's name is a digest of everything that determines it: source, fixed part, compiler, flags,
CPU and Ensue's version. It is compiled into a temporary file in the same folder and renamed, under
a lock that a dying process releases. A digest next to the library detects damaged files, which are
built again. If the cache folder cannot be used, or other users can write to it, a temporary folder
is used.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ensue import __version__
from ensue.errors import EnsueError
from ensue.files.opening import COMPILER_SECONDS

TEMPLATES = Path(__file__).parent / "cpp"
FIXED = ("vector.hpp", "products.hpp", "kernel.hpp", "tiles.hpp")


_failed: dict[str, str] = {}  # sources that this process could not compile, and why


class NoCompiler(EnsueError):
    """There is no C++ compiler, or it does not work."""


def cache_folder() -> Path:
    """The folder of compiled kernels: $XDG_CACHE_HOME/ensue, or ~/.cache/ensue."""
    folder_name = os.environ.get("XDG_CACHE_HOME", "")
    root = (
        Path(folder_name)
        if folder_name.startswith("/")
        else Path(os.path.expanduser("~")) / ".cache"
    )
    return root / "ensue"


@functools.cache
def temporary_folder() -> Path:
    """A temporary folder of this process, for use when the usual one is unusable; deleted at
    exit."""
    folder, owner = Path(tempfile.mkdtemp(prefix="ensue-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not a forked child: its parent may still use it
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def usable_folder() -> Path:
    """The cache folder if no other user can write to it, else a temporary one."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        shared = stat.S_IMODE(status.st_mode) & 0o022
        if status.st_uid == os.getuid() and not shared:
            return folder
    except OSError:
        pass
    return temporary_folder()


@functools.cache
def compiler() -> tuple[str, ...]:
    """The compiler's command: $CXX, c++, g++, clang++, or zig from the `ziglang` wheel."""
    compiler_name = os.environ.get("CXX")
    for name in [compiler_name] if compiler_name else ["c++", "g++", "clang++"]:
        with contextlib.suppress(ValueError):  # an unclosed quotation mark
            command = shlex.split(name or "")
            if command and shutil.which(command[0]):
                return tuple(command)
    if importlib.util.find_spec("ziglang"):  # importing would run a file in the current folder
        return (sys.executable, "-P", "-m", "ziglang", "c++")  # -P: not from the current folder
    reason = (
        f"$CXX is {compiler_name!r}, which is not found"
        if compiler_name
        else "no C++ compiler is found"
    )
    raise NoCompiler(
        f"native engine: {reason} — install one (Debian: apt-get install g++; "
        "or pip install ziglang) or use engine='eager'"
    )


def compiler_version() -> str:
    """The compiler's version text."""
    return _said_by(compiler())


@functools.cache
def _said_by(command: tuple[str, ...]) -> str:
    return _run([*command, "--version"]).stdout


@functools.cache
def processor() -> str:
    """The CPU's name and features."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({x for x in lines if x.startswith(("model name", "flags"))}))
    return ""


@functools.cache
def identity() -> str:
    """Everything that a kernel depends on besides its source: compiler, CPU, Ensue's version."""
    return "\n".join([*compiler(), compiler_version(), processor(), __version__])


def flags() -> list[str]:
    """Compiler flags; ENSUE_MARCH and ENSUE_OPTIMISE change them, for tests."""
    march = os.environ.get("ENSUE_MARCH", "native")
    level = os.environ.get("ENSUE_OPTIMISE", "3")
    fast = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
    return [f"-O{level}", f"-march={march}", "-std=c++17", "-fPIC", "-shared", *fast]


def template(name: str) -> str:
    """The text of a C++ file that is part of kernels."""
    return (TEMPLATES / name).read_text()


@functools.cache
def fixed_part() -> str:
    """The text of the headers that kernels include."""
    return "\n".join(template(name) for name in FIXED)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMPILER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NoCompiler(
            f"native engine: {command[0]} did not end within {COMPILER_SECONDS:.0f} seconds; "
            "use engine='eager', or set CXX to another compiler"
        ) from None
    except OSError as error:
        raise NoCompiler(f"native engine: {command[0]} does not run: {error}") from error


def loaded(source: str, defines: tuple[str, ...]) -> ctypes.CDLL:
    """The shared library compiled from the source. If programs may not run from the cache's disk,
    it is loaded from a temporary folder."""
    library = compiled(source, defines)
    try:
        try:
            return ctypes.CDLL(str(library))
        except OSError:
            copy = temporary_folder() / library.name
            return ctypes.CDLL(str(copy if copy.exists() else shutil.copy(library, copy)))
    except OSError as error:
        raise NoCompiler(f"native engine: what was compiled does not load: {error}") from error


def compiled(source: str, defines: tuple[str, ...]) -> Path:
    """The path of the shared library of the source; compiles it if it is missing."""
    options = [*flags(), *defines]
    parts = [source, fixed_part(), "\n".join(options), identity()]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    if name in _failed:
        raise NoCompiler(_failed[name])
    try:
        try:
            return _build(usable_folder(), name, source, options)
        except OSError:
            return _build(temporary_folder(), name, source, options)
    except OSError as error:
        raise NoCompiler(f"native engine: there is no folder to compile in: {error}") from error
    except NoCompiler as error:
        _failed[name] = str(error)
        raise


def _build(folder: Path, name: str, source: str, options: list[str]) -> Path:
    library = folder / f"{name}.so"
    if is_whole(library):
        return library
    with _lock(folder / f"{name}.lock"):
        if not is_whole(library):
            _compile(library, source, options)
    return library


def is_whole(library: Path) -> bool:
    """Whether the file exists, belongs to the user, and is intact."""
    try:
        expected = library.with_suffix(".sha256").read_text()
        mine = library.lstat().st_uid == os.getuid() and not library.is_symlink()
        return mine and hashlib.sha256(library.read_bytes()).hexdigest() == expected
    except (OSError, UnicodeDecodeError):
        return False


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Locks out other processes; the lock ends with its holder."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(library: Path, source: str, options: list[str]) -> None:
    """Compiles into a temporary file in the same folder, then renames the digest and after it the
    library. So no library exists without its digest."""
    begin = f".build-{library.stem}-"
    for left in library.parent.glob(f"{begin}*"):  # left by a killed process: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=begin) as work:
        text, made = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
        text.write_text(source)
        command = [
            *compiler(),
            *options,
            "-I",
            str(TEMPLATES),
            str(text),
            "-o",
            str(made),
        ]
        done = _run(command)
        if done.returncode or not made.exists():
            message = "\n".join(done.stderr.splitlines()[-8:])
            if shutil.disk_usage(library.parent).free < 1 << 20:
                raise OSError(f"no space left in {library.parent}")
            raise NoCompiler(
                f"native engine: {compiler()[0]} failed with exit code {done.returncode}; "
                f"use engine='eager', or set CXX to another compiler\n{message}"
            )
        digest = Path(work) / "digest"
        digest.write_text(hashlib.sha256(made.read_bytes()).hexdigest())
        os.replace(digest, library.with_suffix(".sha256"))
        os.replace(made, library)
