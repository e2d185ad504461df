"""What to learn from and into which folder: the options that `init` and `train` share."""

import json
from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ensue.cli.data import (
    Delimiter,
    Encoding,
    Format,
    Header,
    Label,
    NoQuote,
    SkipBad,
    Text,
    names_of,
)
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.runs.config import RunConfig


class Request(NamedTuple):
    """data: the keys of [data] that were given, the files but for those to train on."""

    files: list[str]
    run: Path
    task: str
    data: dict[str, Any]
    settings: list[str]


def request(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Training files, two parallel ones as train.en,train.de, or a folder with one for "
            "each class; `train` without any goes on with what --run holds."
        ),
    ] = None,
    run: Annotated[Path, typer.Option("--run", help="The folder of the run.")] = Path("run"),
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="classify, label, translate, language, table, forecast, image or caption; "
            "found out from the data if not given.",
        ),
    ] = "",
    text: Text = "",
    label: Label = "",
    validation: Annotated[
        list[str] | None,
        typer.Option("--validation", help="Files to stop by, named as those to train on."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option("--test", help="Files that stay sealed.")
    ] = None,
    separator: Annotated[
        str, typer.Option("--separator", help="Between several labels of a row.")
    ] = "",
    sequence: Annotated[
        str, typer.Option("--sequence", help="The column whose equal values make one sequence.")
    ] = "",
    features: Annotated[
        str, typer.Option("--features", help="Its columns of numbers: a,b,c.")
    ] = "",
    group: Annotated[
        str, typer.Option("--group", help="Rows with the same value stay together.")
    ] = "",
    horizon: Annotated[
        int, typer.Option("--horizon", min=0, help="Of a series: so many steps ahead.")
    ] = 0,
    time: Annotated[str, typer.Option("--time", help="Of a series: the column of the time.")] = "",
    covariates: Annotated[
        str, typer.Option("--covariates", help="Of a series: columns known up to now.")
    ] = "",
    known: Annotated[
        str, typer.Option("--known", help="Of a series: columns known for the time ahead, too.")
    ] = "",
    format: Format = "",
    encoding: Encoding = "",
    delimiter: Delimiter = "",
    header: Header = "",
    no_quote: NoQuote = False,
    skip_bad: SkipBad = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting: train.rate=0.001; may be repeated."),
    ] = None,
) -> Request:
    """The options as one value."""
    data = {
        "text": text,
        "label": label,
        "validation": validation,
        "test": test,
        "separator": separator,
        "sequence": sequence,
        "features": names_of(features),
        "group": group,
        "format": format,
        "encoding": encoding,
        "delimiter": delimiter,
        "header": names_of(header),
        "no_quote": no_quote,
        "skip_bad": skip_bad,
    }
    series: dict[str, Any] = {"horizon": horizon, "time": time}
    series |= {"covariates": names_of(covariates), "known": names_of(known)}
    task = task or ("forecast" if any(series.values()) else "")
    if task == "forecast":
        series["targets"] = names_of(str(data.pop("label")))
    given = {key: value for key, value in data.items() if value}
    asked = [f"model.{key}={json.dumps(value)}" for key, value in series.items() if value]
    return Request(files or [], run, task, given, [*asked, *(settings or [])])


def requested(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `request` before its own: they are its first argument."""
    shared = signature(request).parameters
    own = list(signature(command).parameters.values())[1:]

    @wraps(command)
    def filled(**given: Any) -> None:
        wanted = request(**{name: given.pop(name) for name in shared})
        command(wanted, **given)

    filled.__signature__ = Signature([*shared.values(), *own])  # type: ignore[attr-defined]
    return filled


def configured(wanted: Request, say: Callable[[str], None]) -> "RunConfig":
    """What the command says, or what the folder holds if it names no files. say: hears what was
    found out from the data."""
    from ensue.runs.config import RunConfig
    from ensue.runs.infer import infer
    from ensue.runs.parallel import BETWEEN, sides_of
    from ensue.training import RunFolder

    files, run, task, data, settings = wanted
    if not files:
        path = RunFolder(run).config
        if not path.exists():
            raise OptionError(
                f"{run}: there is no run here; name the files to train on: "
                "ensue train reviews.csv --text review --label stars --run r1"
            )
        if settings or task or data:
            raise OptionError(
                f"{run}: without files the run goes on as {path} says; "
                "change that file, or name the files too"
            )
        return RunConfig.read(path)
    paths: dict[str, list[str]] = {"train": files}
    paths |= {key: data[key] for key in ("validation", "test") if key in data}
    resolved = {
        key: [BETWEEN.join(str(Path(side).resolve()) for side in sides_of(p)) for p in own]
        for key, own in paths.items()
    }
    config, lines = infer({**data, **resolved}, task or None, settings)
    for line in lines:
        say(line)
    return config
