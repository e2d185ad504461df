"""The application that commands are hung on, and the options that several of them have."""

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ensue import __version__
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.runs.messages import Message, Say

EXIT_CODES = """\b
Exit codes: 0 done; 1 a bug in Ensue; 2 an error that you can fix (command, option,
file, data); 130 stopped with Ctrl-C, 143 by a signal."""


# In the order in which a person needs them; any other command comes last.
ORDER = (
    *("demo", "doctor", "data"),
    *("init", "train", "select", "evaluate", "predict", "generate", "suggest"),
    *("runs", "compare"),
    *("explain", "lab", "backprop", "graph", "memory", "cell", "bench"),
)


class Commands(TyperGroup):
    """Commands whose standard output may be closed early, `ensue … | head`: that is no error."""

    def list_commands(self, ctx: Any) -> list[str]:
        rank = {name: number for number, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: rank.get(name, len(rank)))

    def invoke(self, ctx: Any) -> Any:
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # the interpreter flushes once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
        return found


app = typer.Typer(
    cls=Commands,
    help="Neural sequence models: train, test and use them.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain text: square brackets stay, and rich need not be loaded
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Device = Annotated[
    str,
    typer.Option("--device", help="Where to compute: auto (a GPU if there is one), cpu or cuda."),
]


def group(name: str, help: str) -> typer.Typer:
    """Commands of the form `ensue name …`."""
    own = typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(own, name=name)
    return own


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"ensue {__version__}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Show the traceback of an error; allowed anywhere on the line."
        ),
    ] = False,
) -> None:
    """Options of every command: they stand here for the help; `main` has taken `--debug` out."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def teller(quiet: bool = False, silent: bool = False) -> "Say":
    """What prints the messages of a run. quiet: warnings only; silent: nothing at all, for the
    processes that are not the first one."""

    def tell(message: "Message") -> None:
        if not silent and (message.warning or not quiet):
            say(message.text)

    return tell


def as_json_text(value: Any) -> str:
    """One line of JSON, which has no infinity: such numbers are null."""
    return json.dumps(_numbers(value), ensure_ascii=False, allow_nan=False)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_picture(path: Path, svg: str) -> None:
    """Write the file and say so on stderr."""
    if path.suffix != ".svg":
        raise OptionError(f"{path}: expected a file name that ends in .svg")
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    print(f"wrote {path}", file=sys.stderr)


def check_files(json_file: Path | None, picture: Path | None) -> None:
    """Whether results can be written, before hours are spent on them."""
    if picture is not None and picture.suffix != ".svg":
        raise OptionError(f"{picture}: expected a file name that ends in .svg")
    for path in (json_file, picture):
        if path is not None and not path.parent.is_dir():
            raise OptionError(f"{path} cannot be written: {path.parent} is not a folder")
