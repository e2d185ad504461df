"""From a data file to a tested model: init, train, evaluate, predict."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ensue.cli.app import AsJson, app, as_json_text, say, silent, warn, write_picture
from ensue.cli.data import Delimiter, Encoding, Format, Header, NoQuote, SkipBad, names_of
from ensue.cli.request import Request, configured, requested
from ensue.errors import DataError, OptionError

Run = Annotated[Path, typer.Argument(help="The folder of a run.")]
Picture = Annotated[
    Path | None, typer.Option("--picture", help="Of a forecaster: draw it into this .svg file.")
]


@app.command()
@requested
def init(wanted: Request) -> None:
    """Write the complete config.toml of a run, and train nothing."""
    from ensue.runs.train import settle
    from ensue.training import RunFolder

    folder = RunFolder(wanted.run)
    settle(folder, configured(wanted, say))
    print(folder.config)


@app.command()
@requested
def train(
    wanted: Request,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="A setting that may have changed; may be repeated."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the configuration and train nothing.")
    ] = False,
    find_rate: Annotated[
        bool, typer.Option("--find-rate", help="Suggest a learning rate and train nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Warnings only.")] = False,
) -> None:
    """Train a model, or go on with a run that was interrupted.

    What is not said is found out from the data and printed. The same command continues a run;
    `ensue evaluate RUN` then opens its test part.
    """
    from ensue.runs.train import settle, suggest_rate, train_run
    from ensue.training import Display, RunFolder, processes

    team = processes.begin()
    tell = (warn if quiet else say) if team.first else silent
    try:
        config = configured(wanted, tell)
        if dry_run:
            print(config.text_of(), end="")
            return
        if find_rate:
            print(suggest_rate(config, tell))
            return
        folder = RunFolder(wanted.run)
        if team.first:
            config = settle(folder, config, allow or [])
        watchers = [Display(config.train.watch, quiet=quiet)]
        trained = train_run(config, folder, watchers, tell, allow or [])
        if team.first:
            print(f"{wanted.run}: {trained.best()}")
            tell(f"next: ensue evaluate {wanted.run}    ensue predict {wanted.run} FILE")
    finally:
        processes.end()


def _reading(
    format: str, encoding: str, delimiter: str, header: str, no_quote: bool, skip_bad: bool
) -> dict[str, Any]:
    """What is said of how files are read, as keys of [data]."""
    said = {
        "format": format,
        "encoding": encoding,
        "delimiter": delimiter,
        "header": names_of(header),
        "no_quote": no_quote,
        "skip_bad": skip_bad,
    }
    return {key: value for key, value in said.items() if value}


@app.command()
def evaluate(
    run: Run,
    test: Annotated[
        list[str] | None, typer.Option("--test", help="These files, not the run's test part.")
    ] = None,
    validation: Annotated[
        bool, typer.Option("--validation", help="The validation part; the test stays sealed.")
    ] = False,
    format: Format = "",
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    header: Header = "",
    no_quote: NoQuote = False,
    skip_bad: SkipBad = False,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Open the test part: scores with intervals, baselines, classes, the surest mistakes.

    Every opening is written down beside the run, and counted. How files are read is as
    config.toml says, unless an option says otherwise.
    """
    from ensue.runs.forecast import forecaster, picture_of_part
    from ensue.runs.use import evaluate_run, load_run
    from ensue.training import RunFolder

    part = "validation" if validation else "test"
    reading = _reading(format, encoding, delimiter, header, no_quote, skip_bad)
    found = evaluate_run(RunFolder(run), test or [], part, say, reading)
    if picture:
        config, model = load_run(RunFolder(run))
        own = forecaster(model, "--picture")
        write_picture(picture, picture_of_part(own, config, test or [], validation))
    if as_json:
        facts = {"opened": found.by_all, "opened_by_this_run": found.by_this_run}
        print(as_json_text({**found.evaluation.as_json(), **facts}))
        return
    print(found.evaluation.as_text())
    if not validation:
        times = "once" if found.by_all == 1 else f"{found.by_all} times"
        print(f"\nThis test part has been opened {times}, {found.by_this_run} by this run.")


@app.command()
def predict(
    run: Run,
    files: Annotated[
        list[str] | None, typer.Argument(help="Files such as it was trained on; none reads lines.")
    ] = None,
    format: Format = "",
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    header: Header = "",
    no_quote: NoQuote = False,
    skip_bad: SkipBad = False,
    beam: Annotated[
        int, typer.Option("--beam", min=0, help="Of a translator: how wide it searches.")
    ] = 0,
    n_best: Annotated[
        int, typer.Option("--nbest", min=0, help="Of a translator: so many translations each.")
    ] = 0,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Of a translator: where its words come from.")
    ] = False,
    future: Annotated[
        list[str] | None,
        typer.Option("--future", help="Of a forecaster: files with what is known ahead."),
    ] = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Answer with probabilities: for the rows of files, or the lines of the standard input.

    A line of output is label, probability and text with tabs between, or token/LABEL for each
    step, or the translation. A forecaster gives the steps behind the files, or behind its own:
    time, value, low and high. How files are read is as config.toml says, unless an option says
    otherwise.
    """
    from ensue.data.rows import Tally
    from ensue.models.forecaster import Forecaster
    from ensue.runs.forecast import picture_ahead, steps_behind
    from ensue.runs.use import AT_ONCE, load_run, predict_files, predict_texts, searching
    from ensue.training import RunFolder

    config, model = load_run(RunFolder(run))
    if beam or n_best or alignment:
        model = searching(model, beam, n_best, alignment)
    answers: Iterator[tuple[Any, Any]]
    bad = Tally()
    if isinstance(model, Forecaster):
        steps = steps_behind(model, config, files or [], future or [])
        answers = ((None, own) for own in steps)
        if picture:
            write_picture(picture, picture_ahead(model, config, files or [], future or []))
    elif future or picture:
        raise OptionError("--future and --picture: expected a run of a forecaster")
    elif files:
        given = _reading(format, encoding, delimiter, header, no_quote, skip_bad)
        config = replace(config, data=config.data.model_copy(update=given))
        found = predict_files(model, config, files, bad.add)
        answers = ((row.value, own) for row, own in found)
    else:
        somebody_waits = sys.stdin.isatty()
        answers = predict_texts(model, lines_of_input(), 1 if somebody_waits else AT_ONCE)
    for value, own in answers:
        if as_json:
            shown = value if isinstance(value, str | list) else None
            print(as_json_text({"input": shown, **asdict(own)}))
        else:
            print(own.as_line(value))
    if bad.count:
        say("\n  ".join(["left out", *bad.lines()]))


def lines_of_input() -> Iterator[str]:
    """The lines of the standard input, which is UTF-8 whatever the terminal says."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode().rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise DataError(
                f"standard input:{number}: 0x{line[error.start]:02X} is not utf-8: convert it "
                "(iconv -t utf-8), or give a file to a run that was trained with --encoding"
            ) from None
