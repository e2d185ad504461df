"""The learning lab, the graph of an expression, and the positions of a Transformer."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    app,
    argument,
    as_json_text,
    check_files,
    option,
    write_picture,
)
from ensue.cli.help import Command
from ensue.cli.study import write_json
from ensue.cli.understand.typed_numbers import numbers, positive_numbers, shaped_assignments

if TYPE_CHECKING:
    from ensue.study.foundations.expression import Expression


Seed = Annotated[int, option("--seed N", "Random seed.", min=0)]


class ExpressionCommand(Command):
    """A command whose argument may begin with a minus: "-log(x)" is not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {opt for param in self.get_params(ctx) for opt in param.opts}
        minus = [word for word in args if re.match(r"-[^-]", word) and word not in known]
        if minus and "--" not in args:
            args = [*(word for word in args if word not in minus), "--", *minus]
        return super().parse_args(ctx, args)


@app.command(
    cls=ExpressionCommand,
    examples="""
    ensue graph "sin(x*y) + x" --at x=1.5,y=2
    ensue graph "sum(tanh(W @ x))" --at "W=[[1,2],[3,4]],x=[1,-1]"
    """,
)
def graph(
    expression: Annotated[str, argument("EXPRESSION", 'An expression such as "sin(x*y) + x".')],
    at: Annotated[
        str,
        option(
            "--at X=A,Y=B",
            "Values of the variables, 1 if not given: x=1.5,W=[[1,2],[3,4]],v=[1,-1].",
        ),
    ] = "",
    picture: Picture = None,
    dark: Dark = False,
    as_json: AsJson = False,
) -> None:
    """Show an expression as a graph, with every derivative.

    Variables are numbers, vectors or matrices; W @ x is a matrix product. With up to three numbers,
    also shows the second derivatives.
    """
    from ensue.drawing.document import as_text
    from ensue.study.foundations.expression_report import document, draw

    check_files(None, picture)
    expression_result = _examined(expression, shaped_assignments("--at", at) if at else {})
    if as_json:
        second = {f"{a},{b}": value for (a, b), value in expression_result.second.items()}
        nodes = [asdict(node) for node in expression_result.nodes]
        facts = {
            "value": expression_result.value,
            "derivatives": expression_result.derivatives(),
            "second": second,
        }
        answer(as_json_text({"expression": expression_result.text, **facts, "nodes": nodes}))
    else:
        answer(as_text(document(expression_result)))
    if picture is not None:
        write_picture(picture, draw(expression_result), dark)


def _examined(expression: str, values: Mapping[str, Any]) -> "Expression":
    """The expression at the given values; a number that is not given is 1."""
    from ensue.study.foundations.expression import examine, of_numbers, variables

    if of_numbers(expression) and not any(isinstance(value, list) for value in values.values()):
        values = dict.fromkeys(variables(expression), 1.0) | dict(values)
    return examine(expression, values)


@app.command()
def lab(
    rates: Annotated[
        str, option("--rates A,B", "Step sizes of the descent, comma-separated.")
    ] = "0.001,0.01,0.02,0.05",
    p: Annotated[
        str, option("--p A,B", "Distribution p. With --q: compute only their KL divergence.")
    ] = "",
    q: Annotated[str, option("--q A,B", "Distribution q.")] = "",
    seed: Seed = 1,
    json_file: Annotated[
        Path | None, option("--json FILE", "Write results and curves to a JSON file.")
    ] = None,
    picture: Picture = None,
    dark: Dark = False,
) -> None:
    """Run seven small experiments on learning, around sin 10x + x.

    Step sizes of gradient descent; expected and empirical cost; model families chosen by
    validation; random features and tuned layers; gradients through stochastic units; SGD and
    gradient descent; early stopping. Takes some seconds. With --p and --q, the KL divergence.
    """
    from ensue.drawing.document import as_text
    from ensue.study.foundations.lab import run_lab
    from ensue.study.foundations.lab_report import as_json, document, draw

    check_files(json_file, picture)
    if p or q:
        return _diverge(p, q, json_file)
    results = run_lab(seed, tuple(positive_numbers("--rates", rates)))
    answer(as_text(document(results)))
    if json_file is not None:
        write_json(json_file, as_json(results))
    if picture is not None:
        write_picture(picture, draw(results), dark)


def _diverge(p: str, q: str, json_file: Path | None) -> None:
    from ensue.study.foundations.lab import divergence
    from ensue.study.foundations.lab_report import divergence_text

    result = divergence(numbers("--p", p), numbers("--q", q))
    answer(divergence_text(result))
    if json_file is not None:
        write_json(json_file, asdict(result))


@app.command(
    examples="""
    ensue positions
    ensue positions --steps 100 --width 128 --picture positions.svg
    """
)
def positions(
    steps: Annotated[int, option("--steps N", "Number of positions.", min=1)] = 50,
    width: Annotated[int, option("--width N", "Numbers of each vector.", min=2)] = 64,
    picture: Picture = None,
    dark: Dark = False,
    as_json: AsJson = False,
) -> None:
    """Show the sinusoidal positions of a Transformer as a heat map.

    A row for each position, a column for each number of its vector; then how close two positions
    are, which depends on their distance alone.
    """
    from ensue.study.foundations.positions import as_text, draw
    from ensue.study.foundations.positions import positions as table

    check_files(None, picture)
    positions_table = table(steps, width)
    if as_json:
        answer(as_json_text(asdict(positions_table)))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        answer(as_text(positions_table, shutil.get_terminal_size().columns, colour), styled=colour)
    if picture is not None:
        write_picture(picture, draw(positions_table), dark)
