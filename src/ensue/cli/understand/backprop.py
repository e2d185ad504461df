"""Backpropagation, number by number: through layers, through time, through depth."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Html,
    Picture,
    answer,
    app,
    as_json_text,
    check_files,
    grouped,
    option,
    write_file,
    write_picture,
)
from ensue.cli.understand.experiments import Seed
from ensue.cli.understand.typed_numbers import numbers, whole_numbers
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.study.foundations.bptt_walk import BpttWalk

TIME = "Through time"  # the heading of options of a recurrent cell


@dataclass(frozen=True, kw_only=True)
class BackpropOptions:
    widths: Annotated[
        str, option("--widths A,B", "Layer widths: input, hidden layers, output.")
    ] = "2,3,1"
    activation: Annotated[
        str,
        option("--activation NAME", "Activation of hidden layers: logistic, tanh, relu, linear."),
    ] = "logistic"
    output: Annotated[
        str,
        option(
            "--output NAME",
            "Activation of the output: the same, or softmax. [logistic; linear with --cell]",
        ),
    ] = ""
    cost: Annotated[
        str,
        option(
            "--cost NAME",
            "Cost: cross-entropy or squares; with --cell, the steps with a cost: 2:4.",
        ),
    ] = ""
    weights: Annotated[
        str,
        option(
            "--weights A,B",
            "All weights, comma-separated: W1 row by row, b1, W2, …; random if not given.",
        ),
    ] = ""
    x: Annotated[str, option("--x A,B", "Inputs, row by row or step by step.")] = ""
    y: Annotated[str, option("--y A,B", "Targets, row by row or step by step.")] = ""
    rows: Annotated[int, option("--rows N", "Examples of the minibatch.", min=1)] = 1
    rate: Annotated[
        float | None, option("--rate X", "Rate of the update. [0.5; 0.1 with --cell]")
    ] = None
    depth: Annotated[
        int | None,
        option(
            "--depth N",
            "Show δ through N hidden layers instead: logistic, tanh and ReLU.",
            min=1,
            max=50,
        ),
    ] = None
    cell: Annotated[
        str, option("--cell CELL", "Through time: a cell by name, or a Python file.", TIME)
    ] = ""
    steps: Annotated[int, option("--steps N", "Steps.", TIME, min=1)] = 4
    hidden_size: Annotated[int, option("--hidden-size N", "Units: 1 or 2.", TIME, min=1)] = 1
    input_size: Annotated[int, option("--input-size N", "Inputs.", TIME, min=1)] = 1
    outputs: Annotated[int, option("--outputs N", "Outputs.", TIME, min=1)] = 1
    seed: Seed = 1
    html: Html = None
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@app.command(
    examples="""
    ensue backprop --widths 2,3,1 --rows 4  a small network, to the update
    ensue backprop --cell SimpleRNN --steps 4 --cost 2:4  through time, term by term
    ensue backprop --depth 10  why depth is hard
    """
)
@grouped
def backprop(options: BackpropOptions) -> None:
    """Walk through backpropagation, number by number.

    Prints the four equations of a small network with their values, up to the update of every
    weight; with --cell, backpropagation through time as the sum of its terms. All is checked
    against autograd.
    """
    check_files(options.html, options.picture)
    if options.cell and options.depth is not None:
        raise OptionError("--cell and --depth: expected one of them, got both")
    if options.depth is not None:
        _depth(options, options.depth)
    elif options.cell:
        _through_time(options)
    else:
        _network(options)


def _network(options: BackpropOptions) -> None:
    from ensue.study.foundations.backprop import NetworkWalk
    from ensue.study.foundations.backprop_report import as_json, as_page, as_text, network_picture

    walked = NetworkWalk(
        widths=whole_numbers("--widths", options.widths),
        activation=options.activation,
        output=options.output or "logistic",
        cost=options.cost or "cross-entropy",
        weights=_listed("--weights", options.weights),
        x=_listed("--x", options.x),
        y=_listed("--y", options.y),
        rows=options.rows,
        rate=0.5 if options.rate is None else options.rate,
        seed=options.seed,
    ).walked()
    answer(as_json_text(as_json(walked)) if options.as_json else as_text(walked))
    _write(options, lambda: as_page(walked), lambda: network_picture(walked))


def _through_time(options: BackpropOptions) -> None:
    from ensue.study.foundations.bptt_report import as_json, as_page, as_text, unrolled_picture

    walked = _walked(options)
    answer(as_json_text(as_json(walked)) if options.as_json else as_text(walked))
    _write(options, lambda: as_page(walked), lambda: unrolled_picture(walked))


def _walked(options: BackpropOptions) -> "BpttWalk":
    from ensue.cells.load import load_cell
    from ensue.study.foundations.bptt_walk import TimeWalk

    return TimeWalk(
        load_cell(options.cell),
        steps=options.steps,
        cost_at=_span(options.cost) if options.cost else None,
        hidden_size=options.hidden_size,
        input_size=options.input_size,
        outputs=options.outputs,
        output=options.output or "linear",
        weights=_listed("--weights", options.weights),
        x=_listed("--x", options.x),
        y=_listed("--y", options.y),
        rate=0.1 if options.rate is None else options.rate,
        seed=options.seed,
    ).walked()


def _depth(options: BackpropOptions, layers: int) -> None:
    from dataclasses import asdict

    from ensue.drawing.document import as_page, as_text
    from ensue.study.foundations.backprop import document, picture, through_depth

    depth = through_depth(layers, options.seed)
    answer(as_json_text(asdict(depth)) if options.as_json else as_text(document(depth)))
    _write(options, lambda: as_page(document(depth)), lambda: picture(depth))


def _write(options: BackpropOptions, page: Callable[[], str], picture: Callable[[], str]) -> None:
    if options.html is not None:
        write_file(options.html, page())
    if options.picture is not None:
        write_picture(options.picture, picture(), options.dark)


def _listed(option: str, text: str) -> list[float] | None:
    return numbers(option, text) if text else None


def _span(text: str) -> tuple[int, int]:
    """ "2:4", or "4" alone."""
    match = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    if match is None:
        raise OptionError(
            f"--cost: with --cell, expected the steps whose outputs cost, such as 2:4, got {text!r}"
        )
    return int(match[1]), int(match[2] or match[1])
