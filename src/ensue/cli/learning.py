"""The commands that make a tested model from a data file: init, train, evaluate, predict."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    BestSoFar,
    Dark,
    Device,
    Picture,
    Quiet,
    Run,
    answer,
    app,
    argument,
    as_json_text,
    check_files,
    grouped,
    option,
    report,
    say,
    teller,
    write_picture,
)
from ensue.cli.data import TolerantOptions
from ensue.cli.reading import shown_while
from ensue.cli.request import FILES_HELP, FurtherOptions, Request, check, configured, requested
from ensue.cli.streams import input_lines, nobody_reads
from ensue.cli.task_options import OptionValues, as_asked, with_task_options
from ensue.cli.trusting import TrustCell, trusted
from ensue.data.rows import Tally, watch_reading
from ensue.errors import OptionError
from ensue.escape import in_shell
from ensue.tasks.options import EVALUATE, PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ensue.data.settings import DataSettings
    from ensue.jobs import Machines
    from ensue.runs.load import LoadedRun, Loading
    from ensue.runs.predict import Prediction, Reply

LOADING = "loading torch"  # takes seconds
HERE = "local"
Workers = Annotated[
    int | None,
    option(
        "--workers N",
        "Number of processes, one thread each; the result is the same for any number.",
    ),
]
On = Annotated[
    str,
    option("--on WHERE", "Where these processes run: local, or ray, the cluster of RAY_ADDRESS."),
]


@app.command()
@requested
def init(request: Request, further: FurtherOptions) -> None:
    """Write the complete configuration of a run, without training."""
    check(request, further)
    from ensue.runs.train import complete, settle
    from ensue.training import RunFolder

    folder = RunFolder(request.run)
    with folder.locked():
        config = complete(configured(request, further, teller()), teller())
        settle(folder, config, say=teller())
    report(str(folder.config))


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Request):
    files: Annotated[
        list[str] | None,
        argument("FILES", f"{FILES_HELP} Without files, the run in --run is resumed."),
    ] = None
    allow: Annotated[
        list[str] | None,
        option("--allow KEY", "Resume although this setting has changed; may be repeated."),
    ] = None
    dry_run: Annotated[bool, option("--dry-run", "Print the configuration without training.")] = (
        False
    )
    find_rate: Annotated[
        bool, option("--find-rate", "Suggest a learning rate without training.")
    ] = False
    workers: Workers = None
    on: On = "local"
    trust_cell: TrustCell = ""
    quiet: Quiet = False


@app.command(
    examples="""
    ensue train reviews.csv --text review --label stars --epochs 5 --run r1
    ensue train --run r1  resume it
    ensue train air.csv --target passengers --horizon 12  forecast a series
    ensue train train.en,train.de --dry-run  print the configuration only
    """
)
@requested
def train(options: TrainOptions, further: FurtherOptions) -> None:
    """Train a model on your files, or resume an interrupted run.

    Infers from the data whatever you leave out, and prints it. The same command resumes a run;
    `ensue evaluate RUN` tests the model.
    """
    run_training(options, further)


def run_training(options: TrainOptions, further: FurtherOptions) -> None:
    """Trains as a command says, or prints what it would train."""
    check(options, further)
    with shown_while(LOADING):
        from ensue.runs.train import attempted, complete, suggest_rate, train_run
        from ensue.tasks.fitting import holding
        from ensue.training import Display, RunFolder, processes

    team = processes.begin()
    tell, allow = teller(options.quiet, silent=not team.first), options.allow or []
    folder = RunFolder(options.run)
    looks_only = options.dry_run or options.find_rate
    try:
        with nullcontext() if looks_only else holding(folder):
            config = configured(options, further, tell, options.trust_cell)
            if options.workers is not None or options.on != HERE:
                from ensue.runs.dealt_members import members_elsewhere, refuse_one_network

                refuse_one_network(config)
            if options.dry_run:
                answer(complete(config, tell).text_of(), end="")
                return
            if options.find_rate:
                answer(str(suggest_rate(config, tell)))
                return
            watchers = [Display(quiet=options.quiet)]
            on = elsewhere(options)
            first = None if on is None else members_elsewhere(folder, config, on, tell, allow)
            with attempted(folder) if team.first else nullcontext():
                trained = train_run(config, folder, watchers, tell, allow, first, summary=True)
        if team.first:
            report(f"{options.run}: {trained.best()}")
            if not options.quiet:
                test = "" if config.data.has_test else " --test FILE"
                run = in_shell(options.run)
                say(f"Next: ensue evaluate {run}{test}    scores on unseen rows, and mistakes")
    finally:
        processes.end()


def elsewhere(options: "TrainOptions | PredictOptions") -> "Machines | None":
    """The machines that do the work; None for this process alone. With machines, this process uses
    one thread, like each worker: results are then the same for any number of workers."""
    if options.workers is None and options.on == HERE:
        return None
    import torch

    from ensue.jobs import machines

    torch.set_num_threads(1)
    return machines(options.on, 2 if options.workers is None else options.workers)


def loading(options: "EvaluateOptions | PredictOptions") -> "Loading":
    """How a command loads the model of a run."""
    from ensue.runs.load import Loading

    return Loading(trusted(options.trust_cell), options.device, options.best_so_far)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(TolerantOptions):
    run: Run
    test: Annotated[
        list[str] | None,
        option("--test FILE", "Test file, instead of the run's test part; may be repeated."),
    ] = None
    validation: Annotated[
        bool, option("--validation", "Evaluate on the validation part instead of the test part.")
    ] = False
    picture: Picture = None
    dark: Dark = False
    best_so_far: BestSoFar = False
    device: Device = "auto"
    trust_cell: TrustCell = ""
    quiet: Quiet = False
    as_json: AsJson = False


@app.command()
@with_task_options(EVALUATE)
@grouped
def evaluate(options: EvaluateOptions, option_values: OptionValues) -> None:
    """Test a trained model: scores, intervals, baselines, mistakes.

    Prints scores with intervals, baselines, classes and the worst mistakes, and keeps them in the
    run folder: evaluation.json, card.md. Each use of a test part is counted in a file next to the
    run. Files are read as in training, unless an option says otherwise.
    """
    with shown_while(LOADING):
        from ensue.runs import evaluate as evaluation
        from ensue.runs.config import RunConfig
        from ensue.training import RunFolder

    check_files(None, options.picture)
    folder = RunFolder(options.run)
    options_of_task = (
        as_asked(option_values, EVALUATE, RunConfig.of_run(folder).task) if option_values else {}
    )
    request = evaluation.EvaluationRequest(
        "validation" if options.validation else "test",
        options.test or [],
        options.as_data(),
        options_of_task,
        options.picture is not None,
        loading(options),
    )
    evaluated = evaluation.evaluate_run(folder, request, teller())
    if options.picture is not None:
        write_picture(options.picture, evaluated.svg, options.dark)
    if options.as_json:
        facts = {"opened": evaluated.by_all, "opened_by_this_run": evaluated.by_this_run}
        answer(as_json_text({**evaluated.evaluation.as_json(), **facts}))
    else:
        answer(evaluated.evaluation.as_text())
        if not options.validation:
            times = "once" if evaluated.by_all == 1 else f"{evaluated.by_all} times"
            by_others = evaluated.by_all - evaluated.by_this_run
            others = f", {by_others} of them by other runs" if by_others else ""
            answer(f"\nThis test part has been opened {times}{others}.")
    if evaluated.not_kept is not None:
        raise evaluated.not_kept


@dataclass(frozen=True, kw_only=True)
class PredictOptions(TolerantOptions):
    run: Run
    files: Annotated[
        list[str] | None,
        argument("FILES", "Files like the training files; without any, lines of standard input."),
    ] = None
    out: Annotated[
        Path | None,
        option("--out FILE", "Write a table with a header: .csv, .tsv, .jsonl or .parquet."),
    ] = None
    keep: Annotated[
        str,
        option(
            "--keep COLUMNS",
            "Columns of the files to keep in the table: a,b or all. [columns named like an id]",
        ),
    ] = ""
    raw: Annotated[
        bool,
        option(
            "--raw",
            "Write text cells that a spreadsheet would compute (=…, @…) to .csv and .tsv as they "
            "are; the default prefixes them with '.",
        ),
    ] = False
    workers: Workers = None
    on: On = "local"
    picture: Picture = None
    dark: Dark = False
    best_so_far: BestSoFar = False
    device: Device = "auto"
    trust_cell: TrustCell = ""
    quiet: Quiet = False
    as_json: AsJson = False


@app.command()
@with_task_options(PREDICT)
@grouped
def predict(options: PredictOptions, option_values: OptionValues) -> None:
    """Predict each row of files, or each line of standard input.

    Prints a line for each: label, probability and text with tabs between, token/LABEL for each
    step, a number with its interval, or the translation. Forecasts continue the given files, or
    the training data: time, value, low and high. Files are read as in training, unless an option
    says otherwise.
    """
    with shown_while(LOADING):
        from ensue.runs.load import open_run
        from ensue.runs.predict import Prediction
        from ensue.training import RunFolder

    check_files(None, options.picture)
    if options.out is not None:
        from ensue.runs.answer_table import check_table_file, refuse_read_files

        check_table_file(options.out)
    elif options.keep:
        raise OptionError(
            "--keep: expected --out FILE, the table that keeps them, got none; "
            "add --out answers.csv"
        )
    elif options.raw:
        raise OptionError(
            "--raw: expected --out FILE, the table to write, got none; add --out answers.csv"
        )
    run = open_run(RunFolder(options.run), loading(options), teller())
    model, data = run.model, run.config.data.model_copy(update=options.as_data())
    if options.out is not None:
        refuse_read_files(options.out, [*(options.files or []), *run.config.data.all_files()])
    if options.picture is not None and model.abilities.draws is None:
        raise OptionError(f"--picture: a run of task {model.task.name} has no picture")
    prediction, bad = Prediction(model, as_asked(option_values, PREDICT, model.task.name)), Tally()
    for line in prediction.lines_before():
        say(line)
    answers = _replies(options, run, prediction, data, bad)
    # on a terminal the answers themselves show how far it is
    with watch_reading(None) if sys.stdout.isatty() else nullcontext():
        if options.out is not None:
            paths = (options.files or []) if model.task.needs_input else []
            _write_answers(options.out, answers, paths, data, options)
        else:
            _print_answers(answers, options.as_json, to_the_end=options.picture is not None)
    if options.picture is not None:
        write_picture(options.picture, prediction.picture(), options.dark)
    for line in prediction.lines_after():
        say(line)
    if bad.count:
        say("\n  ".join(["left out", *bad.lines()]))


def _replies(
    options: PredictOptions,
    run: "LoadedRun",
    prediction: "Prediction",
    data: "DataSettings",
    bad: Tally,
) -> "Iterator[Reply]":
    """The answers in their written form, computed by this process or by others."""
    from ensue.runs.predict import replies

    form = "object" if options.as_json else "line"
    form = form if options.out is None else "columns"
    files = options.files or []
    on = elsewhere(options)
    if on is not None:
        refused = "--picture" if options.picture is not None else "" if files else "standard input"
        if refused:
            raise OptionError(f"--workers: expected files, got {refused}: leave one of them out")
        from ensue.runs.dealt_predict import DealtPrediction

        dealt = DealtPrediction(options.run, loading(options), run, prediction, on)
        return dealt.files(files, data, form, bad.add)
    if files or not run.model.task.needs_input:
        return replies(prediction.files(files, data, bad.add), form)
    somebody_waits = sys.stdin.isatty()
    return replies(prediction.lines(input_lines(), one_by_one=somebody_waits), form)


def _print_answers(answers: "Iterable[Reply]", as_json: bool, to_the_end: bool) -> None:
    """Prints answers. to_the_end: continue after the program that reads stdout has ended."""
    for row_answer in answers:
        answer(as_json_text(row_answer.value) if as_json else row_answer.value)
        if nobody_reads() and not to_the_end:
            return


def _write_answers(
    path: Path,
    answers: "Iterable[Reply]",
    files: list[str],
    data: "DataSettings",
    options: PredictOptions,
) -> None:
    from ensue.runs.answer_table import CopiedColumns, table_rows, write_table

    names = [name.strip() for name in options.keep.split(",") if name.strip()]
    columns = CopiedColumns(files, data, names)
    written = write_table(path, table_rows(answers, columns), options.raw)
    say(f"wrote {path}: {written.rows:,} rows")
    if count := written.formulas:
        say(
            f"{count:,} text cell{'s' * (count > 1)} that a spreadsheet would compute: prefixed "
            "with ' (--raw writes cells as they are)"
        )
