"""Studies: what each cell can learn."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.app import app, check_files, write_picture
from ensue.errors import OptionError
from ensue.study.memory_budget import RATE, RATE_WITHOUT_GATES, Budget

if TYPE_CHECKING:
    from ensue.cells import Cell

Tasks = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TASK",
        help="adding and temporal-order if not given; also counting, copy, parity, dyck.",
    ),
]
Reach = Annotated[
    bool,
    typer.Option("--reach", help="The longest of T = 10, 20, 50, … --steps that each solves."),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", help=f"Of Adam.  [default: {RATE}; without gates {RATE_WITHOUT_GATES}]"),
]
Start = Annotated[
    str,
    typer.Option(
        "--start",
        help="Gate biases: chrono (keep for up to T steps) or standard (as the cell has them).",
    ),
]


@app.command()
def memory(
    tasks: Tasks = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Length T of the sequences.")] = 400,
    reach: Reach = False,
    cells: Annotated[
        str, typer.Option("--cells", help="Names, or files of your own: GRU,mine.py:MyCell.")
    ] = "SimpleRNN,GRU,LSTM",
    updates: Annotated[
        int, typer.Option("--updates", min=1, help="For each training.")
    ] = Budget.updates,
    hidden: Annotated[
        int, typer.Option("--hidden", min=1, help="Units of the layer.")
    ] = Budget.hidden,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="New sequences an update.")
    ] = Budget.rows,
    rate: Rate = Budget.rate,
    clip: Annotated[
        float, typer.Option("--clip", help="Largest norm of the gradient.")
    ] = Budget.clip,
    start: Start = Budget.start,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of weights and data.")] = Budget.seed,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all, with the curves, into a JSON file.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the results into an .svg file.")
    ] = None,
) -> None:
    """Measure how far back cells remember.

    Every cell learns every task with the same budget until it solves it: adding is solved at a
    mean squared error of 0.001 (chance: 0.167), temporal order at 99 % (chance: 25 %). Training
    ends when the validation part is solved with a fifth of the error to spare; the score printed
    is that of the test part. The defaults are those, of the ones tried, with which gated cells
    solve adding over 400 steps soonest; the default command takes some minutes. Ctrl-C shows what
    is measured by then.
    """
    from ensue.study.memory import find_tasks, lengths_up_to, study_memory
    from ensue.study.memory_picture import draw
    from ensue.study.memory_table import as_json, as_text

    check_files(json_file, picture)
    report = study_memory(
        find_tasks(tasks or ["adding", "temporal order"]),
        load_cells(cells),
        lengths_up_to(steps) if reach else [steps],
        Budget(updates, hidden, rows, rate, clip, seed=seed, start=start),
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    if report.trials:
        print(as_text(report))
    if json_file is not None:
        write_json(json_file, as_json(report))
    if picture is not None and report.trials:
        write_picture(picture, draw(report))
    if not report.finished:
        raise KeyboardInterrupt


def load_cells(names: str) -> dict[str, "Cell"]:
    """By the names they are shown under: of `mine.py:Mine` that is Mine, if no other has it."""
    from ensue.cells.load import load_cell

    given = [name.strip() for name in names.split(",") if name.strip()]
    if not given:
        raise OptionError("--cells: expected names such as GRU,LSTM, got none")
    found: dict[str, Cell] = {}
    for name in dict.fromkeys(given):
        short = name.rpartition(":")[2]
        found[name if short in found else short] = load_cell(name)
    return found


def write_json(path: Path, found: dict[str, object]) -> None:
    """Write the file and say so on stderr."""
    try:
        text = json.dumps(found, ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    print(f"wrote {path}", file=sys.stderr)
