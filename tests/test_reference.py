"""The NumPy references against finite differences, the golden numbers, torch and each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from reference import (
    GRU,
    LSTM,
    LSTM1997,
    MGU,
    QRNN,
    REFERENCES,
    SRU,
    Array,
    CoupledLSTM,
    GRUGateThroughReset,
    GRUResetBefore,
    LayerNormLSTM,
    LeakyRNN,
    Masks,
    MinGRU,
    MinimalGated,
    MinLSTM,
    PeepholeLSTM,
    RecurrentDropout,
    Reference,
    Residual,
    SimpleRNN,
    State,
    Zoneout,
    recurrent_perceptron,
)

TIME, BATCH, SIZE = 3, 3, 3
SATURATED = 100.0  # sigmoid of it is 1 in float64

# --- one row per reference ----------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A reference, the rows of its matrices `products` and of b in units of H, and its further
    vectors in the same units. widths: of matrices and parts of the state that are not H wide."""

    reference: Reference
    gates: int
    parts: int = 1
    vectors: tuple[tuple[str, int], ...] = ()
    inputs: int = 2
    products: tuple[str, ...] = ("W", "U")
    widths: Mapping[str, int] = field(default_factory=dict)

    def width(self, name: str) -> int:
        return self.inputs if name == "W" else self.widths.get(name, SIZE)


ROWS: dict[str, Row] = {
    "SimpleRNN tanh": Row(SimpleRNN("tanh"), 1),
    "SimpleRNN sigmoid": Row(SimpleRNN("sigmoid"), 1),
    "SimpleRNN relu": Row(SimpleRNN("relu"), 1),
    "SimpleRNN linear": Row(SimpleRNN("linear"), 1),
    "SimpleRNN prelu": Row(SimpleRNN("prelu"), 1, vectors=(("a", 1),)),
    "SimpleRNN maxout": Row(SimpleRNN("maxout"), 3),
    "RecurrentPerceptron": Row(recurrent_perceptron(), 1),
    "LeakyRNN": Row(LeakyRNN(rate=0.3), 1),
    "LeakyRNN learned": Row(LeakyRNN(learned=True), 1, vectors=(("a", 1),)),
    "MinimalGated": Row(MinimalGated(), 2),
    "MGU": Row(MGU(), 2),
    "GRU": Row(GRU(), 3, vectors=(("d", 1),)),
    "GRUResetBefore": Row(GRUResetBefore(), 3),
    "GRUGateThroughReset": Row(GRUGateThroughReset(), 3),
    "LSTM": Row(LSTM(), 4, parts=2),
    "LSTM1997": Row(LSTM1997(), 3, parts=2),
    "CoupledLSTM": Row(CoupledLSTM(), 3, parts=2),
    "PeepholeLSTM": Row(PeepholeLSTM(), 4, parts=2, vectors=(("p", 3),)),
    "LayerNormLSTM": Row(LayerNormLSTM(), 4, parts=2, vectors=(("s", 5), ("b", 5))),
    "QRNN": Row(QRNN(), 3, parts=3, products=("W", "V"), widths={"V": 2, "state 2": 2}),
    "SRU": Row(SRU(), 4, parts=2, products=("W",), vectors=(("v", 2), ("b", 2))),
    "MinGRU": Row(MinGRU(), 2, products=("W",)),
    "MinLSTM": Row(MinLSTM(), 3, products=("W",)),
    "RecurrentDropout GRU": Row(RecurrentDropout(GRU()), 3, vectors=(("d", 1),)),
    "RecurrentDropout MGU": Row(RecurrentDropout(MGU()), 2),
    "RecurrentDropout maxout": Row(RecurrentDropout(SimpleRNN("maxout")), 2),
    "Zoneout LSTM": Row(Zoneout(LSTM()), 4, parts=2),
    "Residual LSTM": Row(Residual(LSTM()), 4, parts=2, inputs=SIZE),
    "Residual Zoneout RecurrentDropout LSTM": Row(
        Residual(Zoneout(RecurrentDropout(LSTM()))), 4, parts=2, inputs=SIZE
    ),
}


@dataclass(frozen=True)
class Case:
    """One problem: all that goes into forward and backward but the lengths."""

    reference: Reference
    params: dict[str, Array]
    x: Array
    state: State
    masks: Masks
    dy: Array
    dfinal: State

    def forward(self, lengths: list[int] | None = None) -> tuple[Array, State]:
        y, final, _ = self.reference.forward(self.params, self.x, self.state, self.masks, lengths)
        return y, final

    def gradients(self, lengths: list[int] | None = None) -> dict[str, Array]:
        """By name: every parameter, x, and the parts of the state."""
        _, _, tape = self.reference.forward(self.params, self.x, self.state, self.masks, lengths)
        dparams, dx, dstate = self.reference.backward(self.params, tape, self.dy, self.dfinal)
        return named(dparams, dx, dstate)


def named(params: dict[str, Array], x: Array, state: State) -> dict[str, Array]:
    return {**params, "x": x, **{f"state {k}": part for k, part in enumerate(state)}}


def case_of(name: str, time: int = TIME, seed: int = 0) -> Case:
    row, random = ROWS[name], np.random.default_rng(seed)
    matrices = {name: (row.gates * SIZE, row.width(name)) for name in row.products}
    vectors = {name: (rows * SIZE,) for name, rows in (("b", row.gates), *row.vectors)}
    shapes = matrices | vectors
    params = {name: random.normal(scale=0.7, size=shape) for name, shape in shapes.items()}
    state_shape = (BATCH, SIZE)
    state_shapes = [(BATCH, row.width(f"state {k}")) for k in range(row.parts)]
    return Case(
        reference=row.reference,
        params=params,
        x=random.normal(size=(time, BATCH, row.inputs)),
        state=tuple(random.normal(size=shape) for shape in state_shapes),
        masks=Masks(
            # Fractions in addition to 0 and 1, so that a mask used as a condition shows.
            recurrent=random.choice([0.0, 0.6, 1.0, 2.0], size=state_shape),
            zoneout=tuple(
                random.choice([0.0, 0.3, 1.0], size=(time, *state_shape)) for _ in range(row.parts)
            ),
        ),
        dy=random.normal(size=(time, *state_shape)),
        dfinal=tuple(random.normal(size=shape) for shape in state_shapes),
    )


def differences(case: Case, lengths: list[int] | None, step: float = 1e-6) -> dict[str, Array]:
    """Central differences of sum(y * dy) + sum(final * dfinal), one number moved at a time."""

    def cost() -> float:
        y, final = case.forward(lengths)
        finals = (np.vdot(part, d) for part, d in zip(final, case.dfinal, strict=True))
        return float(np.vdot(y, case.dy) + sum(finals))

    slopes = {}
    for name, array in named(case.params, case.x, case.state).items():
        slopes[name] = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            original = array[place]
            array[place] = original + step
            above = cost()
            array[place] = original - step
            below = cost()
            array[place] = original
            slopes[name][place] = (above - below) / (2 * step)
    return slopes


def assert_same(got: dict[str, Array], want: dict[str, Array], tolerance: float) -> None:
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], 0, tolerance, err_msg=name)


# --- laws of every reference --------------------------------------------------------------


def test_every_reference_has_a_row() -> None:
    kinds = {word for name in ROWS for word in name.split()}
    assert set(REFERENCES) <= kinds


@pytest.mark.parametrize("lengths", [None, [3, 0, 2]], ids=["full", "ragged"])
@pytest.mark.parametrize("name", ROWS)
def test_backward_equals_finite_differences(name: str, lengths: list[int] | None) -> None:
    case = case_of(name)
    assert_same(case.gradients(lengths), differences(case, lengths), tolerance=1e-7)


@pytest.mark.parametrize("name", ROWS)
def test_no_time_returns_the_state_and_its_gradient(name: str) -> None:
    case = case_of(name, time=0)
    y, final = case.forward()
    assert y.shape == (0, BATCH, SIZE)
    for got, want in zip(final, case.state, strict=True):
        np.testing.assert_array_equal(got, want)
    untouched = named({k: np.zeros(v.shape) for k, v in case.params.items()}, case.x, case.dfinal)
    assert_same(case.gradients(), untouched, tolerance=0.0)


@pytest.mark.parametrize("name", ROWS)
def test_padding_changes_nothing(name: str) -> None:
    lengths = [3, 0, 2]
    case = case_of(name)
    clean_y, clean_final = case.forward(lengths)
    clean = case.gradients(lengths)
    for row, end in enumerate(lengths):
        case.x[end:, row] = np.nan
        case.dy[end:, row] = np.nan
    y, final = case.forward(lengths)
    np.testing.assert_array_equal(y, clean_y)
    for got, want in zip(final, clean_final, strict=True):
        np.testing.assert_array_equal(got, want)
    assert_same(case.gradients(lengths), clean, tolerance=0.0)
    for row, end in enumerate(lengths):
        assert not y[end:, row].any()
        assert not clean["x"][end:, row].any()


@pytest.mark.parametrize("name", ROWS)
def test_a_short_row_ends_where_the_cut_sequence_ends(name: str) -> None:
    case = case_of(name)
    cut = 2
    y, final = case.forward([cut] * BATCH)
    want_y, want_final, _ = case.reference.forward(
        case.params, case.x[:cut], case.state, case.masks
    )
    np.testing.assert_array_equal(y[:cut], want_y)
    for got, want in zip(final, want_final, strict=True):
        np.testing.assert_array_equal(got, want)


# --- golden numbers, H = 1 ----------------------------------------------------------------

GOLDEN_X = (1.0, -0.5, 2.0)


def scalar_params(**values: float | list[float]) -> dict[str, Array]:
    """Parameters of one unit and one input: a column per matrix, a vector for the rest."""
    arrays = {name: np.atleast_1d(np.array(value, float)) for name, value in values.items()}
    return {name: a[:, None] if name in ("W", "U") else a for name, a in arrays.items()}


def scalar_run(
    reference: Reference, params: dict[str, Array], x: tuple[float, ...], *state: float
) -> list[float]:
    """The outputs of one unit over one sequence."""
    start = tuple(np.full((1, 1), part) for part in state)
    y, _, _ = reference.forward(params, np.array(x)[:, None, None], start)
    return [float(value) for value in y.ravel()]


GRU_GOLDEN = {"W": [0.4, -0.6, 1.0], "U": [-0.8, 0.9, 1.5], "b": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize(
    ("reference", "values", "state", "want"),
    [
        pytest.param(
            MinimalGated(),
            {"W": [1.0, 2.0], "U": [0.5, -1.0], "b": [0.0, 0.1]},
            (0.0,),
            (0.6785067, 0.5352227, 0.9665700),
            id="minimal gated unit",
        ),
        pytest.param(
            GRUResetBefore(),
            GRU_GOLDEN,
            (0.5,),
            (0.7041302, 0.4595232, 0.8200427),
            id="GRU reset before",
        ),
        pytest.param(
            GRU(),
            {**GRU_GOLDEN, "d": 0.25},
            (0.5,),
            (0.7177388, 0.4942838, 0.8307773),
            id="GRU reset after",
        ),
        pytest.param(
            LSTM(),
            {"W": [0.5, -0.3, 1.0, 0.7], "U": [0.1, 0.2, 0.6, -0.4], "b": [0.0, 1.0, 0.0, 0.0]},
            (0.0, 0.0),
            (0.2949882, 0.0856206, 0.5485712),
            id="LSTM",
        ),
    ],
)
def test_golden_outputs(
    reference: Reference,
    values: dict[str, list[float]],
    state: tuple[float, ...],
    want: tuple[float, ...],
) -> None:
    got = scalar_run(reference, scalar_params(**values), GOLDEN_X, *state)
    assert got == pytest.approx(want, abs=5e-8)


def test_golden_backpropagation_through_time() -> None:
    params, v = scalar_params(W=0.5, U=0.8, b=0.0), 1.2
    x = np.array([1.0, -1.0, 0.5, 2.0, -0.3])[:, None, None]
    target = np.array([0.2, 0.1, -0.4, 0.3, 0.0])[:, None, None]
    zero = (np.zeros((1, 1)),)
    h, _, tape = SimpleRNN("tanh").forward(params, x, zero)
    error = v * h - target
    dparams, _, _ = SimpleRNN("tanh").backward(params, tape, v * error, zero)
    got = (
        0.5 * float((error**2).sum()),
        dparams["W"].item(),
        dparams["U"].item(),
        float((error * h).sum()),
    )
    assert got == pytest.approx((0.6343696, 1.3525651, 0.5788145, 1.0705042), abs=5e-8)


def test_golden_counting() -> None:
    params = scalar_params(W=1.0, U=1.0, b=0.0)
    assert scalar_run(SimpleRNN("linear"), params, (1.0, 0.0, 1.0, 1.0, 0.0), 0.0)[-1] == 3.0


# --- forward values, from elsewhere -------------------------------------------------------


def sigma(v: float) -> float:
    return 1 / (1 + math.exp(-v))


def mgu(x: float, h: float) -> float:
    u = sigma(0.2 * x - 0.7 * h + 0.1)
    n = math.tanh(0.9 * x + 1.3 * (u * h) - 0.4)
    return u * n + (1 - u) * h


def gru_gate_through_reset(x: float, h: float) -> float:
    r = sigma(0.2 * x - 0.7 * h + 0.1)
    u = sigma(0.9 * x + 1.3 * (r * h) - 0.4)
    n = math.tanh(-0.6 * x + 0.8 * (r * h) + 0.3)
    return (1 - u) * h + u * n


def leaky_learned(x: float, h: float) -> float:
    return (1 - sigma(0.3)) * h + sigma(0.3) * math.tanh(0.9 * x + 1.3 * h - 0.4)


def prelu(x: float, h: float) -> float:
    v = 0.9 * x - 1.3 * h - 0.4  # negative, negative, positive over GOLDEN_X
    return v if v > 0 else 0.2 * v


def maxout(x: float, h: float) -> float:
    return max(0.9 * x + 1.3 * h - 0.4, -0.6 * x + 0.8 * h + 0.3)


@pytest.mark.parametrize(
    ("reference", "values", "written"),
    [
        (MGU(), {"W": [0.9, 0.2], "U": [1.3, -0.7], "b": [-0.4, 0.1]}, mgu),
        (
            GRUGateThroughReset(),
            {"W": [0.2, 0.9, -0.6], "U": [-0.7, 1.3, 0.8], "b": [0.1, -0.4, 0.3]},
            gru_gate_through_reset,
        ),
        (LeakyRNN(learned=True), {"W": 0.9, "U": 1.3, "b": -0.4, "a": 0.3}, leaky_learned),
        (SimpleRNN("prelu"), {"W": 0.9, "U": -1.3, "b": -0.4, "a": 0.2}, prelu),
        (SimpleRNN("maxout"), {"W": [0.9, -0.6], "U": [1.3, 0.8], "b": [-0.4, 0.3]}, maxout),
    ],
    ids=["MGU", "GRUGateThroughReset", "LeakyRNN learned", "prelu", "maxout"],
)
def test_forward_equals_the_written_equation(
    reference: Reference,
    values: dict[str, float | list[float]],
    written: Callable[[float, float], float],
) -> None:
    want, h = [], 0.5
    for x in GOLDEN_X:
        h = written(x, h)
        want.append(h)
    assert scalar_run(reference, scalar_params(**values), GOLDEN_X, 0.5) == pytest.approx(want)


def test_peepholes_read_the_old_cell_state_but_the_output_gate_the_new() -> None:
    values = {"W": [0.5, -0.3, 1.0, 0.7], "U": [0.1, 0.2, 0.6, -0.4], "b": [0.1, 1.0, 0.2, -0.1]}
    h, c, want = 0.5, -0.8, []
    for x in GOLDEN_X:
        i = sigma(0.5 * x + 0.1 * h + 0.1 + 0.3 * c)
        f = sigma(-0.3 * x + 0.2 * h + 1.0 - 0.9 * c)
        c = f * c + i * math.tanh(x + 0.6 * h + 0.2)
        h = sigma(0.7 * x - 0.4 * h - 0.1 + 1.4 * c) * math.tanh(c)
        want.append(h)
    params = scalar_params(**values, p=[0.3, -0.9, 1.4])
    assert scalar_run(PeepholeLSTM(), params, GOLDEN_X, 0.5, -0.8) == pytest.approx(want)


def test_layer_norm_lstm_equals_torch_layer_norm() -> None:
    case = case_of("LayerNormLSTM")
    params = {name: torch.from_numpy(value) for name, value in case.params.items()}
    h, c = (torch.from_numpy(part) for part in case.state)
    s, b = params["s"].reshape(5, SIZE), params["b"].reshape(5, SIZE)
    want = []
    for x in torch.from_numpy(case.x):
        pieces = (x @ params["W"].T + h @ params["U"].T).chunk(4, dim=1)
        i, f, g, o = (
            torch.nn.functional.layer_norm(piece, (SIZE,), s[k], b[k])
            for k, piece in enumerate(pieces)
        )
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * torch.nn.functional.layer_norm(c, (SIZE,), s[4], b[4]).tanh()
        want.append(h.numpy())
    y, final = case.forward()
    np.testing.assert_allclose(y, np.stack(want), 0, 1e-12)
    np.testing.assert_allclose(final[1], c.numpy(), 0, 1e-12)


def test_simple_cell_is_torchs() -> None:
    for activation in ("tanh", "relu"):
        case = case_of(f"SimpleRNN {activation}")
        library = torch.nn.RNN(2, SIZE, nonlinearity=activation, dtype=torch.float64)
        fill(library, case.params, bias_hh=np.zeros(SIZE))
        assert_forward_equals_torch(case, library)


def test_gru_and_lstm_are_torchs() -> None:
    case = case_of("GRU")
    library = torch.nn.GRU(2, SIZE, dtype=torch.float64)
    fill(library, case.params, np.concatenate([np.zeros(2 * SIZE), case.params["d"]]))
    assert_forward_equals_torch(case, library)
    case = case_of("LSTM")
    lstm = torch.nn.LSTM(2, SIZE, dtype=torch.float64)
    fill(lstm, case.params, bias_hh=np.zeros(4 * SIZE))
    assert_forward_equals_torch(case, lstm)


def fill(library: torch.nn.RNNBase, params: dict[str, Array], bias_hh: Array) -> None:
    """Give torch's layer our numbers, its second bias apart."""
    values = (params["W"], params["U"], params["b"], bias_hh)
    with torch.no_grad():
        for parameter, value in zip(library.parameters(), values, strict=True):
            parameter.copy_(torch.from_numpy(value))


def assert_forward_equals_torch(case: Case, library: torch.nn.RNNBase) -> None:
    start = tuple(torch.from_numpy(part)[None] for part in case.state)
    want, _ = library(torch.from_numpy(case.x), start if len(start) > 1 else start[0])
    np.testing.assert_allclose(case.forward()[0], want.detach().numpy(), 0, 1e-12)


# --- cells that must agree ----------------------------------------------------------------


def assert_same_outputs(case: Case, reference: Reference, params: dict[str, Array]) -> None:
    y, final, _ = reference.forward(params, case.x, case.state, case.masks)
    want_y, want_final = case.forward()
    np.testing.assert_allclose(y, want_y, 0, 1e-12)
    for got, want in zip(final, want_final, strict=True):
        np.testing.assert_allclose(got, want, 0, 1e-12)


def with_gate(
    params: dict[str, Array], at: int, W: Array | float, U: Array | float, b: Array | float
) -> dict[str, Array]:
    """W, U and b with one more gate put at place `at`; a number fills it."""
    grown = {}
    for name, value in (("W", W), ("U", U), ("b", b)):
        gate = np.broadcast_to(value, (SIZE, *params[name].shape[1:]))
        grown[name] = np.insert(params[name], [at * SIZE] * SIZE, gate, axis=0)
    return grown


def test_lstm_of_1997_is_an_lstm_that_never_forgets() -> None:
    case = case_of("LSTM1997")
    assert_same_outputs(case, LSTM(), with_gate(case.params, 1, 0.0, 0.0, SATURATED))


def test_coupled_lstm_is_an_lstm_with_the_opposite_input_gate() -> None:
    case = case_of("CoupledLSTM")
    opposite = (-case.params[name][:SIZE] for name in "WUb")
    assert_same_outputs(case, LSTM(), with_gate(case.params, 0, *opposite))


def test_grus_agree_when_nothing_is_reset() -> None:
    case = case_of("GRUResetBefore")
    case.params["b"][:SIZE] = SATURATED
    case.params["W"][:SIZE] = case.params["U"][:SIZE] = 0.0
    assert_same_outputs(case, GRU(), {**case.params, "d": np.zeros(SIZE)})
    update = slice(SIZE, 2 * SIZE)
    opposite = {name: value.copy() for name, value in case.params.items()}
    for value in opposite.values():
        value[update] *= -1  # u = 1 - z
    assert_same_outputs(case, GRUGateThroughReset(), opposite)


def test_leaky_cell_at_rate_one_is_simple() -> None:
    case = case_of("SimpleRNN tanh")
    assert_same_outputs(case, LeakyRNN(rate=1.0), case.params)


def test_leaky_cell_moves_by_its_rate() -> None:
    case = case_of("LeakyRNN")
    (h,) = case.state
    full, _, _ = SimpleRNN("tanh").forward(case.params, case.x[:1], case.state)
    np.testing.assert_allclose(case.forward()[0][0], 0.7 * h + 0.3 * full[0], 0, 1e-12)


def test_recurrent_perceptron_is_the_logistic_simple_cell() -> None:
    case = case_of("RecurrentPerceptron")
    assert_same_outputs(case, SimpleRNN("sigmoid"), case.params)


# --- wrappers, and derivatives where they jump --------------------------------------------


def test_recurrent_dropout_masks_what_u_multiplies() -> None:
    case = case_of("RecurrentDropout MGU")
    params, m, (h,) = case.params, case.masks.recurrent, case.state
    assert m is not None
    W_n, W_u = np.split(params["W"], 2)
    U_n, U_u = np.split(params["U"], 2)
    b_n, b_u = np.split(params["b"], 2)
    for t, x in enumerate(case.x):
        u = 1 / (1 + np.exp(-(x @ W_u.T + (m * h) @ U_u.T + b_u)))
        n = np.tanh(x @ W_n.T + (m * (u * h)) @ U_n.T + b_n)
        h = u * n + (1 - u) * h
        np.testing.assert_allclose(case.forward()[0][t], h, 0, 1e-12)


def test_zoneout_keeps_where_the_mask_is_zero_and_takes_where_it_is_one() -> None:
    case = case_of("Zoneout LSTM")
    _, new, _ = LSTM().forward(case.params, case.x[:1], case.state)
    _, mixed, _ = Zoneout(LSTM()).forward(case.params, case.x[:1], case.state, case.masks)
    assert case.masks.zoneout is not None
    for mask, took, before, got in zip(case.masks.zoneout, new, case.state, mixed, strict=True):
        want = np.where(
            mask[0] == 1, took, np.where(mask[0] == 0, before, 0.3 * took + 0.7 * before)
        )
        np.testing.assert_allclose(got, want, 0, 1e-12)


def test_residual_adds_x_to_the_output_but_not_to_the_state() -> None:
    case = case_of("Residual LSTM")
    y, final, _ = LSTM().forward(case.params, case.x, case.state)
    got, got_final = case.forward()
    np.testing.assert_array_equal(got, y + case.x)
    for mine, plain in zip(got_final, final, strict=True):
        np.testing.assert_array_equal(mine, plain)


def test_masks_must_be_given_and_dropout_wraps_a_plain_cell() -> None:
    case = case_of("LSTM")
    for wrapper, masks, message in (
        (RecurrentDropout(LSTM()), None, "needs Masks"),
        (Zoneout(LSTM()), None, "needs Masks"),
        (RecurrentDropout(Zoneout(LSTM())), case.masks, "plain cell"),
    ):
        with pytest.raises(AssertionError, match=message):
            wrapper.forward(case.params, case.x, case.state, masks)


@pytest.mark.parametrize(
    ("activation", "values", "db"),
    [
        ("relu", {"W": 1.0, "U": 1.0, "b": 0.0}, [0.0]),
        ("prelu", {"W": 1.0, "U": 1.0, "b": 0.0, "a": 0.2}, [0.2]),
        (
            "maxout",
            {"W": [1.0, 2.0, 3.0], "U": [1.0, 2.0, 3.0], "b": [-1.0, 0.0, 0.0]},
            [0.0, 1.0, 0.0],
        ),
    ],
)
def test_derivative_at_zero_and_at_ties(
    activation: str, values: dict[str, float | list[float]], db: list[float]
) -> None:
    """At v = 0, or with pieces (-1, 0, 0), of which the second is the first of equals."""
    params, cell = scalar_params(**values), SimpleRNN(activation)
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    _, _, tape = cell.forward(params, zero[None], (zero,))
    dparams, _, _ = cell.backward(params, tape, one[None], (zero,))
    assert dparams["b"].tolist() == db
