"""The graph of an expression."""

import re
from collections.abc import Mapping
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
from ensue.cli.understand.typed_numbers import shaped_assignments

if TYPE_CHECKING:
    from ensue.study.foundations.expression import Expression


class ExpressionCommand(Command):
    """A command whose argument may begin with a minus: "-log(x)" is no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {own for param in self.get_params(ctx) for own in param.opts}
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

    Of numbers, vectors and matrices: W @ x is their product. Second derivatives of up to three
    numbers follow.
    """
    from dataclasses import asdict

    from ensue.study.foundations.expression_report import as_text, draw

    check_files(None, picture)
    found = _examined(expression, shaped_assignments("--at", at) if at else {})
    if as_json:
        second = {f"{a},{b}": value for (a, b), value in found.second.items()}
        nodes = [asdict(own) for own in found.nodes]
        facts = {"value": found.value, "derivatives": found.derivatives(), "second": second}
        answer(as_json_text({"expression": found.text, **facts, "nodes": nodes}))
    else:
        answer(as_text(found))
    if picture is not None:
        write_picture(picture, draw(found), dark)


def _examined(expression: str, given: Mapping[str, Any]) -> "Expression":
    """At the values that are given; a number that is not given is 1."""
    from ensue.study.foundations.expression import examine, of_numbers, variables

    if of_numbers(expression) and not any(isinstance(own, list) for own in given.values()):
        given = dict.fromkeys(variables(expression), 1.0) | dict(given)
    return examine(expression, given)
