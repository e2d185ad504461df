"""`ensue cell …`: the built-in cells and your own, as their equations."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.app import AsJson, group, write_picture

if TYPE_CHECKING:
    from ensue.cells import Cell

cells = group("cell", "Cells: the built-in ones and your own, as their equations.")

InputSize = Annotated[int, typer.Option("--input", min=1, help="Features of x.")]
HiddenSize = Annotated[int, typer.Option("--hidden", min=1, help="Features of the state.")]


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
    from ensue.engine.native.program import sequence_program
    from ensue.engine.native.source import write_source

    return write_source(sequence_program(cell.equations(input_size, hidden_size))).text
