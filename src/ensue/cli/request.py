"""The options that `init` and `train` share: the data to learn from, and the folder of the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import argument, grouped, names_of, option
from ensue.cli.data import Image, Label, Test, Texts, TolerantOptions, Tree, Validation
from ensue.cli.help import DATA, FILLED_IN, SETTINGS
from ensue.cli.task_options import NAMES, as_settings, check_owned, task_of, with_task_options
from ensue.cli.trusting import trusted
from ensue.errors import EnsueError, OptionError
from ensue.escape import in_shell
from ensue.runs.known_settings import TaskSettings, by_task, known_settings, shown_value
from ensue.setting_words import WORDS, Word, Words
from ensue.tasks import TASKS
from ensue.tasks.options import TRAIN, Option

if TYPE_CHECKING:
    from ensue.runs.config import RunConfig
    from ensue.runs.messages import MessageCallback

PREFIX = "word_"
TYPES: dict[str, Any] = {"text": str | None, "number": int | None, "fraction": float | None}


def with_words(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each word. Its argument `words` has the given options."""

    @wraps(command)
    def filled(**arguments: Any) -> None:
        values = {name: arguments.pop(PREFIX + name) for name in WORDS}
        command(
            **arguments, words={name: value for name, value in values.items() if value is not None}
        )

    plain = [
        parameter
        for parameter in signature(command).parameters.values()
        if parameter.name != "words"
    ]
    more = [_parameter(word) for word in WORDS.values()]
    filled.__signature__ = Signature([*more, *plain])  # type: ignore[attr-defined]
    return filled


def _parameter(word: Word) -> Parameter:
    mark = f"@{word.name}"
    FILLED_IN[mark] = partial(meaning, word)
    declared = typer.Option(
        *word.flags, metavar=word.metavar, help=mark, rich_help_panel=SETTINGS, show_default=False
    )
    return Parameter(
        PREFIX + word.name,
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[TYPES[word.kind], declared],
    )


def meaning(word: Word) -> str:
    """The meaning of a word, with its default for every task: "Learning rate. [0.001; 0.002 for
    image, table]"."""
    known = {task: known_settings(task) for task in TASKS}
    having = [task for task, value in known.items() if word.name in value.words]
    text = word.help or dict(known[having[0]])[word.key].meaning
    return f"{text} [{by_task({task: default(word, known[task]) for task in having})}]"


def default(word: Word, settings: TaskSettings) -> str:
    """The default of a word: one value, or a/b/c if it stands for several settings with different
    defaults."""
    values = dict(settings)
    defaults = [shown_value(values[key].default) for key in settings.words[word.name]]
    return defaults[0] if len({*defaults}) == 1 else "/".join(defaults)


def refuse_clashes(
    words: Words, options: Mapping[str, str], settings: Sequence[str], task: str
) -> None:
    """Raises OptionError if two options set the same setting. options: flags of the other options
    on the command line, by the keys they stand for; task: "" if it is not yet known."""
    flags = dict(options)
    for name in words:
        for task_name in [task] if task else TASKS:
            flags |= dict.fromkeys(known_settings(task_name).words.get(name, ()), WORDS[name].flag)
    for key in map(_key, settings):
        if key in flags:
            raise OptionError(
                f"{flags[key]} and --set {key}: two values for one setting; give one of them"
            )


def _key(setting: str) -> str:
    """train.rate=0.01 → train.rate"""
    return setting.partition("=")[0].strip()


FILES_HELP = (
    "Training files; two parallel files as train.en,train.de; or a folder with a subfolder for "
    "each class."
)


@dataclass(frozen=True, kw_only=True)
class Request(TolerantOptions):
    """The data to learn from, and the folder of the run."""

    files: Annotated[list[str] | None, argument("FILES", FILES_HELP)] = None
    task: Annotated[
        str, option("--task NAME", f"{NAMES}; inferred from the data if not given.", DATA)
    ] = ""
    text: Texts = None
    image: Image = ""
    tree: Tree = ""
    label: Label = ""
    validation: Validation = None
    test: Test = None
    separator: Annotated[
        str, option("--separator SIGN", "Separator between several labels of a row.", DATA)
    ] = ""
    sequence: Annotated[
        str,
        option(
            "--sequence COLUMN",
            "Column with the sequence id, for tables with a row for each time step.",
            DATA,
        ),
    ] = ""
    features: Annotated[
        str, option("--features A,B,C", "Numeric columns of each time step, with --sequence.", DATA)
    ] = ""
    group: Annotated[
        str,
        option(
            "--group COLUMN", "Column whose equal values stay in the same part of the split.", DATA
        ),
    ] = ""
    base: Annotated[
        list[str] | None,
        option(
            "--base RUN",
            "Start from a trained run or model, word vectors or weights; may be "
            "repeated, for a forward and a backward language model.",
        ),
    ] = None
    run: Annotated[Path, option("--run, --out, --output FOLDER", "Run folder.")] = Path("run")
    quick: Annotated[bool, option("--quick", "Train for about a minute only.", SETTINGS)] = False
    best: Annotated[
        bool,
        option(
            "--best",
            "Train for hours: several networks, more epochs. `ensue settings TASK` lists "
            "what --quick and --best set.",
            SETTINGS,
        ),
    ] = False
    settings: Annotated[
        list[str] | None,
        option(
            "--set KEY=VALUE",
            "Change any setting, train.clip=0.5; may be repeated. `ensue settings TASK` "
            "lists them.",
        ),
    ] = None
    device: Annotated[
        str,
        option(
            "--device NAME",
            "Device: auto (a GPU if there is one), cpu or cuda. [auto]",
            SETTINGS,
        ),
    ] = ""

    @property
    def recipe(self) -> str:
        """quick, best, or "" for the default."""
        if self.quick and self.best:
            raise OptionError("--quick and --best: expected one of them; leave one out")
        return "quick" * self.quick + "best" * self.best

    def keys(self) -> dict[str, Any]:
        """The keys of [data] that were given, the files to train on aside."""
        names = ("image", "tree", "label", "validation", "test", "separator", "sequence", "group")
        values = {name: getattr(self, name) for name in names}
        texts = self.text or []
        values["text"] = texts if len(texts) > 1 else "".join(texts)
        values["features"] = names_of(self.features)
        return {key: value for key, value in values.items() if value} | self.as_data()


@dataclass(frozen=True)
class FurtherOptions:
    """Further options of a request. words: values of words that stand for settings; options: values
    of options of the tasks."""

    words: Words
    options: Mapping[Option, Any]

    def __bool__(self) -> bool:
        return bool(self.words or self.options)


def requested(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its first argument, a `Request`. Its second argument,
    `further`, receives the values of words and of options of the tasks."""
    grouping = grouped(command)

    @wraps(grouping)
    def joined(**arguments: Any) -> None:
        further = FurtherOptions(arguments.pop("words"), arguments.pop("option_values"))
        grouping(**arguments, further=further)

    plain = [
        parameter
        for parameter in signature(grouping).parameters.values()
        if parameter.name != "further"
    ]
    joined.__signature__ = Signature(plain)  # type: ignore[attr-defined]
    return with_task_options(TRAIN)(with_words(joined))


def check(request: Request, further: FurtherOptions) -> None:
    """Raises the errors that can be found at once, before torch is loaded and files are read."""
    recipe = request.recipe
    if not request.files:
        _refuse_resuming(request, further, recipe)
        return
    task = task_of(further.options, TRAIN, request.task)
    refuse_clashes(further.words, _keys(request, further), request.settings or [], task)
    if task:
        known_settings(task).as_settings(further.words)
    more = [
        path for name, paths in further.options.items() if name.kind == "files" for path in paths
    ]
    _refuse_missing([*request.files, *(request.validation or []), *more])


def _refuse_missing(paths: Sequence[str]) -> None:
    from ensue.data.parallel import sides_of
    from ensue.data.stream import open_file

    for path in (Path(side) for both in paths for side in sides_of(both)):
        if not path.exists():
            open_file(path)  # the error names the nearest file that there is


def _refuse_resuming(request: Request, further: FurtherOptions, recipe: str) -> None:
    from ensue.files.run_folder import RunFolder

    path = RunFolder(request.run).config
    if not path.exists():
        raise OptionError(
            f"{request.run}: there is no run here; name the files to train on: "
            "ensue train reviews.csv --text review --label stars --run r1"
        )
    if request.settings or request.task or request.keys() or request.base or further or recipe:
        raise OptionError(
            f"{request.run}: without files the run continues as {path} says; "
            f"change that file, name the files too, or resume it: `ensue train --run "
            f"{in_shell(request.run)}`"
        )


def _keys(request: Request, further: FurtherOptions) -> dict[str, str]:
    """The options that stand for a setting, by its key."""
    data = request.keys()
    flags = {f"data.{key}": f"--{key.replace('_', '-')}" for key in data}
    flags |= {option.key: option.flag for option in further.options}
    flags["data.train"] = "the files"
    flags |= {"task": "--task"} if request.task else {}
    flags |= {"base.path": "--base"} if request.base else {}
    return flags | ({"train.device": "--device"} if request.device else {})


def configured(
    request: Request, further: FurtherOptions, say: MessageCallback, trust_cell: str = ""
) -> RunConfig:
    """The configuration of the command or, without files, of the folder. say: callback for what was
    inferred from the data; trust_cell: which files of cells that the folder names may run."""
    from ensue.files.attempt import add_note
    from ensue.files.run_folder import RunFolder
    from ensue.runs.config import RunConfig
    from ensue.runs.infer import infer
    from ensue.runs.messages import Message

    if not request.files:
        config = RunConfig.of_run(RunFolder(request.run))
        config = config.with_trusted_cells(RunFolder(request.run), trusted(trust_cell))
        return _on_device(config, request.device)
    task = task_of(further.options, TRAIN, request.task)
    data = {**request.keys(), **_resolved(request)}
    settings = [*as_settings(further.options), *_own_settings(request), *(request.settings or [])]
    implied = bool(task and not request.task)  # only the options imply it
    flags = ", ".join(each.flag for each in further.options)
    try:
        config, messages = infer(data, task or None, settings, further.words, request.recipe)
    except EnsueError as problem:
        if implied:
            add_note(
                problem,
                f"{flags}: only {task} has this option, so the task is {task}; leave it out "
                "to infer the task",
            )
        raise
    check_owned(further.options, TRAIN, config.task, f"one of task {config.task}")
    for message in [*[Message(f"task: {task} ({flags})")] * implied, *messages]:
        say(message)
    return config.with_named_cells()


def _own_settings(request: Request) -> list[str]:
    """The settings that options of the request stand for."""
    settings = [f"train.device={request.device}"] if request.device else []
    paths = [str(Path(path).resolve()) for path in request.base or []]
    return [*settings, f"base.path={json.dumps(paths)}"] if paths else settings


def _on_device(config: RunConfig, device: str) -> RunConfig:
    """The same run on another device, if one is named."""
    from ensue.training import TrainSettings

    if not device:
        return config
    return replace(config, train=TrainSettings.of({**config.train.table(), "device": device}))


def _resolved(request: Request) -> dict[str, list[str]]:
    """The files of each part, by their full paths."""
    from ensue.data.parallel import BETWEEN, sides_of

    paths = {"train": request.files, "validation": request.validation, "test": request.test}
    return {
        key: [BETWEEN.join(str(Path(side).resolve()) for side in sides_of(p)) for p in files]
        for key, files in paths.items()
        if files
    }
