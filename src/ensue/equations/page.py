"""The equations of a step for a notebook: rendered, drawn, and with their parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensue.drawing.html import beside, block, on_page, quiet, table

HEADING = 60.0  # of the picture, whose words stand in the block

if TYPE_CHECKING:
    from ensue.equations.equations import Equations


def equations_html(equations: Equations, about: str = "") -> str:
    """about: a sentence below the title."""
    return block(
        equations.title,
        quiet(about),
        beside(equations.mathml(), _parameters(equations)),
        on_page(equations.svg(), above=HEADING),
    )


def _parameters(equations: Equations) -> str:
    """Each parameter with its shape; gates are stacked along its first axis."""
    counts, sizes = equations.counts(), equations.graph.sizes
    rows: list[tuple[str, str, int]] = [
        (name, " × ".join(map(str, shape)), math.prod(shape))
        for name, shape in equations.shapes.items()
    ]
    rows.append(("all", f"{sizes['input']} inputs, {sizes['hidden']} units", counts.parameters))
    flops = counts.product_flops + counts.elementwise_flops
    told = f"{flops:,} flops for one row and step, {counts.product_flops:,} of them in products"
    return table(rows, ("parameter", "shape", "count"), most=len(rows)) + quiet(told)
