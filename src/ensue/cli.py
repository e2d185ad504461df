"""The command line: one short function for each command.

stdout carries the result, stderr the progress and the errors. Exit codes:

    0    done
    1    a mistake in Ensue itself; the traceback is shown
    2    something that you can put right: the command, an option, a file, the data
    130  stopped with Ctrl-C

`ensue --help` has to answer at once, so nothing heavy is imported here: a command imports
what it needs inside its function.
"""

import io
import json
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ensue import __version__
from ensue.errors import EnsueError, OptionError

EXIT_CODES = """\b
Exit codes: 0 done; 1 a mistake in Ensue itself; 2 something that you can put right
(the command, an option, a file, the data); 130 stopped with Ctrl-C."""

app = typer.Typer(
    help="Train, inspect and serve neural sequence models.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain text: square brackets stay, and rich need not be loaded
    pretty_exceptions_enable=False,
)

cells = typer.Typer(
    help="Cells: the built-in ones and your own, as their equations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(cells, name="cell")

InputSize = Annotated[int, typer.Option("--input", min=1, help="Features of x.")]
HiddenSize = Annotated[int, typer.Option("--hidden", min=1, help="Features of the state.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


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
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Options of every command: they stand here for the help; `main` has taken `--debug` out."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the pictures.")] = Path(
        "ensue-demo"
    ),
) -> None:
    """Show, in a few seconds, what a cell written as equations gives."""
    from ensue.demo import run

    run(out)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine has and lacks.

    Versions, processor, compiler, cache, data sets and extras, each with what to do about it.
    """
    from ensue.doctor import as_text, examine

    findings = examine()
    print(json.dumps([asdict(one) for one in findings]) if as_json else as_text(findings))


@cells.command("list")
def list_cells(
    input_size: InputSize = 32, hidden_size: HiddenSize = 64, as_json: AsJson = False
) -> None:
    """List the built-in cells: name, parameters, convention."""
    from ensue.cells.describe import as_table, summarise

    rows = summarise(input_size, hidden_size)
    print(json.dumps(rows, ensure_ascii=False) if as_json else as_table(rows))


@cells.command("show")
def show_cell(
    cell: Annotated[
        str, typer.Argument(help="A name, or a Python file of your own: mine.py, mine.py:MyCell.")
    ],
    input_size: InputSize = 32,
    hidden_size: HiddenSize = 64,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the equations as LaTeX, and nothing else.")
    ] = False,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="Print the derivative of the step too.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the graph of the step into an .svg file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a cell: equations, convention, parameters, flops.

    A file of your own is imported, so its code runs.
    """
    from ensue.cells.describe import as_text, describe
    from ensue.cells.load import load_cell

    loaded = load_cell(cell)
    found = describe(loaded, input_size, hidden_size)
    if picture is not None:
        write_picture(picture, loaded.equations(input_size, hidden_size).svg())
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        print(found.latex if latex else as_text(found, gradient))


def write_picture(path: Path, svg: str) -> None:
    """Write the file and say so on stderr."""
    if path.suffix != ".svg":
        raise OptionError(f"{path}: expected a file name that ends in .svg")
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    print(f"wrote {path}", file=sys.stderr)


def take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` stands before any `--`, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(kept) < end, [*kept, *arguments[end:]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; an `EnsueError` becomes its message on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # σ on an ASCII terminal must not be an error
            stream.reconfigure(errors="backslashreplace")
    debug, rest = take_debug(sys.argv[1:] if arguments is None else arguments)
    try:
        app(rest, prog_name="ensue")
    except EnsueError as problem:
        if debug:
            traceback.print_exc()
        else:
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
