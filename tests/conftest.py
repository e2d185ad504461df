"""What every test shares."""

import gc
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from warm import SELDOM, Warm, unsynced

from ensue.engine.machine import WITHOUT_TILES, why_no_bfloat16

MEMORY = Path("/dev/shm")  # a file system without a disk
ROOM = 4 << 30  # bytes; the files of a session need a tenth


def has_room(folder: Path) -> bool:
    """Whether tests may keep files there, and run those that they compile."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize > ROOM and not system.f_flag & os.ST_NOEXEC


# Kernels are compiled quickly rather than well, and linked without the library of C++, of which
# they use nothing: a quarter of the time. `make test-optimised` runs them as users do.
QUICK_LINK = "c++ -fno-exceptions -nostdlib -Wl,--no-as-needed -lm -lc"
if os.environ.setdefault("ENSUE_OPTIMISE", "g") == "g" and (
    sys.platform == "linux" and shutil.which("c++")
):
    os.environ.setdefault("CXX", QUICK_LINK)
if why_no_bfloat16():  # tests of bfloat16 run without the instructions that this machine refuses
    os.environ.setdefault(*WITHOUT_TILES.split("="))
    why_no_bfloat16.cache_clear()
if has_room(MEMORY):  # tests make and remove a hundred thousand small files
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
os.fsync = unsynced  # else every other second of training is spent waiting for the disk
settings.register_profile("ensue", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ensue")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests live to the end: no garbage collection needs to look at them, neither
    while they are collected nor again. What tests leave is collected less often than usual: an
    eighth of their time was spent on it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*SELDOM)
        gc.enable()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, one folder each."""
    named = os.environ.get("ENSUE_DATA")
    if not named:
        pytest.skip("ENSUE_DATA is not set: it names the folder that holds ptb, imdb, mnist, ...")
    folder = Path(named)
    assert folder.is_dir(), f"ENSUE_DATA names {folder}, which is not a folder"
    return folder


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    """Commands that need not import everything again: one server for all workers."""
    place, owner = tmp_path_factory.getbasetemp(), os.getpid()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place, owner = place.parent, os.getppid()
    return Warm(place / "warm", owner)


@pytest.fixture(scope="module")
def ninth_task() -> Iterator[None]:
    """A task from outside of Ensue is one of the tasks, for as long as a module's tests run."""
    import toy_task

    from ensue.tasks import TASKS

    TASKS.register(toy_task.TASK)
    yield
    TASKS.unregister(toy_task.TASK.name)
