"""Bugs that `make faults-selftest` plants one at a time, and what has to catch each of them.

A bug is one change of one file of the package. It is caught by a test that fails, or by a campaign
that ends with a broken promise of one of the named kinds. Every campaign has one here, and every
rule of reliability that concerns the package."""

from __future__ import annotations

from dataclasses import dataclass

from faults.campaign import OUTSIDE, RAN, REFUSED, SILENT, TRACEBACK

SMALL = "table-number-split"  # the run of the campaigns, in which a case takes a second


@dataclass(frozen=True)
class Planted:
    """rule: the promise that it breaks; file: below src/ensue; old: a text that occurs once in it,
    replaced by new. tests: those that have to fail; or campaign: one that has to find it within a
    number of cases, with an outcome of these kinds. seconds: that this may take."""

    name: str
    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    campaign: str = ""
    cases: int = 0
    kinds: tuple[str, ...] = ()
    subjects: str = SMALL
    seconds: float = 300.0


BUGS = (
    Planted(
        "history with a clock",
        "1 reproducible training",
        "training/run.py",
        'return {"row": NAMES[Validated], **asdict(row)}',
        'return {"row": NAMES[Validated], **asdict(row), "clock": time.time()}',
        campaign="kills",
        cases=3,
        kinds=(SILENT,),
    ),
    Planted(
        "digest ignored",
        "2 verified checkpoints",
        "files/atomic_folder.py",
        'if digest(data) != expected["sha256"]:',
        "if not digest(data):",
        campaign="flips",
        cases=150,
        kinds=(SILENT,),
    ),
    Planted(
        "checkpoint not read back",
        "2 verified checkpoints",
        "training/checkpoint.py",
        "if read_files(place) != files:",
        "if not files:",
        tests=("tests/test_checkpoint.py::test_what_reads_back_differently_is_not_called_saved",),
    ),
    Planted(
        "cell of a file loaded without permission",
        "3 no code from files",
        "cells/permission.py",
        "expected = self.files.get(_absolute(file))",
        "expected = self.files.get(_absolute(file), _digest(_read(file)))",
        campaign="canaries",
        cases=200,
        kinds=(RAN,),
        subjects="bases",
        seconds=600.0,
    ),
    Planted(
        "disk space not checked",
        "4 checks before spending",
        "training/preflight.py",
        "if free < needed:",
        "if free < 0:",
        tests=(
            "tests/test_faults.py::test_a_disk_without_room_is_refused_before_the_first_update",
        ),
    ),
    Planted(
        "gradient that is not finite used",
        "5 no NaN",
        "training/loop.py",
        "if not math.isfinite(norm):",
        "if norm < 0:",
        tests=("tests/test_faults.py::test_a_number_that_is_not_finite_stops_before_the_update",),
    ),
    Planted(
        "CSV row lost",
        "6 errors by file and line",
        "data/formats/csv.py",
        "on_bad_row(Problem(Place(file, fault_line), fault, lost))",
        "on_bad_row(Problem(Place(file, fault_line), fault, lost)) if number else None",
        campaign="files",
        cases=6000,
        kinds=(SILENT,),
    ),
    Planted(
        "line of JSON dropped",
        "6 errors by file and line",
        "data/formats/jsonl.py",
        "reader.reject(place, [str(unfit)])",
        'reader.reject(place, [str(unfit)] if "JSON" in str(unfit) else [])',
        campaign="files",
        cases=6000,
        kinds=(SILENT,),
    ),
    Planted(
        "lock freed early",
        "8 one lock",
        "files/run_folder.py",
        "write_all(file, name)\n",
        "write_all(file, name)\n                        fcntl.flock(file, fcntl.LOCK_UN)\n",
        campaign="starts",
        cases=12,
        kinds=(REFUSED, SILENT, TRACEBACK),
    ),
    Planted(
        "seal not compared",
        "8 seals",
        "files/seal.py",
        "if text == seal[CONFIG]:",
        "if text:",
        tests=("tests/test_sealed_runs.py::test_another_split_is_listed_and_refused",),
    ),
    Planted(
        "configuration of another run accepted",
        "8 seals",
        "training/facts.py",
        "if n not in {*allow, *NOT_BIT_EXACT}}",
        'if n in {"data", "model"} - {*allow}}',
        tests=(
            "tests/test_checkpoint_faults.py",
            "tests/test_runs_faults.py",
            "tests/test_faults.py",
        ),
    ),
    Planted(
        "openings not written",
        "8 seals",
        "files/chain.py",
        "write_all(file, start + line)",
        "write_all(file, start)",
        tests=("tests/test_runs.py::test_openings_are_counted_by_content_across_sibling_runs",),
    ),
    Planted(
        "link followed",
        "9 plain files alone",
        "files/opening.py",
        "flags | os.O_NOFOLLOW | os.O_NONBLOCK",
        "flags | os.O_NONBLOCK",
        campaign="folders",
        cases=80,
        kinds=(OUTSIDE,),
        seconds=600.0,
    ),
    Planted(
        "cap of columns lifted",
        "9 caps before work",
        "data/formats/csv.py",
        "text.count(self.delimiter)) >= COLUMNS:",
        "text.count(self.delimiter)) >= COLUMNS**2:",
        tests=("tests/test_bombs.py::test_a_file_that_asks_for_too_much",),
    ),
    Planted(
        "shapes of learned arrays not compared",
        "9 caps before work",
        "tasks/codec.py",
        "if not fits or value.dtype.name not in dtypes:",
        "if value.dtype.name not in dtypes:",
        campaign="learned",
        cases=400,
        kinds=(TRACEBACK,),
        subjects="label mixed,classify text and columns",
    ),
    Planted(
        "control characters not escaped",
        "10 escaped output",
        "escape.py",
        "return text if text.isprintable() else CONTROLS.sub(_written, text)",
        "return text",
        tests=(
            "tests/test_strange_files.py::test_what_a_message_quotes_cannot_drive_the_terminal",
        ),
    ),
    Planted(
        "answers that are not finite",
        "11 finite answers",
        "tasks/finite_answers.py",
        "for k, answer in () if fine else enumerate(answers):",
        "for k, answer in enumerate(() if fine is not None else answers):",
        tests=("tests/test_finite_answers.py::test_no_answer_leaves_with_such_a_number",),
    ),
    Planted(
        "broken pipe ends training",
        "12 lost readers",
        "cli/streams.py",
        "            except OSError as error:\n                if not self.may_be_lost:",
        "            except FileNotFoundError as error:\n                if not self.may_be_lost:",
        campaign="streams",
        cases=15,
        kinds=(TRACEBACK, REFUSED, SILENT),
    ),
    Planted(
        "export that differs",
        "13 compared exports",
        "export/grid.py",
        "if not away <= allowed:",
        "if away > 1e9:",
        tests=("tests/test_export.py::test_sabotage_is_caught_by_the_grid",),
    ),
    Planted(
        "rows of an evaluation read outside",
        "14 names from files",
        "runs/evaluations.py",
        "if not is_plain_name(name):",
        "if not name:",
        tests=(
            "tests/test_kept_evaluations.py::test_rows_are_read_from_the_folder_of_the_run_alone",
        ),
    ),
    Planted(
        "full disk as a verdict",
        "15 passing faults",
        "study/selection/entries.py",
        "            raise error\n        hidden",
        "            break\n        hidden",
        tests=("tests/test_selection_faults.py::test_a_fault_that_may_pass_is_no_verdict",),
    ),
    Planted(
        "trial that was cut dropped on resume",
        "15 passing faults",
        "study/selection/budget.py",
        "for number, entry in search.entries.items():",
        "for number, entry in [(k, search.entries[k]) for k in stopped]:",
        tests=(
            "tests/test_search.py::test_a_trial_whose_time_was_over_is_closed_by_the_next_call",
        ),
    ),
    Planted(
        "queued job lost",
        "16 every wait ends",
        "jobs/local.py",
        "for begun in rest:",
        "for begun in rest[:1]:",
        tests=("tests/test_jobs.py::test_the_queued_jobs_of_a_killed_worker_are_done",),
    ),
    Planted(
        "result of another job taken",
        "16 every wait ends",
        "jobs/local.py",
        "begun = worker.jobs[0]",
        "begun = worker.jobs[-1]",
        tests=("tests/test_jobs.py::test_the_queued_jobs_of_a_killed_worker_are_done",),
    ),
    Planted(
        "questions shared by threads",
        "F29 threads",
        "tasks/data_argument.py",
        "answers_of(model, model.reader.questions(listed, words), words), listed)",
        "answers_of(model, (vars(model).update(asked=model.reader.questions(listed, words)), "
        "__import__('time').sleep(0.01), vars(model)['asked'])[2], words), listed)",
        campaign="threads",
        cases=4,
        kinds=(SILENT, TRACEBACK),
    ),
)
