"""The command-line application, and the options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ensue import __version__
from ensue.cli.help import Command, Commands
from ensue.cli.streams import may_be_lost
from ensue.escape import in_json, printable_lines, readable
from ensue.files.atomic_folder import finite

if TYPE_CHECKING:
    from ensue.runs.messages import Message, MessageCallback


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command for Typer: each field of its first argument, a dataclass, becomes an argument or
    an option; further arguments stay."""
    first, *rest = signature(command).parameters.values()
    kind = get_type_hints(command)[first.name]
    parameters = option_parameters(kind)

    @wraps(command)
    def spread(**arguments: Any) -> None:
        command(
            kind(**{parameter.name: arguments.pop(parameter.name) for parameter in parameters}),
            **arguments,
        )

    more = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in rest]
    spread.__signature__ = Signature([*parameters, *more])  # type: ignore[attr-defined]
    return spread


def option_parameters(kind: Any) -> list[Parameter]:
    """A parameter for each field of a dataclass; inherited fields come first."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def names_of(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]


EPILOG = """`ensue COMMAND --help` explains a command, `ensue settings TASK` every setting.

Exit codes: 0 done; 1 a bug in Ensue; 2 an error that you can fix (command, option, file, data); \
130 stopped with Ctrl-C, 143 by a signal."""


class App(typer.Typer):
    """An application whose commands have help pages as ours are."""

    def __init__(self, help: str, epilog: str | None = None) -> None:
        super().__init__(
            cls=Commands,
            help=help,
            epilog=epilog,
            add_completion=False,
            context_settings={
                "help_option_names": ["-h", "--help"],
                "token_normalize_func": lambda word: word.replace("_", "-"),  # --batch_size
            },
            rich_markup_mode=None,  # plain text: square brackets stay, and rich need not be loaded
            pretty_exceptions_enable=False,
        )

    def command(  # type: ignore[override]
        self,
        name: str | None = None,
        *,
        examples: str | None = None,
        cls: type[Command] = Command,
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Registers a command. examples: on each line a command and what it does, two spaces
        between them."""
        return super().command(name, cls=cls, epilog=examples)

    def every_command_below(self) -> tuple[object, ...]:
        """The registered commands, with those of its groups."""
        groups = [each.typer_instance for each in self.registered_groups]
        inside = [each.registered_commands for each in groups if each is not None]
        return (*self.registered_commands, *chain.from_iterable(inside))


def option(
    words: str,
    help: str,
    panel: str | None = None,
    *,
    min: float | None = None,
    max: float | None = None,
) -> Any:
    """An option by its flags and the word for its value, as a help page has them: "-o, --out FILE".
    panel: the heading above the option on the help page; min, max: limits of a number."""
    flags = [word for word in words.replace(",", " ").split() if word.startswith("-")]
    metavar = words.partition(f"{flags[-1]} ")[2] or None
    return typer.Option(*flags, metavar=metavar, help=help, rich_help_panel=panel, min=min, max=max)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help)


app = App("Neural sequence models: train, test and use them.", EPILOG)

AsJson = Annotated[bool, option("--json", "Print JSON instead of text.")]
Picture = Annotated[Path | None, option("--picture FILE", "Draw into a file: .svg, .png or .pdf.")]
Html = Annotated[Path | None, option("--html FILE", "Write a self-contained HTML page.")]
Dark = Annotated[
    bool,
    option("--dark", "Draw on a dark background; by default an .svg follows the viewer's theme."),
]
Device = Annotated[
    str, option("--device NAME", "Device: auto (a GPU if there is one), cpu or cuda.")
]
Quiet = Annotated[bool, option("--quiet", "Print warnings only, no progress.")]
Run = Annotated[Path, argument("RUN", "Run folder.")]
BestSoFar = Annotated[
    bool,
    option(
        "--best-so-far",
        "Use the best weights so far of an unfinished run (not calibrated).",
    ),
]


def group(name: str, help: str) -> App:
    """Commands of the form `ensue name …`."""
    typer_app = App(help)
    app.add_typer(typer_app, name=name)
    return typer_app


def print_version(is_asked: bool) -> None:
    if is_asked:
        answer(f"ensue {__version__}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, option("--debug", "Show the traceback of an error; allowed anywhere on the line.")
    ] = False,
) -> None:
    """Options of every command, for the help page; `main` has already removed `--debug`."""


def say(line: str) -> None:
    """A message on stderr."""
    print(readable(line), file=sys.stderr, flush=True)


def answer(text: str, end: str = "\n", styled: bool = False) -> None:
    """Prints an answer on stdout. styled: the text has colours, and its quotations are escaped."""
    print(text if styled else printable_lines(text), end=end)


def report(line: str) -> None:
    """Prints what a command has written to files. A broken pipe is ignored: the files are there."""
    with may_be_lost():
        answer(line)


def teller(quiet: bool = False, silent: bool = False) -> MessageCallback:
    """A callback that prints the messages of a run. quiet: warnings only; silent: nothing, for all
    processes except the first."""

    def tell(message: Message) -> None:
        if not silent and (message.warning or not quiet):
            say(message.text)

    return tell


def as_json_text(value: Any) -> str:
    """One line of JSON; infinite numbers become null."""
    return in_json(json.dumps(finite(value), ensure_ascii=False, allow_nan=False))


def write_picture(path: Path, svg: str, dark: bool) -> None:
    """Write the file as its ending says, and say so on stderr."""
    from ensue.drawing import write

    write(svg, path, "dark" if dark else "auto")
    say(f"wrote {path}")


def write_file(path: Path, text: str) -> None:
    """Write the file, and say so on stderr."""
    from ensue.files.disk import write_whole

    write_whole(path, text.encode())
    say(f"wrote {path}")


def check_files(file: Path | None, picture: Path | None) -> None:
    """Whether results can be written, before hours are spent on them."""
    from ensue.drawing.formats import check
    from ensue.files.disk import refuse_target

    if file is not None:
        refuse_target(file)
    if picture is not None:
        check(picture)
