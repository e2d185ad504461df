"""What an author reads when a step cannot be traced: where, what is wrong, what to write."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import ensue.equations
from ensue.cells import Cell, Residual, SimpleRNN, Zoneout
from ensue.equations.author import USABLE
from ensue.errors import EnsueError, EquationError, OptionError

BLOCKS = (
    "a step treats all features the same; for blocks declare gates, such as Matrix('x', 'ifgo'), "
    "and use W.i, W.f, …"
)
CHOICE = "write maximum(a, b), relu(v), or a mask; one step must do the same for every value"
OUTSIDE = "in parentheses next to * or /; declare what is used elementwise as a Vector"
DECLARE = "declare it as a Matrix, Vector or Mask of the cell, or use a plain number"
UNKNOWN = "whose value is not known while tracing"

# The head of every step below: gated W and b, plain U and p; input 3, hidden 5.
HEAD = """\
class Mine(Cell):
    W, b = Matrix("x", "reset keep"), Vector("reset keep")
    U, p = Matrix("h"), Vector()

    def step(self, x, h, c):
        W, b, U, p = self.W, self.b, self.U, self.p
"""


def made(source: str, folder: Path, name: str = "mine.py") -> Any:
    """The class `Mine` of a file with this source."""
    file = folder / name
    file.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"Cell": Cell, "torch": torch, "numpy": numpy, "math": math}
    names |= {name: getattr(ensue.equations, name) for name in ensue.equations.__all__}
    exec(compile(source, str(file), "exec"), names)
    return names["Mine"]


def message(source: str, folder: Path, kind: type[EnsueError] = EquationError) -> str:
    with pytest.raises(kind) as caught:
        made(source, folder)().equations(3, 5)
    return str(caught.value)


# --- operations ---------------------------------------------------------------------------

OPERATIONS = [
    # functions of others
    ("torch.sin(h)", "torch's sin of h cannot be traced", f"use {USABLE}"),
    (
        "torch.cat([h, c], -1)",
        "torch's cat of h cannot be traced",
        "write W @ x + U @ h for [W U] [x h]",
    ),
    (
        "torch.maximum(h, c)",
        "torch's maximum of h cannot be traced",
        "write maximum(a, b), feature by feature",
    ),
    ("torch.add(h, c, alpha=2)", "torch's add of h with alpha=2 cannot be traced", f"use {USABLE}"),
    (
        "torch.nn.functional.softplus(h)",
        "torch's softplus of h cannot be traced",
        "write softplus(v) of ensue.equations",
    ),
    (
        "torch.zeros_like(h)",
        "torch's zeros_like of h cannot be traced",
        "write a plain number, or 0 * v",
    ),
    ("h.view(-1)", "h.view cannot be traced", BLOCKS),
    ("h.chunk(2)", "h.chunk cannot be traced", BLOCKS),
    ("h.clamp(0, 1)", "h.clamp cannot be traced", "write maximum(minimum(v, high), low)"),
    (
        "h.shape[0]",
        "h.shape cannot be traced",
        "declare sizes: Vector(size='hidden'), or self.memory = 16 and Vector(size='memory')",
    ),
    ("numpy.sin(h)", "numpy's sin of h cannot be traced", f"use {USABLE}"),
    ("numpy.exp(h)", "numpy's exp of h cannot be traced", "write exp(v) of ensue.equations"),
    (
        "math.exp(h)",
        "h is turned into a Python number (math.exp and its like do this)",
        f"use {USABLE} of ensue.equations",
    ),
    # Python's own words
    ("h if h else c", f"a Python `if`, `and`, `or`, `not` or `while` on h, {UNKNOWN}", CHOICE),
    ("h and c", f"a Python `if`, `and`, `or`, `not` or `while` on h, {UNKNOWN}", CHOICE),
    ("not h", f"a Python `if`, `and`, `or`, `not` or `while` on h, {UNKNOWN}", CHOICE),
    ("h > 0", f"a comparison of h, {UNKNOWN}", CHOICE),
    ("max(h, c)", f"a comparison of c, {UNKNOWN}", CHOICE),
    ("h == c", f"a comparison of h, {UNKNOWN}", CHOICE),
    ("h[0]", "h is indexed", BLOCKS),
    ("[*h]", "h is taken apart", BLOCKS),
    ("len(h)", "h is taken apart", BLOCKS),
    ("abs(h)", "abs(h) cannot be traced", "write maximum(h, -h)"),
    (
        "h ** 5",
        "h ** 5: this power cannot be traced",
        "use the powers 1, 2, 3, 4 and 0.5, a division, or exp(p * log(v))",
    ),
    (
        "h ** c",
        "h ** c: this power cannot be traced",
        "use the powers 1, 2, 3, 4 and 0.5, a division, or exp(p * log(v))",
    ),
    ("2 ** h", "a power with the exponent h cannot be traced", "write exp(h * log(base))"),
    ("h % 2", "% or // on h cannot be traced", f"use {USABLE}"),
    # matrices
    ("h @ U", "h @ U: the matrix stands first in a product", "write U @ h"),
    (
        "h @ c",
        "h @ c: a product starts with a parameter matrix",
        "write W @ c with a declared Matrix, or total(h * c)",
    ),
    ("U * h", "the matrix U is used outside a product", f"write U @ h, {OUTSIDE}"),
    ("h * U", "the matrix U is used outside a product", f"write U @ h, {OUTSIDE}"),
    ("c * U @ h", "the matrix U is used outside a product", f"write U @ h, {OUTSIDE}"),
    (
        "W.reset + h",
        "the matrix W.reset is used outside a product",
        f"write W.reset @ x, {OUTSIDE}",
    ),
    ("sigmoid(U)", "the matrix U is used outside a product", f"write U @ h, {OUTSIDE}"),
    ("U(h)", "the matrix U is used outside a product", f"write U @ h, {OUTSIDE}"),
    ("U @ U @ h", "U @ U: a product of two parameter matrices", "write U @ (U @ v)"),
    ("U.T @ h", "U is transposed, which a step cannot do", "declare a second Matrix"),
    (
        "U @ 2.0",
        "U @ 2.0: a product takes features, not a number",
        "write U @ v, with v made from x or the state",
    ),
    # gates
    ("W @ x", "W is used whole, but has the gates reset, keep", "write one gate, such as W.reset"),
    ("h * b", "b is used whole, but has the gates reset, keep", "write one gate, such as b.reset"),
    ("b * h", "b is used whole, but has the gates reset, keep", "write one gate, such as b.reset"),
    (
        "tanh(b)",
        "b is used whole, but has the gates reset, keep",
        "write one gate, such as b.reset",
    ),
    ("h @ W", "W is used whole, but has the gates reset, keep", "write one gate, such as W.reset"),
    (
        "W.rest @ x",
        "unknown gate of W 'rest': did you mean 'reset'? Known: keep, reset",
        "write one of these, or declare rest in W",
    ),
    (
        "U.i @ h",
        "U has no gate i: it is declared without gates",
        "write U @ v, or declare gates, such as Matrix('x', 'ifgo')",
    ),
    (
        "p.i * h",
        "p has no gate i: it is declared without gates",
        "write p, or declare gates, such as p = Vector('ifgo')",
    ),
    # shapes
    (
        "h + x",
        "the shapes do not fit: h has 5 features, x has 3 features",
        "bring one to the size of the other with a product: V @ x, with V = Matrix('x')",
    ),
    (
        "x * tanh(h)",
        "the shapes do not fit: x has 3 features, tanh(h) has 5 features",
        "bring one to the size of the other with a product: V @ tanh(h), "
        "with V = Matrix('hidden', size='input')",
    ),
    (
        "U @ x",
        "the shapes do not fit: U takes 5 features (hidden), x has 3 features",
        "declare a matrix for it, V = Matrix('x'), and write V @ x",
    ),
    (
        "U @ mean(h)",
        "the shapes do not fit: U takes 5 features (hidden), mean(h) has 1 number",
        "declare a matrix for it, V = Matrix('one'), and write V @ mean(h)",
    ),
    (
        "h.mean()",
        "mean of h with dim=None, keepdim=False: a step reduces the features of each row alone, "
        "and keeps their axis",
        "write mean(h), or .mean(-1, keepdim=True)",
    ),
    (
        "torch.sum(h, 0)",
        "sum of h with dim=0, keepdim=False: a step reduces the features of each row alone, "
        "and keeps their axis",
        "write total(h), or .sum(-1, keepdim=True)",
    ),
    (
        "total(2.0)",
        "total(2.0): a number does not say over how many features",
        "write total of x, of the state or of a value made from them",
    ),
    # strangers
    ("h * torch.ones(3)", "a tensor of shape (3,) meets the symbol h", DECLARE),
    ("torch.ones(3) * h", "a tensor of shape (3,) meets the symbol h", DECLARE),
    ("torch.ones(3, 5) @ h", "a tensor of shape (3, 5) meets the symbol h", DECLARE),
    ("h @ torch.ones(5, 3)", "a tensor of shape (5, 3) meets the symbol h", DECLARE),
    ("numpy.ones(3) * h", "an array of shape (3,) meets the symbol h", DECLARE),
    ("U @ torch.ones(5)", "a tensor of shape (5,) meets U @ …", DECLARE),
    (
        "h + None",
        "None meets the symbol h",
        "use x, the state, the declared parameters and plain numbers",
    ),
    (
        'h + "c"',
        "the str 'c' meets the symbol h",
        "use x, the state, the declared parameters and plain numbers",
    ),
    # errors of Python's own
    (
        "nowhere + h",
        "Mine cannot be traced: NameError: name 'nowhere' is not defined",
        "use the functions of ensue.equations on x, the state and the declared parameters",
    ),
    (
        "h & c",
        "Mine cannot be traced: TypeError: unsupported operand type(s) for &: "
        "'Symbol' and 'Symbol'",
        "use the functions of ensue.equations on x, the state and the declared parameters",
    ),
]


@pytest.mark.parametrize(
    ("operation", "problem", "instead"), OPERATIONS, ids=[o[0] for o in OPERATIONS]
)
def test_operation(operation: str, problem: str, instead: str, tmp_path: Path) -> None:
    source = f"{HEAD}        v = {operation}\n        return v, c\n"
    line = f"mine.py:7, in step\n    v = {operation}\n  "
    assert message(source, tmp_path) == f"{line}{problem}\n  {instead}"


STATEMENTS = [
    ("h, c = c", "c is taken apart", BLOCKS),
    ("for v in h: pass", "h is taken apart", BLOCKS),
    ("while h: pass", f"a Python `if`, `and`, `or`, `not` or `while` on h, {UNKNOWN}", CHOICE),
    ("h[0] = c", "h is indexed", BLOCKS),
    ("h += c", "h += … would change a tensor in place", "write h = h + …"),
    ("c *= 2", "c *= … would change a tensor in place", "write c = c * …"),
]


@pytest.mark.parametrize(
    ("statement", "problem", "instead"), STATEMENTS, ids=[s[0] for s in STATEMENTS]
)
def test_statement(statement: str, problem: str, instead: str, tmp_path: Path) -> None:
    line = f"mine.py:7, in step\n    {statement}\n  "
    text = message(f"{HEAD}        {statement}\n        return h, c\n", tmp_path)
    assert text == f"{line}{problem}\n  {instead}"


def test_an_unknown_attribute_is_an_attribute_error_too(tmp_path: Path) -> None:
    """Code which asks `hasattr(v, "detach")` continues."""
    source = f"{HEAD}        assert not hasattr(h, 'detach') and not hasattr(W, 'none')\n"
    assert made(source + "        return h, c\n", tmp_path)().equations(3, 5)


def test_a_value_is_called_what_its_author_calls_it(tmp_path: Path) -> None:
    source = HEAD + "        gate = sigmoid(U @ h + p)\n        return gate + x, c\n"
    assert "gate has 5 features, x has 3 features" in message(source, tmp_path)


def test_a_symbol_prints_as_its_expression(tmp_path: Path, capsys: Any) -> None:
    source = HEAD + "        v = U @ h + p\n        print(v, mean(v), c)\n        return h, c\n"
    made(source, tmp_path)().equations(3, 5)
    assert capsys.readouterr().out == (
        "<U·h + p: 5 features> <mean(U·h + p): 1 number> <c: 5 features>\n"
    )


# --- where --------------------------------------------------------------------------------


def test_an_error_in_a_function_names_both_lines(tmp_path: Path) -> None:
    helper = "def normal(v):\n    d = v - mean(v)\n    return d / d.std()\n\n\n"
    assert message(f"{helper}{HEAD}        n = normal(U @ h)\n        return n, c\n", tmp_path) == (
        "mine.py:3, in normal\n"
        "    return d / d.std()\n"
        "  called from mine.py:12, in step\n"
        "    n = normal(U @ h)\n"
        "  d.std cannot be traced\n"
        "  write d = v - mean(v), then d / sqrt(mean(d * d) + 1e-5)"
    )


def test_an_error_of_pythons_own_in_a_function_names_both_lines(tmp_path: Path) -> None:
    helper = "def third(v):\n    return v / nothing\n\n\n"
    assert message(f"{helper}{HEAD}        return third(h), c\n", tmp_path) == (
        "mine.py:2, in third\n"
        "    return v / nothing\n"
        "  called from mine.py:11, in step\n"
        "    return third(h), c\n"
        "  Mine cannot be traced: NameError: name 'nothing' is not defined\n"
        "  use the functions of ensue.equations on x, the state and the declared parameters"
    )


def test_a_comprehension_is_no_function_of_its_own(tmp_path: Path) -> None:
    text = message(f"{HEAD}        return [U @ v for v in (h, x)], c\n", tmp_path)
    assert text.startswith(
        "mine.py:7, in step\n    return [U @ v for v in (h, x)], c\n  the shapes"
    )
    assert "called from" not in text


def test_an_error_inside_a_wrapped_cell_names_the_authors_line(tmp_path: Path) -> None:
    cell = Zoneout(made(f"{HEAD}        return h.exp2(), c\n", tmp_path)())
    with pytest.raises(EquationError, match=r"^mine.py:7, in step\n    return h.exp2\(\), c\n"):
        cell.equations(3, 5)


def test_code_without_source_still_has_a_line() -> None:
    names: dict[str, Any] = {"Cell": Cell}
    exec("class Mine(Cell):\n    def step(self, x, h):\n        return h.view(3)", names)
    with pytest.raises(EquationError) as caught:
        names["Mine"]().equations(3, 5)
    assert str(caught.value) == f"<string>:3, in step\n  h.view cannot be traced\n  {BLOCKS}"


def test_an_error_on_tensors_names_the_line_too(tmp_path: Path) -> None:
    """Gates are looked up when a step runs on tensors as well."""
    cell = made(f"{HEAD}        return W.rest @ x, c\n", tmp_path)()
    parameters = {name: torch.zeros(shape) for name, shape in cell.shapes(3, 5).items()}
    with pytest.raises(AttributeError, match=r"mine.py:7, in step\n.*\n  unknown gate of W 'rest'"):
        cell.on_tensors(parameters).step(*torch.zeros(3, 1, 5))


# --- what is returned ---------------------------------------------------------------------

ORDER = "write return h, c, the new parts in this order"
SIZES = "bring it to size with a product; or name another size in part_sizes, such as part_sizes"
RETURNED = [
    ("return tanh(h)", "step returned 1 value for 2 state parts, h, c", ORDER),
    ("return tanh(h), c, c", "step returned 3 values for 2 state parts, h, c", ORDER),
    ("v = tanh(h)", "step returned nothing (None) for 2 state parts, h, c", ORDER),
    ("h = U @ h; c = tanh(c); return c, h", "step returned c in the place of h", ORDER),
    (
        "return tanh(h), 0.0",
        "the new c is the plain number 0.0, expected 5 features",
        f"{ORDER}, made from x, the state and the parameters",
    ),
    (
        "return tanh(h), torch.ones(5)",
        "the new c is a Tensor, expected 5 features",
        f"{ORDER}, made from x, the state and the parameters",
    ),
    (
        "return tanh(h), U",
        "the new c is the matrix U, expected 5 features",
        f"{ORDER}, made from x, the state and the parameters",
    ),
    (
        "return tanh(h), tanh(x)",
        "the new c has 3 features, the old c has 5 features",
        f"{SIZES} = {{'c': \"one\"}}",
    ),
    (
        "return mean(h), c",
        "the new h has 1 number, the old h has 5 features",
        f"{SIZES} = {{'h': \"one\"}}",
    ),
]


@pytest.mark.parametrize(("end", "problem", "instead"), RETURNED, ids=[r[0] for r in RETURNED])
def test_returned(end: str, problem: str, instead: str, tmp_path: Path) -> None:
    text = message(f"{HEAD}        {end}\n", tmp_path)
    assert text == f"mine.py:7, in step\n    {end}\n  {problem}\n  {instead}"


def test_one_number_is_not_one_feature(tmp_path: Path) -> None:
    """Whether a step is right does not depend on how wide the layer is."""
    cell = made(f"{HEAD}        return mean(h), c\n", tmp_path)()
    with pytest.raises(EquationError, match="the new h has 1 number, the old h has 1 feature\n"):
        cell.equations(3, 1)


def test_a_step_that_computes_nothing_is_named_where_it_begins(tmp_path: Path) -> None:
    assert message(f"{HEAD}        return h\n", tmp_path).startswith(
        "mine.py:5, in step\n    def step(self, x, h, c):\n  step returned 1 value for 2"
    )


def test_a_swapped_but_nameless_order_is_the_authors_choice(tmp_path: Path) -> None:
    cell = made(f"{HEAD}        return tanh(c), tanh(h)\n", tmp_path)()
    assert cell.equations(3, 5).text() == "h' = tanh(c)\nc' = tanh(h)"


def test_an_output_that_is_no_value(tmp_path: Path) -> None:
    source = f"{HEAD}        return h, c\n\n    def output(self, x, h, c):\n        return 1.0\n"
    assert message(source, tmp_path) == (
        "mine.py:9, in output\n    def output(self, x, h, c):\n"
        "  output returned the plain number 1.0\n  return one value of the step"
    )


# --- declarations -------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["self", "self, x", "self, x, *state", "self, x, *, h"])
def test_a_step_without_named_state(arguments: str, tmp_path: Path) -> None:
    source = f"class Mine(Cell):\n    def step({arguments}):\n        return 0\n"
    assert message(source, tmp_path) == (
        f"mine.py:2, in step\n    def step({arguments}):\n"
        f"  step takes x and each part of the state by its name, got step({arguments})\n"
        "  write step(self, x, h) or step(self, x, h, c)"
    )


def test_an_unknown_size(tmp_path: Path) -> None:
    declared = 'class Mine(Cell):\n    b = Vector(size="hiden")\n'
    step = "    def step(self, x, h):\n        return h\n"
    text = message(declared + step, tmp_path, OptionError)
    assert text.startswith("Mine: the size 'hiden' is not known")
    assert "set self.hiden to a number of features" in text


def test_a_matrix_of_an_unknown_part(tmp_path: Path) -> None:
    source = 'class Mine(Cell):\n    U = Matrix("h")\n    def step(self, x, y):\n        return y\n'
    text = message(source, tmp_path, OptionError)
    assert text.startswith("Mine: the size 'h' is not known")
    assert "a state part (y)" in text


def test_gates_of_one_name(tmp_path: Path) -> None:
    text = message('class Mine(Cell):\n    W = Matrix("x", "ifi")\n', tmp_path, OptionError)
    assert text == (
        'mine.py:2, in Mine\n    W = Matrix("x", "ifi")\n'
        "  the gate i occurs twice in i f i\n  give each gate a different name"
    )


def test_a_residual_of_another_size() -> None:
    with pytest.raises(EquationError, match=r"x has 3 features, tanh.* has 5 features"):
        Residual(SimpleRNN()).equations(3, 5)
