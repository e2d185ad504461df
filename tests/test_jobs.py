"""Lists of jobs: the same results on any number of workers, whatever happens to these."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import job_functions as functions
import pytest
from job_machines import Here

from ensue.errors import DataError, JobError, OptionError, Undecided
from ensue.jobs import Job, JobResult, Local, as_completed, in_order, stoppable
from ensue.jobs.job import AHEAD
from ensue.signals import Stopped

# --- the order of results, with workers that take their time as the test says -----------------


def squares(numbers: Iterable[int]) -> Iterator[Job]:
    return (Job(f"square {n}", functions.squared, {"number": n}) for n in numbers)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    on = Here(workers, last_first=True)
    results = [result.get() for result in in_order(squares(range(12)), on)]
    assert results == [n**2 for n in range(12)]
    assert on.left


def test_results_come_as_they_are_completed() -> None:
    results = [result.get() for result in as_completed(squares(range(3)), Here(3, last_first=True))]
    assert results == [4, 1, 0]


def test_an_endless_list_is_asked_for_as_far_as_it_is_needed() -> None:
    on = Here(2, last_first=True)
    results = in_order(squares(count()), on)
    assert [next(results).get() for _ in range(5)] == [0, 1, 4, 9, 16]
    assert on.most <= 5 + AHEAD * 2
    results.close()
    assert on.left


def test_a_list_may_depend_on_results() -> None:
    results: list[int] = []

    def halving() -> Iterator[Job]:
        while not results or results[-1] > 1:
            yield Job("half", functions.squared, {"number": results[-1] // 4 if results else 64})

    for result in as_completed(halving(), Here(1, last_first=False)):
        results.append(int(result.get() ** 0.5))
    assert results == [64, 16, 4, 1]


@pytest.mark.parametrize("run", [in_order, as_completed])
def test_an_error_of_the_list_comes_after_the_results_before_it(
    run: Callable[..., Iterator[JobResult]],
) -> None:
    def listed() -> Iterator[Job]:
        yield from squares(range(3))
        raise DataError("rows.csv:4: no number")

    results = run(listed(), Here(2, last_first=False))
    assert [next(results).get() for _ in range(3)] == [0, 1, 4]
    with pytest.raises(DataError, match=r"^rows.csv:4: no number$"):
        next(results)


# --- errors -----------------------------------------------------------------------------------


def error_of(job: Job) -> Exception:
    on = Here(1, last_first=False)
    [result] = in_order([job], on)
    assert result.error is not None
    assert result.value is None
    with pytest.raises(type(result.error)):
        result.get()
    return result.error


def test_an_error_of_ours_comes_back_as_it_was_raised() -> None:
    error = error_of(Job("shard 1", functions.refused, {"place": "a.csv:7"}))
    assert type(error) is DataError
    assert str(error) == "a.csv:7: expected a number, got 'x'"
    assert error.__notes__ == ["Look at it."]
    raised = error_of(Job("trial 1", functions.undecided))
    assert type(raised) is Undecided
    assert "--task table" in str(raised)


def test_a_mistake_names_its_job_and_has_its_traceback() -> None:
    error = error_of(Job("trial 3", functions.mistaken))
    assert type(error) is JobError
    assert str(error) == "trial 3: ZeroDivisionError: division by zero"
    assert "in mistaken" in error.__notes__[0]


def test_a_function_that_is_not_marked_is_not_called() -> None:
    error = error_of(Job("trial 1", functions.unmarked))
    assert str(error).startswith("job_functions:unmarked: expected a function that is marked")


# --- processes --------------------------------------------------------------------------------


def test_processes_give_the_same_results_whatever_happens_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One start of two processes for all of it: a start takes seconds."""
    monkeypatch.setenv("RANK", "1")
    odd = {"text": "\ud800 ü\n\0", "numbers": [0.1, -1e-300, 2**70, None]}
    jobs = [
        Job("hard", functions.killed, {"place": str(tmp_path / "starts"), "times": 2}),
        Job("odd", functions.surroundings, {"value": odd}),
        Job("lost", functions.killed, {"place": str(tmp_path / "lost"), "times": 9}),
        Job("wrong", functions.refused, {"place": "a.csv:7"}),
        *squares(range(3)),
    ]
    progress: list[tuple[str, object]] = []
    results = list(
        in_order(jobs, Local(2, threads=3, restarts=2), lambda j, p: progress.append((j.name, p)))
    )
    assert [result.job.name for result in results] == [job.name for job in jobs]
    hard, printed, lost, wrong, *rest = results
    assert (hard.get(), hard.restarts) == (3, 2)
    assert printed.get()["value"] == odd
    assert printed.get()["threads"] == "3"
    assert printed.get()["rank"] is None
    assert printed.get()["pid"] != os.getpid()
    with pytest.raises(JobError, match=r"lost: its process was killed by SIGKILL, 3 times. Next"):
        lost.get()
    assert type(wrong.error) is DataError
    assert [result.get() for result in rest] == [0, 1, 4]
    assert sorted(progress) == [(f"square {n}", {"seen": n}) for n in range(3)]


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_signal_stops_jobs_at_their_checkpoint(tmp_path: Path) -> None:
    place = tmp_path / "state"
    job = Job("endless", functions.stopped_in_time, {"place": str(place)})

    def signal_once_begun() -> None:
        until(place.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=signal_once_begun)
    killer.start()
    with pytest.raises(Stopped, match=r"^stopped by SIGTERM; the same command"), stoppable():
        list(in_order([job], Local(1)))
    killer.join()
    assert place.read_text() == "stopped"


PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
import job_functions as functions
from ensue.jobs import Job, Local, in_order
list(in_order([Job("endless", functions.stopped_in_time, {"place": sys.argv[2]})], Local(1)))
"""


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    place = tmp_path / "state"
    tests = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", PARENT, tests, str(place)]) as parent:
        until(lambda: place.exists() and "began" in place.read_text())
        worker = int(place.read_text().split()[1])
        parent.send_signal(signal.SIGKILL)
    until(lambda: place.read_text() == "stopped")

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{worker}/stat").read_text().split()[2] == "Z"
        except OSError:
            return True

    until(is_gone)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"threads": 0}])
def test_there_is_at_least_one_worker_and_thread(wrong: dict[str, int]) -> None:
    [name] = wrong
    with pytest.raises(OptionError, match=f"^{name}: expected at least 1, got 0$"):
        Local(**wrong)
