"""The commands that list and compare runs: runs, compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    Device,
    answer,
    app,
    argument,
    as_json_text,
    option,
    report,
    say,
    teller,
)
from ensue.cli.trusting import TrustCell, trusted

if TYPE_CHECKING:
    from ensue.training import RunFolder


@app.command()
def runs(
    folder: Annotated[Path, argument("FOLDER", "Folder that holds runs, or one run.")] = Path("."),
    tensorboard: Annotated[
        Path | None,
        option(
            "--tensorboard FOLDER",
            "Write the runs' histories as TensorBoard logs into this folder.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List runs: task, scores, state, time and size of each

    A line for each: task, data, best validation score, test score if it was evaluated, state,
    when, time trained, size on the disk.
    """
    from ensue.escape import in_shell, printable
    from ensue.runs.run import list_runs

    if tensorboard is not None:
        from ensue.runs.replay import replay

        for name, count in replay(folder, tensorboard).items():
            report(f"{printable(name)}: {count:,} points")
        say(f"Next: tensorboard --logdir {in_shell(tensorboard)}")
        return
    listed = list_runs(folder)
    if as_json:
        answer(as_json_text(listed.as_json()))
    elif listed.runs:
        answer(listed.as_text())
    elif not listed.broken:
        answer(f"{printable(str(folder))}: no run in this folder or below it")
    for line in listed.broken:
        say(line)


@app.command()
def compare(
    runs: Annotated[list[Path], argument("RUN RUN…", "Run folders; the first is the reference.")],
    validation: Annotated[
        bool,
        option(
            "--validation",
            "Compare on the validation part; runs are evaluated on it if needed.",
        ),
    ] = False,
    device: Device = "auto",
    trust_cell: TrustCell = "",
    as_json: AsJson = False,
) -> None:
    """Compare runs side by side, with intervals of their differences

    Scores and baselines side by side, and the difference of each run from the first with its 95 %
    interval by paired bootstrap. A test part is never opened here: `ensue evaluate RUN` does that.
    """
    from ensue.runs.compare import compare_runs

    def evaluate(folder: "RunFolder") -> None:
        from ensue.runs.evaluate import evaluate_validation
        from ensue.runs.load import Loading

        say(f"evaluating the validation part of {folder.path}")
        evaluate_validation(folder, Loading(trusted(trust_cell), device), teller())

    comparison = compare_runs(runs, "validation" if validation else "test", evaluate)
    answer(as_json_text(comparison.as_json()) if as_json else comparison.as_text())
