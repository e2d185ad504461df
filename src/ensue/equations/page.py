"""The equations of a step as a document: rendered, drawn, and with their parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensue.drawing.document import Beside, Document, Figure, Paragraph, Section, Table

HEADING = 60.0  # of the picture, whose words stand in the document

if TYPE_CHECKING:
    from ensue.equations.equations import Equations


def equations_document(equations: Equations, about: str = "") -> Document:
    """about: a sentence below the title."""
    formulas = Figure(equations.mathml(), equations.text().splitlines())
    picture = Figure(equations.svg(), above=HEADING)
    blocks = (Beside((formulas, _parameters(equations))), picture)
    return Document(equations.title, about, blocks)


def _parameters(equations: Equations) -> Section:
    """Each parameter with its shape; gates are stacked along its first axis."""
    counts, sizes = equations.counts(), equations.graph.sizes
    rows = [
        (name, " × ".join(map(str, shape)), math.prod(shape))
        for name, shape in equations.shapes.items()
    ]
    rows.append(("all", f"{sizes['input']} inputs, {sizes['hidden']} units", counts.parameters))
    flops = counts.product_flops + counts.elementwise_flops
    what = f"{flops:,} flops for one row and step, {counts.product_flops:,} of them in products"
    table = Table(rows, ("parameter", "shape", "count"), left=2)
    return Section("", (table, Paragraph(what, quiet=True)))
