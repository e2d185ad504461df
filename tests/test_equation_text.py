"""How equations read: as text, as LaTeX, and their derivative."""

import pytest

from ensue.cells import (
    GRU,
    LSTM,
    Cell,
    GRUResetBefore,
    LayerNormLSTM,
    RecurrentPerceptron,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.equations import (
    Matrix,
    Vector,
    exp,
    maximum,
    mean,
    minimum,
    sigmoid,
    softplus,
    sqrt,
    tanh,
    total,
)
from ensue.equations.node import Graph
from ensue.equations.text import short

TEXTS = {
    "LSTM": (
        LSTM(),
        """
i  = σ(W_i·x + U_i·h + b_i)
f  = σ(W_f·x + U_f·h + b_f)
g  = tanh(W_g·x + U_g·h + b_g)
o  = σ(W_o·x + U_o·h + b_o)
c' = f*c + i*g
h' = o*tanh(c')
""",
    ),
    "GRU": (
        GRU(),
        """
r  = σ(W_r·x + U_r·h + b_r)
z  = σ(W_z·x + U_z·h + b_z)
n  = tanh(W_n·x + b_n + r*(U_n·h + d))
h' = (1 - z)*n + z*h
""",
    ),
    "LayerNormLSTM": (
        LayerNormLSTM(),
        """
v_1 = W_i·x + U_i·h
d_1 = v_1 - mean(v_1)
i   = σ(s_i*(d_1 / sqrt(mean(d_1*d_1) + 1e-05)) + b_i)
v_2 = W_f·x + U_f·h
d_2 = v_2 - mean(v_2)
f   = σ(s_f*(d_2 / sqrt(mean(d_2*d_2) + 1e-05)) + b_f)
v_3 = W_g·x + U_g·h
d_3 = v_3 - mean(v_3)
g   = tanh(s_g*(d_3 / sqrt(mean(d_3*d_3) + 1e-05)) + b_g)
v_4 = W_o·x + U_o·h
d_4 = v_4 - mean(v_4)
o   = σ(s_o*(d_4 / sqrt(mean(d_4*d_4) + 1e-05)) + b_o)
c'  = f*c + i*g
d_5 = c' - mean(c')
h'  = o*tanh(s_c*(d_5 / sqrt(mean(d_5*d_5) + 1e-05)) + b_c)
""",
    ),
    "Zoneout LSTM": (
        Zoneout(LSTM()),
        """
i   = σ(W_i·x + U_i·h + b_i)
f   = σ(W_f·x + U_f·h + b_f)
g   = tanh(W_g·x + U_g·h + b_g)
o   = σ(W_o·x + U_o·h + b_o)
c_1 = f*c + i*g
h'  = m_h*o*tanh(c_1) + (1 - m_h)*h
c'  = m_c*c_1 + (1 - m_c)*c
""",
    ),
    "Residual LSTM": (
        Residual(LSTM()),
        """
i  = σ(W_i·x + U_i·h + b_i)
f  = σ(W_f·x + U_f·h + b_f)
g  = tanh(W_g·x + U_g·h + b_g)
o  = σ(W_o·x + U_o·h + b_o)
c' = f*c + i*g
h' = o*tanh(c')
y  = x + h'
""",
    ),
    "a state called y": (
        Residual(RecurrentPerceptron()),
        """
y'  = σ(W·x + U·y + b)
out = x + y'
""",
    ),
}


@pytest.mark.parametrize(("cell", "text"), TEXTS.values(), ids=TEXTS)
def test_text(cell: Cell, text: str) -> None:
    equations = cell.equations(64, 64)
    assert equations.text() == text.strip()
    assert str(equations) == text.strip()


def test_text_outside_training_has_numbers_for_masks() -> None:
    text = Zoneout(LSTM(), 0.25).equations(3, 4, training=False).text()
    assert text.endswith("h'  = 0.75*o*tanh(c_1) + 0.25*h\nc'  = 0.75*c_1 + 0.25*c")


LSTM_LATEX = r"""
\begin{aligned}
  \mathbf{i} &= \sigma(W_{i} \mathbf{x} + U_{i} \mathbf{h} + \mathbf{b}_{i}) \\
  \mathbf{f} &= \sigma(W_{f} \mathbf{x} + U_{f} \mathbf{h} + \mathbf{b}_{f}) \\
  \mathbf{g} &= \tanh(W_{g} \mathbf{x} + U_{g} \mathbf{h} + \mathbf{b}_{g}) \\
  \mathbf{o} &= \sigma(W_{o} \mathbf{x} + U_{o} \mathbf{h} + \mathbf{b}_{o}) \\
  \mathbf{c}' &= \mathbf{f} \odot \mathbf{c} + \mathbf{i} \odot \mathbf{g} \\
  \mathbf{h}' &= \mathbf{o} \odot \tanh(\mathbf{c}')
\end{aligned}
"""
GRU_RESET_BEFORE_LATEX = r"""
\begin{aligned}
  \mathbf{r} &= \sigma(W_{r} \mathbf{x} + U_{r} \mathbf{h} + \mathbf{b}_{r}) \\
  \mathbf{z} &= \sigma(W_{z} \mathbf{x} + U_{z} \mathbf{h} + \mathbf{b}_{z}) \\
  \mathbf{n} &= \tanh(W_{n} \mathbf{x} + U_{n} (\mathbf{r} \odot \mathbf{h}) + \mathbf{b}_{n}) \\
  \mathbf{h}' &= (1 - \mathbf{z}) \odot \mathbf{n} + \mathbf{z} \odot \mathbf{h}
\end{aligned}
"""


@pytest.mark.parametrize(
    ("cell", "latex"), [(LSTM(), LSTM_LATEX), (GRUResetBefore(), GRU_RESET_BEFORE_LATEX)]
)
def test_latex(cell: Cell, latex: str) -> None:
    assert cell.equations().latex() == latex.strip()
    assert cell._repr_latex_() == f"$$\n{latex.strip()}\n$$"


# --- the spelling of single expressions ---------------------------------------------------


def spelt(function: object, latex: bool = False) -> str:
    """The right-hand side of h' for a step of the two values h and c, and a vector b."""

    class Cell2(Cell):
        U, b = Matrix("h"), Vector()

        def step(self, x, h, c):
            return function(self, h, c), c

    equations = Cell2().equations()
    text = equations.latex() if latex else equations.text()
    start = "  \\mathbf{h}' &= " if latex else "h' = "
    line = next(line for line in text.splitlines() if line.startswith(start))
    return line.removeprefix(start).removesuffix(" \\\\")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda s, h, c: h - 0.5, "h - 0.5"),
        (lambda s, h, c: 0.5 - h, "0.5 - h"),
        (lambda s, h, c: -h - 1, "-1 - h"),
        (lambda s, h, c: s.b - h, "b - h"),
        (lambda s, h, c: -h - c, "-h - c"),
        (lambda s, h, c: h + (-c - s.b), "h - c - b"),
        (lambda s, h, c: h - (c - s.b), "h - (c - b)"),
        (lambda s, h, c: h * -2, "-2*h"),
        (lambda s, h, c: h / -2, "-h / 2"),
        (lambda s, h, c: -2 / h, "-2 / h"),
        (lambda s, h, c: (h / c) * s.b, "(h / c)*b"),
        (lambda s, h, c: h / (c * s.b), "h / (c*b)"),
        (lambda s, h, c: h / c / s.b, "h / c / b"),
        (lambda s, h, c: h * c / s.b, "h*c / b"),
        (lambda s, h, c: (h + c) * s.b, "(h + c)*b"),
        (lambda s, h, c: (s.U @ h) * c, "(U·h)*c"),
        (lambda s, h, c: s.U @ (h + c), "U·(h + c)"),
        (lambda s, h, c: -(s.U @ h), "-U·h"),
        (lambda s, h, c: maximum(h, -1.0), "maximum(h, -1)"),
        (lambda s, h, c: minimum(h, c), "minimum(h, c)"),
        (lambda s, h, c: minimum(h, 1e-3) + c, "c + minimum(h, 0.001)"),
        (lambda s, h, c: minimum(h, float("inf")), "minimum(h, inf)"),
        (lambda s, h, c: 25000000 * h, "25000000*h"),
        (lambda s, h, c: h * mean(c) + total(c), "h*mean(c) + sum(c)"),
    ],
)
def test_spelling(function: object, text: str) -> None:
    assert spelt(function) == text


@pytest.mark.parametrize(
    ("function", "latex"),
    [
        (lambda s, h, c: 1e-5 * h, r"10^{-5} \mathbf{h}"),
        (lambda s, h, c: 2.5e-7 + h, r"\mathbf{h} + 2.5 \cdot 10^{-7}"),
        (lambda s, h, c: sigmoid(h / c), r"\sigma\left(\frac{\mathbf{h}}{\mathbf{c}}\right)"),
        (lambda s, h, c: (h / c) * c, r"\frac{\mathbf{h}}{\mathbf{c}} \odot \mathbf{c}"),
        (lambda s, h, c: sqrt(h * h + 1), r"\sqrt{\mathbf{h} \odot \mathbf{h} + 1}"),
        (lambda s, h, c: maximum(h, float("-inf")), r"\max(\mathbf{h}, -\infty)"),
        (lambda s, h, c: minimum(h, c), r"\min(\mathbf{h}, \mathbf{c})"),
        (lambda s, h, c: softplus(h), r"\operatorname{softplus}(\mathbf{h})"),
    ],
)
def test_spelling_in_latex(function: object, latex: str) -> None:
    assert spelt(function, latex=True) == latex


# --- names --------------------------------------------------------------------------------


class Names(Cell):
    """Names that are Greek, long, private, or those of parameters."""

    W_in, U, b = Matrix("x", "reset keep"), Matrix("state_a", "reset keep"), Vector()

    def step(self, x, state_a):
        W, U = self.W_in, self.U
        b = self.b * 2
        alpha = sigmoid(W.reset @ x + U.reset @ state_a + b)
        _v = tanh(W.keep @ x + U.keep @ state_a)
        return alpha * _v


def test_a_variable_called_like_a_parameter_gets_a_number() -> None:
    assert Names().equations().text() == (
        "b_1      = 2*b\n"
        "alpha    = σ(W_in_reset·x + U_reset·state_a + b_1)\n"
        "_v       = tanh(W_in_keep·x + U_keep·state_a)\n"
        "state_a' = alpha*_v"
    )


def test_names_in_latex_have_one_subscript() -> None:
    latex = Names().equations().latex()
    assert r"\boldsymbol{\alpha} &= " in latex
    assert r"W_{\mathrm{in},\mathrm{reset}} \mathbf{x}" in latex
    assert r"\mathbf{state}_{a}' &= \boldsymbol{\alpha} \odot \mathbf{v}" in latex


def test_numbered_names_avoid_those_in_use() -> None:
    def half(v):
        w = v / 2
        return tanh(w)

    class Numbered(Cell):
        W = Matrix("x")

        def step(self, x, h):
            w_1 = exp(h)
            return half(w_1) + half(self.W @ x)

    assert Numbered().equations().text() == (
        "w_1 = exp(h)\nw_2 = w_1 / 2\nv   = W·x\nw_3 = v / 2\nh'  = tanh(w_2) + tanh(w_3)"
    )


def test_the_name_in_step_comes_before_that_in_a_function() -> None:
    def centred(v):
        return v - mean(v)

    class Centred(Cell):
        W = Matrix("x")

        def step(self, x, h):
            s = self.W @ x + h
            n = centred(s)
            return tanh(n)

    assert Centred().equations().text() == "s  = W·x + h\nn  = s - mean(s)\nh' = tanh(n)"


def test_state_parts_that_are_equal_are_both_said() -> None:
    class Twin(Cell):
        W = Matrix("x")

        def step(self, x, h, c, m):
            h = tanh(self.W @ x + h)
            return h, h, m

    assert Twin().equations().text() == "m' = m\nh' = tanh(W·x + h)\nc' = h'"


def test_a_loop_does_not_explode() -> None:
    """Each round uses the last value three times; written out this would be 3^40 terms."""

    class Deep(Cell):
        W = Matrix("x")

        def step(self, x, h):
            v = self.W @ x + h
            for _ in range(40):
                v = tanh(v * v + v)
            return v

    equations = Deep().equations()
    lines = equations.text().splitlines()
    assert len(lines) < 30
    assert lines[0].startswith("t_1  = ")
    assert len(equations.text()) < 4000
    assert len(equations.latex()) < 8000
    assert len(equations.derivative_text()) < 8000
    assert len(short(equations.output)) <= 48


def test_short_leaves_out_what_lies_deep() -> None:
    graph = Graph({"hidden": 4})
    v = h = graph.leaf("state", "h", "hidden")
    assert short(v) == "h"
    assert short(h * h + 1) == "h*h + 1"
    for _ in range(30):
        v = graph.elementwise("tanh", (v,))
    assert short(v) == "tanh(tanh(tanh(tanh(tanh(tanh(…))))))"


# --- derivatives --------------------------------------------------------------------------


def test_derivative_text_of_the_simple_network() -> None:
    assert SimpleRNN().equations().derivative_text() == (
        "s  = W·x + U·h + b\n"
        "h' = tanh(s)\n"
        "∂b = (∂y + ∂h')*(1 - h'*h')\n"
        "∂U = ∂b hᵀ\n"
        "∂h = Uᵀ·∂b\n"
        "∂W = ∂b xᵀ\n"
        "∂x = Wᵀ·∂b"
    )


def test_derivative_text_keeps_the_output_apart_from_a_state_called_y() -> None:
    assert RecurrentPerceptron().equations().derivative_text() == (
        "y' = σ(W·x + U·y + b)\n"
        "∂b = (∂out + ∂y')*y'*(1 - y')\n"
        "∂U = ∂b yᵀ\n"
        "∂y = Uᵀ·∂b\n"
        "∂W = ∂b xᵀ\n"
        "∂x = Wᵀ·∂b"
    )


def test_derivative_text_says_what_is_zero_and_what_is_equal() -> None:
    class Sum(Cell):
        a, b = Vector(), Vector()

        def step(self, x, h):
            return h + self.a + self.b

    assert Sum().equations().derivative_text() == ("∂h = ∂y + ∂h'\n∂b = ∂h\n∂a = ∂h\n∂x = 0")
