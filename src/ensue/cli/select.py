"""Selection: which model is the best for these files."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    Quiet,
    answer,
    app,
    as_json_text,
    check_files,
    option,
    say,
    teller,
    write_picture,
)
from ensue.cli.learning import HERE, On
from ensue.cli.request import FurtherOptions, Request, check, configured, requested
from ensue.errors import OptionError
from ensue.escape import in_shell

if TYPE_CHECKING:
    from ensue.runs.config import RunConfig
    from ensue.study.selection.entries import Selection
    from ensue.study.selection.search import SearchRequest

Models = Annotated[
    str,
    option(
        "--models A,B",
        "Compare these models instead of searching: families and cells of the task, each with "
        "its settings: gru,lstm:hidden_size=400,layers=1. An unknown name lists the valid ones.",
    ),
]
Trials = Annotated[
    int | None,
    option(
        "--trials N",
        "Number of trials; the result is the same for any number of workers. [24]",
    ),
]
Minutes = Annotated[
    float | None,
    option("--minutes M", "Time budget: as many trials as fit, including the test of the winner."),
]
Workers = Annotated[int, option("--workers N", "Number of trials trained at the same time.")]

Storage = Annotated[
    str,
    option(
        "--storage URL",
        "Database of the trials, for Optuna's tools: postgresql://user@host/name (extra "
        "postgresql). [optuna.db in the folder]",
    ),
]


Together = Annotated[
    bool,
    option(
        "--together",
        "Also try an ensemble of trials, by forward selection on the validation part.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectOptions(Request):
    trials: Trials = None
    minutes: Minutes = None
    workers: Workers = 1
    on: On = HERE
    together: Together = False
    storage: Storage = ""
    models: Models = ""
    quiet: Quiet = False
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False

    def refuse_clashes(self) -> None:
        """Raises OptionError for options that --models excludes."""
        flags = {
            "--trials": self.trials is not None,
            "--minutes": self.minutes is not None,
            "--workers": self.workers != 1,
            "--on": self.on != HERE,
            "--together": self.together,
        }
        if self.trials is not None and self.minutes is not None:
            raise OptionError("--trials and --minutes: expected one of them; leave one out")
        if self.models and (clashing := [flag for flag, value in flags.items() if value]):
            raise OptionError(
                f"--models and {clashing[0]}: --models trains every model that it names; "
                "leave one of them out"
            )


@app.command("select")
@requested
def select_command(options: SelectOptions, further: FurtherOptions) -> None:
    """Find the best model and settings for these files.

    Searches the families and settings of the task, the default first. Weak trials stop early; all
    are ranked on the validation part, and only the winner is evaluated on the test part. Settings
    that you give stay fixed. Each trial is a run folder below --run, next to selection.json and
    selection.svg. The same command resumes an interrupted selection.
    """
    began = time.time()  # loading torch is part of the time that there is
    check_files(None, options.picture)
    if not options.files:
        raise OptionError(
            "select: name the files to learn from: "
            f"`ensue select FILE --run {in_shell(options.run)}`"
        )
    options.refuse_clashes()
    check(options, further)
    tell = say if not options.quiet else lambda line: None
    tell(
        f"selecting a model{' among ' + options.models if options.models else ''}"
    )  # torch takes seconds to load
    from ensue.study.selection.folder import FILE, PICTURE

    request = _request(options, began)  # refused before any file is read
    config = configured(options, further, teller(options.quiet))
    selection = (
        _compared(options, config) if options.models else _searched(options, config, request)
    )
    answer(as_json_text(selection.as_json()) if options.as_json else str(selection))
    tell(f"wrote {options.run / FILE}, {options.run / PICTURE}")
    if options.picture is not None and selection.winner:
        write_picture(options.picture, selection.picture(), options.dark)
    if selection.winner:
        tell(f"Next: ensue predict {in_shell(options.run / selection.winner.folder)} FILE")


def _compared(options: SelectOptions, config: "RunConfig") -> "Selection":
    """The models that were named."""
    from ensue.study.selection.selection import select_among
    from ensue.training import Display

    watchers = [Display(quiet=options.quiet)]
    return select_among(config, options.models, options.run, teller(options.quiet), watchers)


def _request(options: SelectOptions, began: float) -> "SearchRequest":
    from ensue.study.selection.search import TRIALS, SearchRequest

    trials = TRIALS if options.trials is None else options.trials
    return SearchRequest(
        trials,
        options.workers,
        options.minutes,
        options.storage,
        options.together,
        options.on,
        began,
    )


def _searched(options: SelectOptions, config: "RunConfig", request: "SearchRequest") -> "Selection":
    """The task's search space."""
    from ensue.study.selection.search import search

    return search(config, options.run, request, teller(options.quiet))
