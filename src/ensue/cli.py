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
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import __version__
from ensue.errors import EnsueError, OptionError

if TYPE_CHECKING:
    from ensue.cells import Cell

EXIT_CODES = """\b
Exit codes: 0 done; 1 a mistake in Ensue itself; 2 something that you can put right
(the command, an option, a file, the data); 130 stopped with Ctrl-C."""

app = typer.Typer(
    help="Recurrent cells as their equations: look at them, measure them.",
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


@app.command()
def bench(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CASE",
            help="Words of the names of cases, joined by dots: lengths, LSTM.train, T400.B32.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The whole grid of shapes, or four of them.")
    ] = False,
    own: Annotated[
        list[str] | None,
        typer.Option("--cell", help="A cell of your own: mine.py, mine.py:MyCell."),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="Only this opponent; may be repeated.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs for each median.")] = 15,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="As many as torch takes, if not given.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything into a JSON file too.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the results into an .svg file too.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option("--read", help="Measure nothing: show what --json has written.")
    ] = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the names of the cases and nothing else.")
    ] = False,
) -> None:
    """Measure the native engine beside torch.nn and a plain torch loop.

    JAX and ONNX Runtime take part where `make bench-peers` has installed them. Ctrl-C shows
    what has been measured by then.
    """
    from ensue.bench.bench import Options, choose_cases, load_cells, run_bench
    from ensue.bench.saved import read, save
    from ensue.bench.table import write_report

    check_files(json_file, picture)
    if earlier is not None:
        report = read(earlier)
    else:
        loaded = load_cells(own or [])
        cases = choose_cases(loaded, full, words or [])
        if only_list:
            print("\n".join(case.name for case in cases))
            return
        options = Options(runs, frozenset(against or []), threads=threads)
        report = run_bench(cases, loaded, options)
    write_report(report)
    if json_file is not None:
        save(report, json_file)
    if picture is not None:
        from ensue.bench.picture import draw

        write_picture(picture, draw(report))
    if earlier is None and not report.finished:
        raise KeyboardInterrupt


def check_files(json_file: Path | None, picture: Path | None) -> None:
    """Whether results can be written, before hours are spent on them."""
    if picture is not None and picture.suffix != ".svg":
        raise OptionError(f"{picture}: expected a file name that ends in .svg")
    for path in (json_file, picture):
        if path is not None and not path.parent.is_dir():
            raise OptionError(f"{path} cannot be written: {path.parent} is not a folder")


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
    code: Annotated[
        bool, typer.Option("--code", help="Print the C++ of its kernel, and nothing else.")
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
    facts: dict[str, object] = asdict(found)
    if code:
        facts["code"] = kernel_code(loaded, input_size, hidden_size)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    elif code:
        print(facts["code"], end="")
    else:
        print(found.latex if latex else as_text(found, gradient))


def kernel_code(cell: "Cell", input_size: int, hidden_size: int) -> str:
    """What the native engine gives to the compiler; needs none."""
    from ensue.engine.native.program import Program
    from ensue.engine.native.source import write_source

    return write_source(Program(cell.equations(input_size, hidden_size))).text


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
