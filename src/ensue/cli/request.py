"""What to learn from and into which folder: the options that `init` and `train` share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import Device
from ensue.cli.data import Label, Text, TolerantOptions, names_of
from ensue.cli.grouped import grouped
from ensue.cli.task_options import NAMES, as_settings, check_owned, task_of, with_task_options
from ensue.errors import OptionError
from ensue.tasks.options import TRAIN, Option

if TYPE_CHECKING:
    from ensue.runs.config import RunConfig
    from ensue.runs.messages import Say


@dataclass(frozen=True, kw_only=True)
class Request(TolerantOptions):
    """What to learn from and into which folder."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Training files; two parallel files as train.en,train.de; or a folder with a "
            "subfolder for each class. Without files, `train` resumes the run in --run."
        ),
    ] = None
    run: Annotated[Path, typer.Option("--run", help="Run folder.")] = Path("run")
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help=f"{NAMES}; inferred from the data if not given.",
        ),
    ] = ""
    text: Text = ""
    label: Label = ""
    validation: Annotated[
        list[str] | None,
        typer.Option("--validation", help="Validation files, for early stopping."),
    ] = None
    test: Annotated[
        list[str] | None,
        typer.Option("--test", help="Test files; not read before `ensue evaluate`."),
    ] = None
    separator: Annotated[
        str, typer.Option("--separator", help="Separator between several labels of a row.")
    ] = ""
    sequence: Annotated[
        str,
        typer.Option(
            "--sequence",
            help="Column with the sequence id, for tables with a row for each time step.",
        ),
    ] = ""
    features: Annotated[
        str, typer.Option("--features", help="Numeric columns of such a table: a,b,c.")
    ] = ""
    group: Annotated[
        str,
        typer.Option(
            "--group", help="Column whose equal values stay in the same part of the split."
        ),
    ] = ""
    device: Device = ""
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting: train.rate=0.001; may be repeated."),
    ] = None

    def keys(self) -> dict[str, Any]:
        """The keys of [data] that were given, the files to train on aside."""
        names = ("text", "label", "validation", "test", "separator", "sequence", "group")
        given = {name: getattr(self, name) for name in names}
        given["features"] = names_of(self.features)
        return {key: value for key, value in given.items() if value} | self.as_data()


Given = Mapping[Option, Any]  # the tasks' own options that were given


def requested(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its first argument, a `Request`, and those of the tasks, as
    its argument `given`."""
    return with_task_options(TRAIN)(grouped(command))


def configured(wanted: Request, given: Given, say: "Say", trust_cell: bool = False) -> "RunConfig":
    """What the command says, or what the folder holds if it names no files. say: is told what was
    found out from the data; trust_cell: the file of a cell that the folder names may run."""
    from ensue.runs.config import RunConfig, refuse_cell_files
    from ensue.runs.infer import infer
    from ensue.runs.messages import Message
    from ensue.training import RunFolder

    if not wanted.files:
        path = RunFolder(wanted.run).config
        if not path.exists():
            raise OptionError(
                f"{wanted.run}: there is no run here; name the files to train on: "
                "ensue train reviews.csv --text review --label stars --run r1"
            )
        if wanted.settings or wanted.task or wanted.keys() or given:
            raise OptionError(
                f"{wanted.run}: without files the run goes on as {path} says; "
                "change that file, or name the files too"
            )
        config = RunConfig.read(path)
        for line in config.renamed:
            say(Message(line))
        if not trust_cell:
            refuse_cell_files(config, wanted.run)
        return _on_device(config, wanted.device)
    task = task_of(given, TRAIN, wanted.task)
    data = {**wanted.keys(), **_resolved(wanted)}
    settings = [*as_settings(given), *_device_setting(wanted), *(wanted.settings or [])]
    config, messages = infer(data, task or None, settings)
    check_owned(given, TRAIN, config.task, f"one to {config.task}")
    for message in messages:
        say(message)
    return config


def _device_setting(wanted: Request) -> list[str]:
    return [f"train.device={wanted.device}"] if wanted.device else []


def _on_device(config: "RunConfig", device: str) -> "RunConfig":
    """The same run on another device, if one is named."""
    from ensue.training import TrainSettings

    if not device:
        return config
    return replace(config, train=TrainSettings.of({**config.train.table(), "device": device}))


def _resolved(wanted: Request) -> dict[str, list[str]]:
    """The files of each part, by their full paths."""
    from ensue.data.parallel import BETWEEN, sides_of

    paths = {"train": wanted.files, "validation": wanted.validation, "test": wanted.test}
    return {
        key: [BETWEEN.join(str(Path(side).resolve()) for side in sides_of(p)) for p in files]
        for key, files in paths.items()
        if files
    }
