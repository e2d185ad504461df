"""Foundations: the learning lab, backpropagation, the graph of an expression."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    app,
    as_json_text,
    check_files,
    write_file,
    write_picture,
)
from ensue.cli.grouped import grouped
from ensue.cli.study import write_json
from ensue.errors import OptionError

Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed.")]


@app.command()
def lab(
    rates: Annotated[
        str,
        typer.Option("--rates", metavar="A,B", help="Step sizes of the descent, comma-separated."),
    ] = "0.001,0.01,0.02,0.05",
    seed: Seed = 1,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write results and curves to a JSON file."),
    ] = None,
    picture: Picture = None,
    dark: Dark = False,
) -> None:
    """Run five small experiments on learning, around sin 10x + x.

    Step sizes of gradient descent; expected and empirical cost; model families chosen by
    validation; random features and tuned layers; gradients through stochastic units. Takes some
    seconds.
    """
    from ensue.study.foundations.lab import run_lab
    from ensue.study.foundations.lab_picture import draw
    from ensue.study.foundations.lab_table import as_json, as_text

    check_files(json_file, picture)
    found = run_lab(seed, tuple(positive_numbers("--rates", rates)))
    answer(as_text(found))
    if json_file is not None:
        write_json(json_file, as_json(found))
    if picture is not None:
        write_picture(picture, draw(found), dark)


@dataclass(frozen=True, kw_only=True)
class BackpropOptions:
    widths: Annotated[
        str,
        typer.Option("--widths", metavar="A,B", help="Layer widths: input, hidden layers, output."),
    ] = "2,3,1"
    activation: Annotated[
        str,
        typer.Option(
            "--activation",
            metavar="NAME",
            help="Activation of hidden layers: logistic, tanh, relu, linear.",
        ),
    ] = "logistic"
    output: Annotated[
        str,
        typer.Option(
            "--output", metavar="NAME", help="Activation of the output: the same, or softmax."
        ),
    ] = "logistic"
    cost: Annotated[
        str, typer.Option("--cost", metavar="NAME", help="Cost: cross-entropy or squares.")
    ] = "cross-entropy"
    weights: Annotated[
        str,
        typer.Option(
            "--weights",
            metavar="A,B",
            help="All weights, comma-separated: W1 row by row, b1, W2, …; random if not given.",
        ),
    ] = ""
    x: Annotated[
        str, typer.Option("--x", metavar="A,B", help="Input vector; random if not given.")
    ] = ""
    y: Annotated[
        str, typer.Option("--y", metavar="A,B", help="Target vector; random if not given.")
    ] = ""
    seed: Seed = 1
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a self-contained HTML page."),
    ] = None
    picture: Picture = None
    dark: Dark = False
    as_json: AsJson = False


@app.command()
@grouped
def backprop(options: BackpropOptions) -> None:
    """Walk through backpropagation, number by number.

    Prints the four equations of a small network with their values, and checks them against
    autograd.
    """
    from ensue.study.foundations import backprop_text
    from ensue.study.foundations.backprop import walk_through
    from ensue.study.foundations.backprop_page import as_page, network_picture

    check_files(options.html, options.picture)
    found = walk_through(
        whole_numbers("--widths", options.widths),
        activation=options.activation,
        output=options.output,
        cost=options.cost,
        weights=numbers("--weights", options.weights) if options.weights else None,
        x=numbers("--x", options.x) if options.x else None,
        y=numbers("--y", options.y) if options.y else None,
        seed=options.seed,
    )
    if options.as_json:
        answer(as_json_text(backprop_text.as_json(found)))
    else:
        answer(backprop_text.as_text(found))
    if options.html is not None:
        write_file(options.html, as_page(found))
    if options.picture is not None:
        write_picture(options.picture, network_picture(found), options.dark)


@app.command()
def graph(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help='An expression such as "sin(x*y) + x".')
    ],
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="X=A,Y=B", help="Values of the variables, 1 if not given: x=1.5,y=2."
        ),
    ] = "",
    picture: Picture = None,
    dark: Dark = False,
    as_json: AsJson = False,
) -> None:
    """Show an expression as a graph, with every derivative."""
    from dataclasses import asdict

    from ensue.study.foundations.expression import as_text, examine, variables
    from ensue.study.foundations.expression_picture import draw

    check_files(None, picture)
    given = dict.fromkeys(variables(expression), 1.0) | (assignments(at) if at else {})
    found = examine(expression, given)
    if as_json:
        second = {f"{a},{b}": value for (a, b), value in found.second.items()}
        nodes = [asdict(own) for own in found.places]
        facts = {"value": found.value, "derivatives": found.derivatives(), "second": second}
        answer(as_json_text({"expression": found.text, **facts, "nodes": nodes}))
    else:
        answer(as_text(found))
    if picture is not None:
        write_picture(picture, draw(found), dark)


def numbers(option: str, text: str) -> list[float]:
    """Numbers with commas or spaces between."""
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise OptionError(
            f"{option}: expected numbers with commas between, such as 0.5,-1, got {text!r}"
        ) from None


def positive_numbers(option: str, text: str) -> list[float]:
    found = numbers(option, text)
    if not found or not all(math.isfinite(own) and own > 0 for own in found):
        raise OptionError(
            f"{option}: expected numbers > 0 with commas between, such as 0.01,0.05, got {text!r}"
        )
    return found


def whole_numbers(option: str, text: str) -> list[int]:
    found = numbers(option, text)
    if not all(map(float.is_integer, found)):
        raise OptionError(
            f"{option}: expected whole numbers with commas between, such as 2,3,1, got {text!r}"
        )
    return [int(number) for number in found]


def assignments(text: str) -> dict[str, float]:
    """ "x=1.5,y=2" by name."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        given = numbers("--at", value)
        if len(given) != 1:
            raise OptionError(f"--at: expected name=number with commas between, got {part!r}")
        found[name.strip()] = given[0]
    return found
