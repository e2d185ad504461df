"""How learning works, laid open: the learning lab, backpropagation, the graph of an expression."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import AsJson, app, check_files, write_picture
from ensue.cli.study import write_json
from ensue.errors import OptionError

Seed = Annotated[int, typer.Option("--seed", min=0, help="Of all that is drawn.")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw it into an .svg file.")]


@app.command()
def lab(
    rates: Annotated[
        str, typer.Option("--rates", help="Step sizes of the descent, with commas between.")
    ] = "0.001,0.01,0.02,0.05",
    seed: Seed = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all, with the curves, into a JSON file.")
    ] = None,
    picture: Picture = None,
) -> None:
    """Show what learning is, by five small experiments around sin 10x + x.

    Descent with several step sizes; the cost one wants beside the cost of ten samples; families
    of hypotheses chosen by validation; random features beside tuned layers; gradients through
    stochastic units. Takes some seconds.
    """
    from ensue.study.lab import run_lab
    from ensue.study.lab_picture import draw
    from ensue.study.lab_table import as_json, as_text

    check_files(json_file, picture)
    found = run_lab(seed, tuple(numbers("--rates", rates)))
    print(as_text(found))
    if json_file is not None:
        write_json(json_file, as_json(found))
    if picture is not None:
        write_picture(picture, draw(found))


@app.command()
def backprop(
    widths: Annotated[
        str, typer.Option("--widths", help="Of the input, the hidden layers, the output.")
    ] = "2,3,1",
    activation: Annotated[
        str, typer.Option("--activation", help="Inside: logistic, tanh, relu, linear.")
    ] = "logistic",
    output: Annotated[
        str, typer.Option("--output", help="At the end: the same ones, and softmax.")
    ] = "logistic",
    cost: Annotated[str, typer.Option("--cost", help="cross-entropy or squares.")] = (
        "cross-entropy"
    ),
    weights: Annotated[
        str, typer.Option("--weights", help="All of them: W1 row by row, b1, W2, …")
    ] = "",
    x: Annotated[str, typer.Option("--x", help="The input.")] = "",
    y: Annotated[str, typer.Option("--y", help="The target.")] = "",
    seed: Seed = 1,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write it as one self-contained page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Walk through backpropagation in a small network, number by number.

    The four equations, beside the automatic gradient. What is not given is drawn.
    """
    from ensue.study import backprop_text
    from ensue.study.backprop import walk_through
    from ensue.study.backprop_page import as_page

    found = walk_through(
        whole_numbers("--widths", widths),
        activation=activation,
        output=output,
        cost=cost,
        weights=numbers("--weights", weights) if weights else None,
        x=numbers("--x", x) if x else None,
        y=numbers("--y", y) if y else None,
        seed=seed,
    )
    if as_json:
        print(json.dumps(backprop_text.as_json(found)))
    else:
        print(backprop_text.as_text(found))
    if html is not None:
        write_page(html, as_page(found))


@app.command()
def graph(
    expression: Annotated[str, typer.Argument(help='Such as "sin(x*y) + x".')],
    at: Annotated[
        str,
        typer.Option("--at", help="Values of the variables: x=1.5,y=2. All are 1 if not given."),
    ] = "",
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Draw the graph of an expression, with the value and the derivative of every node."""
    from dataclasses import asdict

    from ensue.study.expression import as_text, examine, variables
    from ensue.study.expression_picture import draw

    given = assignments(at) if at else dict.fromkeys(variables(expression), 1.0)
    found = examine(expression, given)
    if as_json:
        second = {f"{a},{b}": value for (a, b), value in found.second.items()}
        nodes = [asdict(own) for own in found.places]
        facts = {"value": found.value, "derivatives": found.derivatives(), "second": second}
        print(json.dumps({"expression": found.text, **facts, "nodes": nodes}, ensure_ascii=False))
    else:
        print(as_text(found))
    if picture is not None:
        write_picture(picture, draw(found))


def numbers(option: str, text: str) -> list[float]:
    """Numbers with commas or spaces between."""
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise OptionError(
            f"{option}: expected numbers with commas between, such as 0.5,-1, got {text!r}"
        ) from None


def whole_numbers(option: str, text: str) -> list[int]:
    found = numbers(option, text)
    if any(number != int(number) for number in found):
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


def write_page(path: Path, page: str) -> None:
    """Write the file and say so on stderr."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from problem
    print(f"wrote {path}", file=sys.stderr)
