"""The laws, each over every row of the table and every engine."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest
import torch
from laws import BATCH, GENERAL, LENGTHS, TABLE, TIME, Row
from subjects import CannotRun, Data, Result, Sequences, State, Subject, cost, weights_of
from torch import Tensor, nn
from torch.autograd import gradgradcheck
from torch.func import vmap
from torch.testing import assert_close

import ensue.layers
from ensue import cells
from ensue.cells import CELLS, Cell, RecurrentPerceptron, SimpleRNN, Wrapper
from ensue.cells.simple import ACTIVATIONS
from ensue.engine import engines_used
from ensue.equations import below
from ensue.equations.functions import FUNCTIONS
from ensue.errors import OptionError

T = TypeVar("T")
Law = Callable[[Row, str], None]
LAWS: dict[str, Law] = {}


def law(*engines: str) -> Callable[[Law], Law]:
    """Makes a test of each row that is not exempt, in all engines (or in those named)."""

    def over_the_table(function: Law) -> Law:
        name = function.__name__.removeprefix("test_").replace("_", " ")
        LAWS[name] = function
        cases = [
            pytest.param(row, engine, id=f"{row.name}-{engine}")
            for row in TABLE
            for engine in row.engines
            if name not in row.exempt and (not engines or engine in engines)
        ]
        return pytest.mark.parametrize(("row", "engine"), cases)(function)

    return over_the_table


def inputs(subject: Subject, data: Data) -> dict[str, Tensor]:
    """Everything that a gradient is taken by."""
    state = {f"state {k}": part for k, part in enumerate(data.state or ())}
    return {"x": data.x, **state, **dict(subject.module.named_parameters())}


def outcome(subject: Subject, data: Data, weights: Result | None = None) -> dict[str, Tensor]:
    """By name: outputs, final state, and the gradients of the cost with these weights (or any)
    by x, the state and the parameters, which start with ∂."""
    x = data.x.detach().requires_grad_()
    state = data.state and tuple(s.detach().requires_grad_() for s in data.state)
    data = replace(data, x=x, state=state)
    by, result = inputs(subject, data), subject.run(data)
    pulled = cost(result, weights or weights_of(result))
    slopes_of_leaves = torch.autograd.grad(pulled, list(by.values()), materialize_grads=True)
    values = {"y": result.y, **{f"final {k}": part for k, part in enumerate(result.final)}}
    slopes = {f"∂{name}": gradient for name, gradient in zip(by, slopes_of_leaves, strict=True)}
    return {name: v.detach() for name, v in values.items()} | slopes


def gradients(subject: Subject, data: Data, weights: Result | None = None) -> dict[str, Tensor]:
    values = outcome(subject, data, weights)
    return {name[1:]: v for name, v in values.items() if name.startswith("∂")}


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor], **tolerance: float) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(actual[name], value, **tolerance, msg=lambda m, name=name: f"{name}: {m}")


TIGHT = {"rtol": 1e-11, "atol": 1e-12}
EXACT = {"rtol": 0.0, "atol": 0.0}


def both(row: Row) -> tuple[Data, Data]:
    """The row's data with all rows full, and with lengths."""
    data = row.data()
    return data, data.of_lengths(*LENGTHS)


# --- gradients ---------------------------------------------------------------------------


def with_inputs(subject: Subject, data: Data, named: Mapping[str, Tensor]) -> Result:
    """The run with other tensors in the place of `inputs`."""
    rest = dict(named)
    state = tuple(rest.pop(name) for name in named if name.startswith("state ")) or None
    return subject.run(replace(data, x=rest.pop("x"), state=state), rest)


@cache
def slopes(name: str) -> dict[str, Tensor]:
    """The gradients by central differences in the eager engine: each number is moved by itself,
    all of a tensor in one go (vmap)."""
    row = next(row for row in TABLE if row.name == name)
    subject, data = row.subject(), both(row)[1]
    weights, step = weights_of(subject.run(data)), 1e-6
    here = {name: v.detach() for name, v in inputs(subject, data).items()}
    gradients_by_name = {}
    for key, v in here.items():

        def moved(by: Tensor, key: str = key, v: Tensor = v) -> Tensor:
            return cost(with_inputs(subject, data, {**here, key: v + by}), weights)

        moves = step * torch.eye(v.numel(), dtype=v.dtype).view(-1, *v.shape)
        slope = (vmap(moved)(moves) - vmap(moved)(-moves)) / (2 * step)
        gradients_by_name[key] = slope.view(v.shape)
    return gradients_by_name


@law()
def test_the_gradient_is_the_slope(row: Row, engine: str) -> None:
    subject, data = row.subject(engine), both(row)[1]
    assert_same(gradients(subject, data), slopes(row.name), rtol=1e-6, atol=1e-7)


@law(*(engine for engine in GENERAL if engine != "eager"))
def test_every_engine_is_the_eager_one(row: Row, engine: str) -> None:
    for data in both(row):
        weights = weights_of(row.subject().run(data))
        actual = outcome(row.subject(engine), data, weights)
        assert_same(actual, outcome(row.subject("eager"), data, weights), **TIGHT)


# Those whose cells torch has kernels for, and that reach them with rows of one length.
WITH_TORCH = [
    row
    for row in TABLE
    if row.name in ("SimpleRNN", "SimpleRNN relu", "GRU", "LSTM", "Recurrent stacked")
    or row.name in ("Recurrent with learned start", "Recurrent bidirectional from forward_end")
    or row.name.endswith(("layer", "stacked and bidirectional"))
]


@pytest.mark.parametrize("row", WITH_TORCH, ids=lambda row: row.name)
def test_the_torch_engine_is_the_eager_one(row: Row) -> None:
    data = row.data()
    weights = weights_of(row.subject().run(data))
    with engines_used() as used:
        actual = outcome(row.subject("torch"), data, weights)
    assert set(used) == {"torch"}
    assert_same(actual, outcome(row.subject("eager"), data, weights), **TIGHT)


@law("eager")
def test_everything_has_an_influence(row: Row, engine: str) -> None:
    """So that no other law holds because a gradient is all zeros."""
    subject, data = row.subject(engine), row.data()
    for name, gradient in gradients(subject, data).items():
        assert gradient.abs().max() > 1e-4, name


@law("eager")
def test_rtrl_sums_to_the_gradient(row: Row, engine: str) -> None:
    subject, data = row.subject(engine), row.data()
    weights = weights_of(subject.run(data))
    outputs_alone = Result(weights.y, tuple(torch.zeros_like(w) for w in weights.final))
    actual = subject.forward_gradients(data, weights.y)
    expected = gradients(subject, data, outputs_alone)
    names = dict(subject.module.named_parameters())
    assert_same(actual, {name: expected[name] for name in names}, **TIGHT)


@law()
def test_second_derivatives_are_right(row: Row, engine: str) -> None:
    """Along random directions of everything at once, which is what makes it fast."""
    subject, data = row.subject(engine), row.data(time=2, batch=2).of_lengths(1, 2)
    here = inputs(subject, data)
    sizes = [v.numel() for v in here.values()]

    def run(flat: Tensor) -> Tensor:
        blocks = zip(here.items(), flat.split(sizes), strict=True)
        result = with_inputs(subject, data, {name: b.view_as(v) for (name, v), b in blocks})
        return torch.cat([v.flatten() for v in (result.y, *result.final)])

    flat = torch.cat([v.detach().flatten() for v in here.values()]).requires_grad_()
    assert gradgradcheck(run, flat, fast_mode=True, rtol=1e-6, atol=1e-7)


# --- rows --------------------------------------------------------------------------------


@law()
def test_padding_changes_nothing(row: Row, engine: str) -> None:
    subject, data = row.subject(engine), both(row)[1]
    longer = data.padded(2)
    weights = weights_of(subject.run(longer))
    plain = outcome(subject, longer.filled(0.0), weights)
    assert all(v.isfinite().all() for v in plain.values())
    for value in (1e3, float("nan"), float("inf")):
        assert_same(outcome(subject, longer.filled(value), weights), plain, **EXACT)
    steps = subject.output_steps(TIME)
    shorter = outcome(subject, data, weights.steps(steps))
    trimmed = {**plain, "y": plain["y"][:steps], "∂x": plain["∂x"][:TIME]}
    assert_same(shorter, trimmed, **TIGHT)


@law()
def test_a_batch_is_its_rows(row: Row, engine: str) -> None:
    subject = row.subject(engine)
    for data in both(row):
        weights = weights_of(subject.run(data))
        alone = [
            outcome(subject, data.rows(slice(k, k + 1)), weights.rows(slice(k, k + 1)))
            for k in range(BATCH)
        ]
        parameters = {f"∂{name}" for name, _ in subject.module.named_parameters()}
        expected = {}
        for name in alone[0]:
            parts = [one[name] for one in alone]
            across = 1 if name in ("y", "∂x") else 0
            expected[name] = sum(parts) if name in parameters else torch.cat(parts, across)
        assert_same(outcome(subject, data, weights), expected, **TIGHT)


def starts(data: Data, parts: int) -> State:
    """The initial states that are given, if every part of the final state has one."""
    return data.state if data.state is not None and len(data.state) == parts else ()


@law()
def test_a_row_ends_at_its_length(row: Row, engine: str) -> None:
    """Zeros beyond it, the state of its last real step at the end, the initial one if empty."""
    subject, data = row.subject(engine), both(row)[1]
    y, final = subject.run(data)
    for k, length in enumerate(LENGTHS):
        one = row.data().rows(slice(k, k + 1)).steps(0, length)
        alone = subject.run(one)
        end = min(length, subject.output_steps(length))
        assert_close(y[:end, k : k + 1], alone.y[:end], **TIGHT)
        assert (y[end:, k] == 0).all()
        for part, expected in zip(final, alone.final, strict=True):
            assert_close(part[k : k + 1], expected, **TIGHT)
        for part, initial in zip(final, starts(data, len(final)), strict=False):
            assert length or torch.equal(part[k], initial[k])


@law()
def test_there_may_be_nothing(row: Row, engine: str) -> None:
    """No steps, no rows, one row, only empty rows: forward and backward."""
    subject = row.subject(engine)
    full = row.data()
    features = subject.run(full).y.shape[2]
    cases = {
        "no steps": full.steps(0, 0),
        "no rows": full.rows(slice(0, 0)),
        "no rows, with lengths": full.rows(slice(0, 0)).of_lengths(),
        "no steps and no rows": full.steps(0, 0).rows(slice(0, 0)),
        "one row": full.rows(slice(0, 1)),
        "only empty rows": full.of_lengths(0, 0, 0),
        "one empty row": full.rows(slice(0, 1)).of_lengths(0),
    }
    for case, data in cases.items():
        time, batch = data.x.shape[:2]
        values = outcome(subject, data)
        assert values["y"].shape == (subject.output_steps(time), batch, features), case
        assert all(v.isfinite().all() for v in values.values()), case
        outputs_alone = subject.run(data).y.sum()
        slopes = torch.autograd.grad(outputs_alone, list(subject.module.parameters()))
        if case != "one row":
            assert not any(slope.any() for slope in slopes), case
            assert not values["y"].any(), case
            assert not values["∂x"].any(), case
            parts = sum(name.startswith("final ") for name in values)
            for k, initial in enumerate(starts(data, parts)):
                assert torch.equal(values[f"final {k}"], initial), case


@law()
def test_not_a_number_stays_in_its_row(row: Row, engine: str) -> None:
    subject, data = row.subject(engine), row.data()
    clean = subject.run(data)
    data.x[1, 1, 0] = float("nan")
    outcome_of_run = subject.run(data)
    assert outcome_of_run.y[1, 1].isnan().any()
    assert all(part[1].isnan().any() for part in outcome_of_run.final[:1])
    for rows in (slice(0, 1), slice(2, 3)):
        assert_close(outcome_of_run.rows(rows), clean.rows(rows), **TIGHT)
        assert outcome(subject, data)["∂x"][:, rows].isfinite().all()


# --- time --------------------------------------------------------------------------------


def chained(subject: Subject, data: Data, cuts: Iterable[int]) -> Result:
    """The data in pieces that end at the cuts, each from the state of the one before."""
    outputs, state, first = [], data.state, 0
    for last in cuts:
        piece = data.steps(first, last)
        y, state = subject.run(Data(piece.x, state, piece.masks, piece.lengths))
        outputs.append(y)
        first = last
    return Result(torch.cat(outputs), state)


@law()
def test_pieces_with_carried_state_are_the_whole(row: Row, engine: str) -> None:
    subject = row.subject(engine)
    for data in both(row):
        weights = weights_of(subject.run(data))
        whole = outcome(subject, data, weights)
        for cuts in ((3, 4), (1, 2, 3, 4)):
            in_pieces = _InPieces(subject, cuts)
            assert_same(outcome(in_pieces, data, weights), whole, **TIGHT)


class _InPieces(Subject):
    """A subject that is run in pieces."""

    def __init__(self, subject: Subject, cuts: Iterable[int]) -> None:
        super().__init__(subject.module, subject.input_size)
        self.whole, self.cuts = subject, cuts

    def run(self, data: Data, parameters: object = None) -> Result:
        return chained(self.whole, data, self.cuts)

    def state_sizes(self) -> list[int]:
        return self.whole.state_sizes()


@law()
def test_the_future_cannot_change_the_past(row: Row, engine: str) -> None:
    subject = row.subject(engine)
    for data in both(row):
        before = subject.run(data).y[:2]
        weights = weights_of(subject.run(data))
        weights.y[2:] = 0
        past = Result(weights.y, tuple(torch.zeros_like(w) for w in weights.final))
        assert not outcome(subject, data, past)["∂x"][2:].any()
        data.x[2:] = 5.0
        assert torch.equal(subject.run(data).y[:2], before)


@law()
def test_truncated_bptt_cuts_where_it_says(row: Row, engine: str) -> None:
    """A piece longer than the text is full BPTT; a shorter one knows nothing of those before."""
    subject = row.subject(engine)
    data = replace(both(row)[1], masks=None)  # in training the layer draws them
    data.x.requires_grad_()
    by = [data.x, *subject.module.parameters()]

    def drawn(run: Callable[[], T]) -> T:
        torch.manual_seed(0)
        return run()

    def slope(of: Result) -> list[Tensor]:
        pulled = cost(of, weights_of(of))
        return list(torch.autograd.grad(pulled, by, retain_graph=True, materialize_grads=True))

    whole = drawn(lambda: subject.run(data))
    (one,) = drawn(lambda: list(subject.pieces(data, 9)))
    assert_close([one, slope(one)], [whole, slope(whole)], **TIGHT)

    first, *rest = drawn(lambda: list(subject.pieces(data, 2)))
    assert_close(torch.cat([first.y, *(piece.y for piece in rest)]), whole.y, **TIGHT)
    reached = [slope(piece)[0].any(-1) for piece in (first, *rest)]  # (time, batch) each
    assert torch.equal(reached[0] ^ reached[1], slope(whole)[0].any(-1))
    assert not (reached[0] & reached[1]).any()
    assert (slope(Result(whole.y[2:], ()))[0].any(-1) & reached[0]).any()  # it would reach back


# --- the module --------------------------------------------------------------------------


@law()
def test_single_precision_is_close_to_double(row: Row, engine: str) -> None:
    subject, data = row.subject(engine), both(row)[1]
    weights = weights_of(subject.run(data))
    double = outcome(subject, data, weights)
    subject.module.float()
    single = outcome(subject, data.to(torch.float32), weights.to(torch.float32))
    assert all(v.dtype == torch.float32 for v in single.values())
    expected = {name: v.to(torch.float32) for name, v in double.items()}
    assert_same(single, expected, rtol=1e-4, atol=1e-4)


@law("eager", "native")  # bptt keeps nothing of its own
def test_copies_do_the_same(row: Row, engine: str) -> None:
    """state_dict into a fresh module, deepcopy, and pickle, all after a first use."""
    subject, data = row.subject(engine), both(row)[1]
    weights = weights_of(subject.run(data))
    expected = outcome(subject, data, weights)
    other = row.subject(engine, seed=7)
    assert not torch.equal(other.run(data).y, expected["y"])
    assert not other.module.load_state_dict(subject.module.state_dict()).missing_keys
    copies = [
        other.module,
        copy.deepcopy(subject.module),
        pickle.loads(pickle.dumps(subject.module)),
    ]
    for module in copies:
        twin = type(subject)(module, row.input_size)
        assert_same(outcome(twin, data, weights), expected, **EXACT)


# --- the table ---------------------------------------------------------------------------


def cells_in(row: Row) -> list[Cell]:
    """The cells of a row, with those inside wrappers."""
    subject = row.subject()
    ways = subject.module.ways if isinstance(subject, Sequences) else []
    parts = [way.cell for way in ways]
    for cell in parts:  # grows while it is read
        if isinstance(cell, Wrapper):
            parts.append(cell.cell)
    return parts


def test_every_cell_wrapper_and_layer_has_a_row() -> None:
    rows = {type(cell) for row in TABLE for cell in cells_in(row)}
    rows |= {type(row.subject().module) for row in TABLE}
    alone = {type(row.build()) for row in TABLE}
    public = [getattr(cells, name) for name in cells.__all__]
    classes = [c for c in public if isinstance(c, type) and issubclass(c, Cell)]
    expected = {c for c in classes if c not in (Cell, Wrapper)}
    assert expected <= rows
    assert set(CELLS.values()) <= alone
    layers = [getattr(ensue.layers, name) for name in ensue.layers.__all__]
    assert {c for c in layers if isinstance(c, type) and issubclass(c, nn.Module)} <= rows


def test_every_activation_has_a_row() -> None:
    pairs = {
        (type(cell), cell.activation)
        for row in TABLE
        for cell in cells_in(row)
        if isinstance(cell, SimpleRNN | RecurrentPerceptron)
    }
    assert {(SimpleRNN, g) for g in (*ACTIVATIONS, "prelu", "maxout")} <= pairs
    assert {(RecurrentPerceptron, g) for g in ACTIVATIONS} <= pairs


def test_every_function_has_a_row() -> None:
    """Each elementwise function, and each kind of node, stands in some step or its derivative."""
    names = set()
    for row in TABLE:
        for cell in cells_in(row):
            equations = cell.equations(row.hidden_size, row.hidden_size)
            back = equations.derivative
            adjoints = [back.x, *back.state.values(), *back.vectors.values()]
            roots = [*equations.roots, *(n for n in adjoints if n is not None)]
            names |= {node.op for node in below(roots)}
    assert FUNCTIONS.keys() <= names
    assert {"sum", "mean", "spread", "count", "mask"} <= names


def test_the_names_of_rows_differ() -> None:
    names = [row.name for row in TABLE]
    assert sorted(set(names)) == sorted(names)


EXEMPTIONS = [
    pytest.param(row, name, id=f"{row.name}-{name}") for row in TABLE for name in row.exempt
]


@pytest.mark.parametrize(("row", "name"), EXEMPTIONS)
def test_an_exemption_names_a_law_and_a_reason_and_the_law_breaks(row: Row, name: str) -> None:
    assert name in LAWS
    assert len(row.exempt[name].split()) > 3
    with pytest.raises((AssertionError, CannotRun, OptionError)):
        LAWS[name](row, "eager")
