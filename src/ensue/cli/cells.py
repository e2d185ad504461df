"""`ensue cell …`: the built-in cells and your own, as their equations."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    argument,
    as_json_text,
    check_files,
    group,
    grouped,
    option,
    write_picture,
)
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.cells import Cell

cells = group("cell", "Cells and their equations: built-in ones and your own.")

InputSize = Annotated[int, option("--input N", "Input size.", min=1)]
HiddenSize = Annotated[int, option("--hidden N", "Hidden size.", min=1)]


@cells.command("list")
def list_cells(
    input_size: InputSize = 32, hidden_size: HiddenSize = 64, as_json: AsJson = False
) -> None:
    """List the built-in cells with their parameters and conventions."""
    from ensue.cells.describe import list_document, summarise
    from ensue.drawing.document import as_text

    rows = summarise(input_size, hidden_size)
    answer(as_json_text(rows) if as_json else as_text(list_document(rows)))


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    cell: Annotated[
        str, argument("CELL", "Name of a cell, or a Python file: mine.py, mine.py:MyCell.")
    ]
    input_size: InputSize = 32
    hidden_size: HiddenSize = 64
    latex: Annotated[bool, option("--latex", "Print only the equations, as LaTeX.")] = False
    gradient: Annotated[bool, option("--gradient", "Print the derivative of the step as well.")] = (
        False
    )
    code: Annotated[bool, option("--code", "Print only the C++ code of its kernel.")] = False
    target: Annotated[
        str | None,
        option(
            "--as LANGUAGE",
            "Print only its code in this language: c, javascript, onnx, cpp, latex, mathml "
            "or text.",
        ),
    ] = None
    picture: Picture = None
    unfold: Annotated[
        int | None,
        option(
            "--unfold N",
            "With --picture: draw a network of the cell, unfolded over N steps.",
            min=1,
        ),
    ] = None
    layers: Annotated[int, option("--layers N", "With --unfold: number of layers.", min=1)] = 1
    bidirectional: Annotated[
        bool, option("--bidirectional", "With --unfold: draw both directions.")
    ] = False
    dark: Dark = False
    as_json: AsJson = False


@cells.command("show")
@grouped
def show_cell(options: ShowOptions) -> None:
    """Show a cell, built-in or your own: equations, parameters, flops.

    A Python file is imported, so its code is executed. --picture draws the graph of the step, with
    --unfold the network over several.
    """
    if options.picture is None and options.unfold is not None:
        raise OptionError("--unfold: expected --picture FILE with it, got none")
    if options.unfold is None and (options.layers > 1 or options.bidirectional):
        raise OptionError("--layers, --bidirectional: expected --unfold N with them, got none")
    from ensue.cells.describe import describe, document
    from ensue.cells.load import load_cell
    from ensue.drawing.document import as_text

    check_files(None, options.picture)
    cell, sizes = load_cell(options.cell), (options.input_size, options.hidden_size)
    description = describe(cell, *sizes)
    if options.picture is not None:
        write_picture(options.picture, drawn(cell, options), options.dark)
    facts: dict[str, object] = asdict(description)
    if options.code:
        facts["code"] = kernel_code(cell, *sizes)
    if options.target is not None:
        answer(in_language(cell, *sizes, options.target))
    elif options.as_json:
        answer(as_json_text(facts))
    elif options.code:
        answer(str(facts["code"]), end="")
    else:
        text = as_text(document(description, options.gradient))
        answer(description.latex if options.latex else text)


def drawn(cell: "Cell", options: ShowOptions) -> str:
    """The picture of one step, or of a network over several steps."""
    sizes = (options.input_size, options.hidden_size)
    if options.unfold is None:
        return cell.equations(*sizes).svg()
    from ensue.layers import Recurrent

    network = Recurrent(cell, *sizes, options.layers, bidirectional=options.bidirectional)
    return network.unfolded(options.unfold)


def kernel_code(cell: "Cell", input_size: int, hidden_size: int) -> str:
    """The source code that the native engine would compile; needs no compiler."""
    from ensue.engine.native.emission.program import sequence_program
    from ensue.engine.native.emission.source import write_source

    return write_source(sequence_program(cell.equations(input_size, hidden_size))).text


def in_language(cell: "Cell", input_size: int, hidden_size: int, name: str) -> str:
    """The cell in a language by its name, for printing or export."""
    from ensue.errors import unknown
    from ensue.export.stack import stack_of
    from ensue.export.targets import TARGETS, as_text
    from ensue.layers import Recurrent

    equations = cell.equations(input_size, hidden_size, training=False)
    printed = {
        "cpp": lambda: kernel_code(cell, input_size, hidden_size),
        "latex": equations.latex,
        "mathml": equations.mathml,
        "text": equations.text,
    }
    if name in printed:
        return printed[name]()
    if name not in TARGETS:
        raise unknown("language", name, [*TARGETS, *printed])
    return as_text(stack_of(Recurrent(cell, input_size, hidden_size)), name)
