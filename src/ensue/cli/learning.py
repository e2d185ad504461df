"""From a data file to a tested model: init, train, evaluate, predict."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import AsJson, app
from ensue.cli.data import Delimiter, Encoding, Format, Label, Text
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.runs.config import RunConfig

Files = Annotated[
    list[str] | None, typer.Argument(help="Training files; none goes on with what --run holds.")
]
Run = Annotated[Path, typer.Option("--run", help="The folder of the run.")]
Task = Annotated[
    str, typer.Option("--task", help="classify or label; found out from the data if not given.")
]
Validation = Annotated[list[str] | None, typer.Option("--validation", help="Files to stop by.")]
Test = Annotated[list[str] | None, typer.Option("--test", help="Files that stay sealed.")]
Separator = Annotated[str, typer.Option("--separator", help="Between several labels of a row.")]
Sequence = Annotated[
    str, typer.Option("--sequence", help="The column whose equal values make one sequence.")
]
Features = Annotated[str, typer.Option("--features", help="Its columns of numbers: a,b,c.")]
Group = Annotated[str, typer.Option("--group", help="Rows with the same value stay together.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave faulty lines out.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting: train.rate=0.001; may be repeated.")
]


def say(line: str) -> None:
    print(line, file=sys.stderr)


def configured(
    run: Path, files: list[str] | None, task: str, data: dict[str, Any], settings: list[str]
) -> "RunConfig":
    """What the command says, or what the folder holds if it names no files."""
    from ensue.runs.config import RunConfig
    from ensue.runs.infer import infer
    from ensue.training import RunFolder

    if not files:
        path = RunFolder(run).config
        if not path.exists():
            raise OptionError(
                f"{run}: there is no run here; name the files to train on: "
                "ensue train reviews.csv --text review --label stars --run r1"
            )
        if settings or task or any(data.values()):
            raise OptionError(
                f"{run}: without files the run goes on as {path} says; "
                "change that file, or name the files too"
            )
        return RunConfig.read(path)
    given = {key: value for key, value in data.items() if value}
    paths: dict[str, list[str]] = {"train": files}
    paths |= {k: given[k] for k in ("validation", "test") if k in given}
    resolved = {key: [str(Path(p).resolve()) for p in own] for key, own in paths.items()}
    config, lines = infer({**given, **resolved}, task or None, settings)
    for line in lines:
        say(line)
    return config


@app.command()
def init(
    files: Files,
    run: Run = Path("run"),
    task: Task = "",
    text: Text = "",
    label: Label = "",
    validation: Validation = None,
    test: Test = None,
    separator: Separator = "",
    sequence: Sequence = "",
    features: Features = "",
    group: Group = "",
    format: Format = "",
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    skip_bad: SkipBad = False,
    settings: Settings = None,
) -> None:
    """Write the complete config.toml of a run, and train nothing."""
    from ensue.runs.train import settle
    from ensue.training import RunFolder

    data = data_of(locals())
    config = configured(run, files, task, data, settings or [])
    settle(RunFolder(run), config)
    print(RunFolder(run).config)


@app.command()
def train(
    files: Files = None,
    run: Run = Path("run"),
    task: Task = "",
    text: Text = "",
    label: Label = "",
    validation: Validation = None,
    test: Test = None,
    separator: Separator = "",
    sequence: Sequence = "",
    features: Features = "",
    group: Group = "",
    format: Format = "",
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    skip_bad: SkipBad = False,
    settings: Settings = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", help="What may have changed since the start.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the configuration and train nothing.")
    ] = False,
    find_rate: Annotated[
        bool, typer.Option("--find-rate", help="Suggest a learning rate and train nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train a model, or go on with a run that was interrupted.

    What is not said is found out from the data and printed. The same command continues a run;
    `ensue evaluate RUN` then opens its test part.
    """
    from ensue.runs.train import settle, suggest_rate, train_run
    from ensue.training import Display, RunFolder, processes

    config = configured(run, files, task, data_of(locals()), settings or [])
    if dry_run:
        print(config.text_of(), end="")
        return
    if find_rate:
        print(suggest_rate(config, say))
        return
    team = processes.begin()
    try:
        folder = RunFolder(run)
        if team.first:
            config = settle(folder, config)
        watchers = [Display(config.train.watch, quiet=quiet)]
        trained = train_run(config, folder, watchers, say if team.first else silent, allow or [])
        if team.first:
            print(f"{run}: {trained.best()}")
            say(f"next: ensue evaluate {run}    ensue predict {run} FILE")
    finally:
        processes.end()


def silent(line: str) -> None:
    """For the processes that are not the first one."""


def data_of(given: dict[str, Any]) -> dict[str, Any]:
    """The [data] table of a command's options."""
    names = ("text", "label", "validation", "test", "separator", "sequence", "group")
    names += ("format", "encoding", "delimiter", "skip_bad")  # type: ignore[assignment]
    features = [name.strip() for name in given["features"].split(",") if name.strip()]
    return {**{name: given[name] for name in names}, "features": features}


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    test: Annotated[
        list[str] | None, typer.Option("--test", help="These files, not the run's test part.")
    ] = None,
    validation: Annotated[
        bool, typer.Option("--validation", help="The validation part; the test stays sealed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Open the test part: scores with intervals, baselines, classes, the surest mistakes.

    Every opening is written down beside the run, and counted.
    """
    from ensue.runs.use import evaluate_run
    from ensue.training import RunFolder

    found = evaluate_run(RunFolder(run), test or [], "validation" if validation else "test")
    if as_json:
        facts = {"opened": found.by_all, "opened_by_this_run": found.by_this_run}
        print(json.dumps({**found.evaluation.as_json(), **facts}, ensure_ascii=False))
        return
    print(found.evaluation.as_text())
    if not validation:
        times = "once" if found.by_all == 1 else f"{found.by_all} times"
        print(f"\nThis test part has been opened {times}, {found.by_this_run} by this run.")


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files such as it was trained on; none reads lines.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer with probabilities: for the rows of files, or the lines of the standard input."""
    from ensue.runs.use import load_run, predict_files, predict_texts
    from ensue.training import RunFolder

    config, model = load_run(RunFolder(run))
    answers: Iterator[tuple[Any, Any]]
    if files:
        answers = ((value, own) for _, value, own in predict_files(model, config.data, files))
    else:
        answers = predict_texts(model, (line.rstrip("\n") for line in sys.stdin))
    for value, own in answers:
        if as_json:
            shown = value if isinstance(value, str | list) else None
            print(json.dumps({"input": shown, **asdict(own)}, ensure_ascii=False))
        else:
            print(own.as_line(value))
