"""Studies: what cells remember, and what the labels and the base of a run are worth."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    Quiet,
    answer,
    app,
    argument,
    as_json_text,
    check_files,
    group,
    grouped,
    names_of,
    option,
    say,
    teller,
    write_file,
    write_picture,
)
from ensue.cli.trusting import TrustCell, trusted
from ensue.errors import OptionError, RunError
from ensue.study.memory.budget import RATE, RATE_WITHOUT_GATES, Budget

if TYPE_CHECKING:
    from ensue.cells import Cell

Tasks = Annotated[
    list[str] | None,
    argument(
        "TASK", "adding, temporal-order, counting, copy, parity, dyck; the first two if not given."
    ),
]
Reach = Annotated[
    bool,
    option("--reach", "Find the longest T of 10, 20, 50, … up to --steps that each cell solves."),
]
Rate = Annotated[
    float | None,
    option("--rate X", f"Learning rate of Adam. [{RATE}; {RATE_WITHOUT_GATES} without gates]"),
]
Start = Annotated[
    str,
    option(
        "--start NAME",
        "Initial gate biases: chrono (keep for up to T steps) or standard (the cell's own).",
    ),
]


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    tasks: Tasks = None
    steps: Annotated[int, option("--steps N", "Length T of the sequences.", min=1)] = 400
    reach: Reach = False
    cells: Annotated[
        str, option("--cells A,B", "Cells by name or Python file: GRU,mine.py:MyCell.")
    ] = "SimpleRNN,GRU,LSTM"
    updates: Annotated[
        int, option("--updates N", "Maximum number of updates for each cell and task.", min=1)
    ] = Budget.updates
    hidden: Annotated[int, option("--hidden N", "Hidden units.", min=1)] = Budget.hidden
    rows: Annotated[
        int, option("--rows N", "Batch size; every update has new sequences.", min=1)
    ] = Budget.rows
    rate: Rate = Budget.rate
    clip: Annotated[float, option("--clip X", "Maximum norm of the gradient.")] = Budget.clip
    start: Start = Budget.start
    seed: Annotated[int, option("--seed N", "Random seed of weights and data.", min=0)] = (
        Budget.seed
    )
    json_file: Annotated[
        Path | None, option("--json FILE", "Write results and learning curves to a JSON file.")
    ] = None
    picture: Picture = None
    dark: Dark = False


@app.command()
@grouped
def memory(options: MemoryOptions) -> None:
    """Measure how far back each cell remembers.

    Every cell is trained on every task with the same budget, until it solves it: adding at a mean
    squared error of 0.001 (chance 0.167), temporal order at an accuracy of 99 % (chance 25 %).
    Training stops once the validation error is four fifths of that. The printed score is the score
    on the test part. The defaults are the settings with which gated cells solve adding over 400
    steps fastest. Takes some minutes; Ctrl-C prints what has been measured so far.
    """
    from ensue.drawing.document import as_text
    from ensue.study.memory.study import find_tasks, lengths_up_to, study_memory
    from ensue.study.memory.table import as_json, document, draw

    check_files(options.json_file, options.picture)
    report = study_memory(
        find_tasks(options.tasks or ["adding", "temporal order"]),
        load_cells(options.cells),
        lengths_up_to(options.steps) if options.reach else [options.steps],
        Budget(
            options.updates,
            options.hidden,
            options.rows,
            options.rate,
            options.clip,
            seed=options.seed,
            start=options.start,
        ),
        say,
    )
    if report.trials:
        answer(as_text(document(report)))
    if options.json_file is not None:
        write_json(options.json_file, as_json(report))
    if options.picture is not None and report.trials:
        write_picture(options.picture, draw(report), options.dark)
    if not report.finished:
        raise KeyboardInterrupt


def load_cells(names: str) -> dict[str, "Cell"]:
    """Cells by the names that are shown: `mine.py:Mine` is shown as Mine, unless another cell has
    this name too."""
    from ensue.cells.load import load_cell

    listed = [name.strip() for name in names.split(",") if name.strip()]
    if not listed:
        raise OptionError("--cells: expected names such as GRU,LSTM, got none")
    cells: dict[str, Cell] = {}
    for name in dict.fromkeys(listed):
        short = name.rpartition(":")[2]
        cells[name if short in cells else short] = load_cell(name)
    return cells


def write_json(path: Path, facts: dict[str, object]) -> None:
    """Write the file and say so on stderr."""
    write_file(path, json.dumps(facts, ensure_ascii=False, indent=1) + "\n")


# --- of a run ----------------------------------------------------------------------

studies = group("study", "Studies of a run: the value of labels and of a base.")


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    run: Annotated[Path, argument("RUN", "Run that began from a base.")]
    labels: Annotated[
        str, option("--labels N,M", "Numbers of labelled rows. [100,300,1000,… all]")
    ] = ""
    folder: Annotated[Path | None, option("--run FOLDER", "Folder of the runs. [RUN-labels]")] = (
        None
    )
    workers: Annotated[
        int, option("--workers N", "Number of runs trained at the same time.", min=1)
    ] = 1
    settings: Annotated[
        list[str] | None,
        option("--set KEY=VALUE", "Change any setting of all runs; may be repeated."),
    ] = None
    trust_cell: TrustCell = ""
    quiet: Quiet = False
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@studies.command("labels")
@grouped
def labels_command(options: LabelOptions) -> None:
    """Plot scores by the number of labels, with and without a base.

    Trains on 100, 300, 1,000, … and all rows of the training part of RUN; a smaller sample is part
    of a larger one. Each size is trained twice: from the base with all settings of RUN, and without
    a base. Without a base, settings that RUN left at their default have the default of the task.
    Scores are validation scores; the test part is not opened. The same command resumes an
    interrupted study.
    """
    check_files(None, options.picture)
    say(f"label study of {options.run}")  # torch takes seconds to load
    from ensue.study.labels.curve import label_curve
    from ensue.study.labels.table import draw

    place = options.folder or options.run.resolve().with_name(
        f"{options.run.resolve().name}-labels"
    )
    curve = label_curve(
        options.run,
        place,
        _counts(options.labels),
        options.workers,
        options.settings or [],
        teller(options.quiet),
        trusted(options.trust_cell),
    )
    answer(as_json_text(curve.as_json()) if options.as_json else curve.as_text())
    if options.picture is not None and (curve.of(True) or curve.of(False)):
        write_picture(options.picture, draw(curve), options.dark)
    if not curve.of(True) and not curve.of(False):
        raise RunError("no run of the study finished; the table gives the reasons")


def _counts(listed: str) -> list[int]:
    names = names_of(listed)
    if wrong := [name for name in names if not name.isdecimal()]:
        raise OptionError(f"--labels: expected numbers such as 100,1000, got {wrong[0]!r}")
    return [int(name) for name in names]
